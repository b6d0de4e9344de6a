"""Every screen opens on what is there, and is drawn with its frame."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.screen import Screen
from textual.widget import Widget

from gym_tui.screen_table import SCREENS
from tests.run_samples import START, live_run
from tests.workbench import NARROW, WIDE, settle, text_of, workbench


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_every_screen_opens(tmp_path: Path, size: tuple[int, int]) -> None:
    live_run(tmp_path)
    app = workbench(tmp_path, "results", now=START + 95)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        for entry in SCREENS:
            await pilot.press(entry.digit)
            await settle(pilot)
            lines = text_of(app).splitlines()
            assert f"[{entry.digit} {entry.title}]" in lines[0]
            assert "? Help" in lines[-1]
            assert "╭─" in lines[1]


async def test_a_screen_that_opens_focuses_its_list_and_nothing_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that comes early does what it does in the list, and is not typed into a box that is not even shown."""
    focused: dict[str, list[str | None]] = {}
    set_focus = Screen.set_focus

    def noting(screen: Screen[None], widget: Widget | None, *arguments: bool, **options: bool) -> None:
        if widget is not None:
            focused.setdefault(getattr(screen, "SCREEN_NAME", ""), []).append(widget.id)
        set_focus(screen, widget, *arguments, **options)

    monkeypatch.setattr(Screen, "set_focus", noting)
    app = workbench(tmp_path, "results")
    async with app.run_test(size=WIDE) as pilot:
        for entry in SCREENS:
            app.open_screen(entry.name)
            await settle(pilot, lambda: app.screen.focused is not None)
    assert {name: ids for name, ids in focused.items() if len(set(ids)) > 1} == {}
    lists = {
        "catalog": "component-list", "config": "tree-list", "servers": "server-list", "rollouts": "finished-list",
        "viewer": "task-list", "results": "runs-list",
    }  # fmt: skip
    assert {name: ids[-1] for name, ids in focused.items()} == lists
