"""What all screens share: going from pane to pane, and one pane alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from textual.containers import Horizontal
from textual.widget import Widget

from gym_tui.app import WorkbenchApp
from gym_tui.screen_table import ScreenEntry
from gym_tui.settings import Settings
from screens.widgets.columns import Column
from screens.widgets.pane import Pane
from screens.widgets.virtual_list import VirtualList
from screens.widgets.workbench_screen import WorkbenchScreen
from tests.workbench import lines, settle


class ThreePanes(WorkbenchScreen):
    """Two low panes above a third one."""

    SCREEN_NAME = "results"
    PANES = ("one", "two", "three")
    CSS = WorkbenchScreen.CSS + " #low { height: 5; } #one { height: 4; width: 20; max-height: 4; }"

    def compose_body(self) -> Iterable[Widget]:
        with Horizontal(id="low"):
            for name in ("one", "two"):
                with Pane(name, id=name):
                    yield VirtualList([Column("n", "NAME")])
        with Pane("three", id="three"):
            yield VirtualList([Column("n", "NAME")])


class PanesEntry(ScreenEntry):
    def factory(self) -> Callable[[], WorkbenchScreen]:
        return ThreePanes


def app_for(path: Path) -> WorkbenchApp:
    entry = PanesEntry("results", "Results", "", "", "three panes")
    app = WorkbenchApp(Settings(path, "results"), clock=lambda: 0.0, screens=(entry,))
    app.animation_level = "none"
    return app


def current(app: WorkbenchApp) -> str | None:
    assert isinstance(app.screen, ThreePanes)
    pane = app.screen.current_pane()
    return pane.id if pane is not None else None


async def test_one_pane_alone_fills_the_screen_whatever_its_size_is(tmp_path: Path) -> None:
    app = app_for(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        before = lines(app)
        app.screen.query_one("#one VirtualList").focus()
        await settle(pilot)
        await pilot.press("z")
        await settle(pilot)
        one = app.screen.query_one("#one")
        assert one.outer_size.width == 100 and one.outer_size.height == 27
        await pilot.press("escape")
        await settle(pilot)
        assert lines(app) == before


async def test_tab_also_visits_panes_that_have_nothing_to_show(tmp_path: Path) -> None:
    app = app_for(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        app.screen.query_one("#two", Pane).show_empty("Nothing here.")
        app.screen.query_one("#one VirtualList").focus()
        await settle(pilot)
        seen = []
        for _ in range(3):
            await pilot.press("tab")
            await settle(pilot)
            seen.append(current(app))
        assert seen == ["two", "three", "one"]
