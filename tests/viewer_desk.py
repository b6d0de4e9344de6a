"""The viewer on a workbench, for tests that use it as somebody does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from gym_tui.app import WorkbenchApp
from screens.viewer.screen import ViewerScreen
from screens.widgets.filter_box import FilterBox
from screens.widgets.pane import Pane
from screens.widgets.workbench import Target
from tests.workbench import LONGEST_STALL, WIDE, heartbeat, settle, text_of, workbench

RESTYLED = 0.4
"""Longest stall where Textual styles the whole screen anew: at breakpoints, and when a screen is opened for the first time."""


class Desk:
    """A workbench with the viewer in front, and what it was asked for."""

    def __init__(self, app: WorkbenchApp, pilot: Pilot[Any]) -> None:
        self.app, self.pilot = app, pilot
        self.copied: list[tuple[str, str]] = []
        self.written: list[str] = []
        app.copy_text = lambda text, what: self.copied.append((text, what))  # type: ignore[method-assign]
        app.write_text = lambda text, name: self.written.append(text)  # type: ignore[method-assign]

    @property
    def screen(self) -> ViewerScreen:
        screen = self.app.screen
        assert isinstance(screen, ViewerScreen)
        return screen

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await settle(self.pilot)

    async def write(self, text: str, *keys: str) -> None:
        """Write into the box that has the focus."""
        box = self.app.focused
        assert isinstance(box, FilterBox)
        box.value += text
        await settle(self.pilot)
        if keys:
            await self.press(*keys)

    async def open(self, path: Path, *, task: int | None = None, rollout: int | None = None, line: int | None = None) -> None:
        self.screen.show_target(Target(path, task, rollout, line))
        await settle(self.pilot)

    @property
    def text(self) -> str:
        return text_of(self.app)

    @property
    def told(self) -> list[str]:
        return [text for _, _, text in self.app.notices]

    @property
    def title(self) -> str:
        return self.screen.conversation.heading

    def pane(self, name: str) -> Pane:
        return self.screen.query_one(f"#{name}", Pane)


@asynccontextmanager
async def viewing(path: Path, size: tuple[int, int] = WIDE, stall: float = LONGEST_STALL) -> AsyncIterator[Desk]:
    app = workbench(path, "viewer")
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        async with heartbeat(stall):
            yield Desk(app, pilot)
