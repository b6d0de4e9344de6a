"""The command line: verbs, completion, history, refusals; nothing typed is lost when something is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot

from gym_tui.app import WorkbenchApp
from gym_tui.command_line import CommandInput, CommandLine, History
from screens.widgets import glyphs
from screens.widgets.virtual_list import VirtualList
from tests.gym_tui.small_screens import SmallScreen, small_workbench
from tests.workbench import heartbeat, lines, settle


async def type_line(pilot: Pilot[Any], text: str, *, enter: bool = True) -> None:
    """Open the command line with a text in it, and press enter."""
    pilot.app.prefill_command(text)  # type: ignore[attr-defined]
    await settle(pilot)
    if enter:
        await pilot.press("enter")
        await settle(pilot)


def line_of(app: WorkbenchApp) -> CommandLine:
    assert isinstance(app.screen, CommandLine), f"the line is closed:\n{lines(app)}"
    return app.screen


def shown(app: WorkbenchApp) -> list[str]:
    rows = line_of(app).query_one("#found", VirtualList)
    return [str(rows.rows.row(index).cells[0].text) for index in range(len(rows.rows))]  # type: ignore[union-attr]


def value(app: WorkbenchApp) -> str:
    return line_of(app).query_one("#line", CommandInput).value


async def test_screen_theme_ascii_and_numbers(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test() as pilot:
        await settle(pilot)
        first = app.front
        assert isinstance(first, SmallScreen)
        await type_line(pilot, "7")
        assert first.gone_to == ["7"] and app.screen is first
        await type_line(pilot, "400")
        assert line_of(app).message == "there is nothing with the number 400 here"
        await pilot.press("escape")
        await type_line(pilot, "theme gym-light")
        assert app.theme == "gym-light"
        await type_line(pilot, "ascii on")
        assert glyphs.is_ascii()
        assert "\n".join(lines(app)).isascii()
        await type_line(pilot, "ascii off")
        assert not glyphs.is_ascii()
        await type_line(pilot, "screen viewer")
        assert isinstance(app.front, SmallScreen) and app.front.SCREEN_NAME == "viewer"
        await type_line(pilot, "quit")
    assert app.return_code == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("scren x", "unknown command scren. Did you mean `screen`?"),
        ("screen viewr", "there is no screen viewr. Did you mean `viewer`?"),
        ("theme gym-drak", "there is no theme gym-drak. Did you mean `gym-dark`?"),
        ("ascii maybe", "ascii takes on or off, not maybe"),
        ("screen", "screen takes NAME"),
        ("quit now", "quit takes nothing"),
        ("open nowhere", "there is no run"),
        ("open 'a b", "a quotation mark is missing"),
        ("eval run --splat x", "unrecognized arguments: --splat. Did you mean `--split`?"),
        ("gym lst benchmarks", "argument <group>: invalid choice: 'lst'"),
        ("tui", "the workbench is open already"),
        ("eval run --model-api-key abc", "keys do not go into a command line"),
        ("eval run --model-a abc", "keys do not go into a command line"),
        ("eval run ++policy_api_key=abcdef", "keys do not go into a command line"),
        ("[/red]", "unknown command [/red]"),
    ],
)
async def test_a_wrong_line_says_why_and_stays(tmp_path: Path, text: str, says: str) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test() as pilot:
        await settle(pilot)
        app.prefill_command(text)
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert says in line_of(app).message
        assert value(app) == text
        assert app.jobs.all == []
        await pilot.press("x")
        assert line_of(app).message == ""


async def test_tab_completes_to_the_common_beginning_then_one_after_the_other(tmp_path: Path) -> None:
    for name in ("runs-a", "runs-b"):
        (tmp_path / name).mkdir()
    app = small_workbench(tmp_path)
    async with app.run_test() as pilot:
        await settle(pilot)
        await type_line(pilot, "op", enter=False)
        assert shown(app) == ["open"]
        await pilot.press("tab")
        assert value(app) == "open "
        await settle(pilot)
        assert shown(app) == ["runs-a/", "runs-b/"]
        await pilot.press("tab")
        assert value(app) == "open runs-"
        await pilot.press("tab", "tab")
        assert value(app) == "open runs-b/"
        await pilot.press("tab")
        assert value(app) == "open runs-a/"


async def test_a_click_on_a_completion_takes_it(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await type_line(pilot, "screen v", enter=False)
        assert await pilot.click("#found", offset=(3, 0))
        await settle(pilot)
        assert value(app) == "screen viewer "


async def test_history_goes_up_and_down_and_keeps_the_draft(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test() as pilot:
        await settle(pilot)
        await type_line(pilot, "theme gym-dark")
        await type_line(pilot, "3")
        await type_line(pilot, "scr", enter=False)
        await pilot.press("up")
        assert value(app) == "3"
        await pilot.press("up", "up")
        assert value(app) == "theme gym-dark"
        await pilot.press("down", "down", "down")
        assert value(app) == "scr"


def test_history_keeps_one_of_equal_lines_and_not_too_many() -> None:
    history = History()
    for number in range(300):
        history.add(str(number))
    history.add("150")
    assert history.lines[-1] == "150"
    assert history.lines.count("150") == 1
    assert len(history.lines) == 200


async def test_keys_typed_before_the_line_is_open_belong_to_it(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test() as pilot:
        await settle(pilot)
        for char in ":screen viewer\r":
            app.post_message(events.Key({":": "colon", " ": "space", "\r": "enter"}.get(char, char), char))
        await settle(pilot, lambda: app.current_mode == "viewer")
        assert isinstance(app.front, SmallScreen) and app.front.SCREEN_NAME == "viewer"


async def test_escape_closes_and_changes_nothing(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test() as pilot:
        await settle(pilot)
        async with heartbeat():
            await type_line(pilot, "screen viewer", enter=False)
            await pilot.press("escape")
            await settle(pilot)
        assert app.screen is app.front and app.current_mode == "results"


async def test_an_empty_line_closes(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test() as pilot:
        await settle(pilot)
        await type_line(pilot, "")
        assert app.screen is app.front


async def test_a_long_line_is_shown_whole_and_its_end_in_the_line(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(60, 24)) as pilot:
        await settle(pilot)
        await type_line(
            pilot, "eval run --benchmark first_steps --output results/" + "long/" * 12 + "m.jsonl --resume", enter=False
        )
        shown_lines = lines(app)
        assert shown_lines[-1].endswith("m.jsonl --resume")
        assert any(line.startswith("  eval run --benchmark first_steps") for line in shown_lines[-6:-1])
        await pilot.press(*["ctrl+u"])
        await settle(pilot)
        assert not line_of(app).query_one("#whole").display
