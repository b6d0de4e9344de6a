"""For tests of the workbench: a still terminal, waiting until all is drawn, and a watch on the loop."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from gym_tui.app import WorkbenchApp
from gym_tui.settings import Settings
from screens.widgets import glyphs
from screens.widgets.workbench import Target

NOW = 1_795_000_000.0
"""What the clock of a tested workbench says: 2026-11-18 11:06:40 UTC."""
WIDE = (120, 36)
NARROW = (80, 24)
LONGEST_STALL = 0.1
_USUAL_SECONDS = 0.007
"""What `_some_work` takes on a machine on which `python -c "import argparse, json"` takes 21 ms."""


@pytest.fixture(autouse=True)
def still_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No animation, no time zone, no colours switched off, no state of the user's, a working directory of its own."""
    monkeypatch.setattr("textual.constants.TEXTUAL_ANIMATIONS", "none")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.chdir(tmp_path_factory.mktemp("work"))
    time.tzset()
    yield
    glyphs.use(glyphs.UNICODE)


def workbench(path: Path, screen: str = "", *, now: float = NOW, **settings: Any) -> WorkbenchApp:
    """A workbench with a clock that stands still."""
    app = WorkbenchApp(Settings(path, screen, **settings), clock=lambda: now)
    app.animation_level = "none"
    return app


class NotingWorkbench(WorkbenchApp):
    """Notes what its first screen asks for instead of doing it."""

    asked: list[tuple[str, Any]]

    def open_screen(self, name: str, target: Target | None = None) -> None:
        if name == self.settings.first_screen:
            super().open_screen(name, target)
        else:
            self.asked.append((name, target))

    def prefill_command(self, text: str, folder: str | None = None) -> None:
        self.asked.append(("prefill", text))

    def copy_text(self, text: str, what: str) -> None:
        self.asked.append(("copy", text))


def noting_workbench(path: Path, screen: str, *, now: float = NOW) -> NotingWorkbench:
    """A workbench that notes."""
    app = NotingWorkbench(Settings(path, screen), clock=lambda: now)
    app.animation_level = "none"
    app.asked = []
    return app


async def settle(pilot: Pilot[Any], until: Callable[[], bool] = lambda: True, seconds: float = 20, *, idle: bool = True) -> None:
    """Wait until no screen waits for a result, `until` holds, and everything is drawn. Cursors stop blinking."""
    app = pilot.app
    end = time.monotonic() + seconds
    calm = 0
    while calm < 3:
        for node in app.screen.query("Input, TextArea"):
            if isinstance(node, Input | TextArea):
                node.cursor_blink = False
        await pilot.pause()
        await asyncio.sleep(0.02)
        calm = calm + 1 if (not idle or getattr(app, "idle", True)) and until() else 0
        if time.monotonic() > end:
            raise TimeoutError("the workbench did not settle; on screen:\n" + "\n".join(lines(app)))


def lines(app: App[Any]) -> list[str]:
    """The screen in front as plain lines."""
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]


def text_of(app: App[Any]) -> str:
    """The screen in front as one text."""
    return "\n".join(lines(app))


@dataclass
class Heartbeat:
    """The longest time between two turns of the loop, in seconds."""

    longest: float = 0.0


@asynccontextmanager
async def heartbeat(limit: float = LONGEST_STALL) -> AsyncIterator[Heartbeat]:
    """Fails when the loop stood still for longer than `limit` seconds inside the block, on a machine of the usual speed.

    On slower ones, and on two cores that others use as well, the limit is longer in proportion. Counted is the smaller of wall time and the process' CPU time, of all its threads: a machine that is busy with other things makes
    only the first grow, a thread that holds the interpreter both.
    """
    beat = Heartbeat()
    gc.collect()
    gc.freeze()  # as the program does: what other tests left would be walked through again and again
    loop = asyncio.get_running_loop()
    last = (time.perf_counter(), time.process_time())

    def tick() -> None:
        nonlocal last, handle
        now = (time.perf_counter(), time.process_time())
        beat.longest = max(beat.longest, min(now[0] - last[0], now[1] - last[1]))
        last = now
        handle = loop.call_later(0.002, tick)

    handle: asyncio.Handle = loop.call_soon(tick)
    try:
        yield beat
    finally:
        handle.cancel()
        gc.unfreeze()
    allowed = limit * _slowness()
    assert beat.longest < allowed, f"the loop stood still for {beat.longest * 1000:.0f} ms; allowed are {allowed * 1000:.0f}"


def _slowness() -> float:
    """How many times slower this machine computes at this moment than a usual one; at least 1."""
    return max(1.0, min(_some_work() for _ in range(3)) / _USUAL_SECONDS)


def _some_work() -> float:
    began = time.thread_time()
    kept: dict[int, tuple[int, str]] = {}
    for number in range(100_000):
        kept[number & 1023] = (number, str(number))
    return time.thread_time() - began
