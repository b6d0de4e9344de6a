"""Two small screens for tests of the program around the screens."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

from textual.containers import Horizontal
from textual.widget import Widget

from gym_tui.app import WorkbenchApp
from gym_tui.screen_table import ScreenEntry
from gym_tui.settings import Settings
from screens.widgets.columns import Column
from screens.widgets.pane import Pane
from screens.widgets.virtual_list import Cell, Row, VirtualList
from screens.widgets.workbench import Target
from screens.widgets.workbench_screen import WorkbenchScreen
from tests.workbench import NOW


class Tasks:
    """Forty rows with hostile text in them."""

    def __len__(self) -> int:
        return 40

    def row(self, index: int) -> Row:
        return Row(
            (f"task {index}", Cell("good", "good"), "[/red] \x1b[31m"), sign="✗" if index % 7 == 0 else "", sign_style="bad"
        )

    def key(self, index: int) -> Hashable:
        return index

    def index_of(self, key: Hashable) -> int | None:
        return key if isinstance(key, int) else None


class SmallScreen(WorkbenchScreen):
    """Two lists; numbers below 40 can be gone to."""

    SCREEN_NAME = "results"
    PANES = ("left", "right")
    KEY_BAR = ("screen.zoom", "list.open", "screen.next_pane")

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[Target] = []
        self.gone_to: list[str] = []

    def compose_body(self) -> Iterable[Widget]:
        with Horizontal():
            with Pane("Runs [/x]", id="left", classes="-solo -current"):
                yield VirtualList([Column("n", "NAME"), Column("s", "STATE", 6), Column("t", "TEXT", 12, right=True)], id="rows")
            with Pane("Other", id="right", classes="-solo"):
                yield VirtualList([Column("n", "NAME")], id="more")

    def on_mount(self) -> None:
        rows = self.query_one("#rows", VirtualList)
        rows.show(Tasks())
        rows.focus()
        self.query_one("#more", VirtualList).show(Tasks())
        self.say_command("gym list runs results")

    def show_target(self, target: Target) -> None:
        self.targets.append(target)

    def go_to(self, text: str) -> bool:
        self.gone_to.append(text)
        return int(text) < 40

    def thing_to_copy(self) -> tuple[str, str] | None:
        return "a thing", "the thing"


class OtherScreen(SmallScreen):
    SCREEN_NAME = "viewer"


class ThirdScreen(SmallScreen):
    SCREEN_NAME = "rollouts"


ENTRIES = (
    ScreenEntry("rollouts", "Rollouts", __name__, "ThirdScreen", "follow a run"),
    ScreenEntry("viewer", "Viewer", __name__, "OtherScreen", "read"),
    ScreenEntry("results", "Results", __name__, "SmallScreen", "runs"),
)


def small_workbench(path: Path, *, entries: Sequence[ScreenEntry] = ENTRIES, **settings: Any) -> WorkbenchApp:
    """A workbench of small screens that works in `path`, with a clock that stands still."""
    app = WorkbenchApp(Settings(path, "results", **settings), clock=lambda: NOW, screens=entries)
    app.animation_level = "more"
    app.working_folder = path
    return app
