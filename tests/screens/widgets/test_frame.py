"""The lines around a screen: parts, what fits, what a click does, the equal command."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App

from screens.widgets.frame import CommandEcho, FrameLine, Part, parts_that_fit
from tests.workbench import lines


class Bench(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.called: list[str] = []
        self.copied = 0

    def compose(self) -> Any:
        yield FrameLine(id="line")
        yield CommandEcho(id="echo")

    def on_mount(self) -> None:
        line = self.query_one("#line", FrameLine)
        line.left = (
            Part(" gym "),
            Part(" [1 日本] ", "active", "app.note('one')", "tip [/x]"),
            Part("  2  ", "label", "app.note('two')"),
        )
        line.right = (Part(" 1 job ", "busy", "app.note('job')"),)

    def action_note(self, word: str) -> None:
        self.called.append(word)

    def on_command_echo_clicked(self, _message: CommandEcho.Clicked) -> None:
        self.copied += 1


async def test_left_and_right_parts_and_their_clicks() -> None:
    app = Bench()
    async with app.run_test(size=(40, 5)) as pilot:
        assert lines(app)[0] == " gym  [1 日本]   2                1 job"
        for column in (1, 8, 10, 17, 34):
            assert await pilot.click(FrameLine, offset=(column, 0))
        await pilot.pause()
        assert app.called == ["one", "one", "two", "job"]


async def test_what_stands_right_is_kept_when_it_gets_narrow() -> None:
    app = Bench()
    async with app.run_test(size=(12, 5)) as pilot:
        await pilot.pause()
        assert lines(app)[0].endswith("1 job") and cell_len(lines(app)[0]) <= 12
        assert await pilot.click(FrameLine, offset=(7, 0))
        await pilot.pause()
        assert app.called == ["job"]


async def test_tooltips_are_plain_text() -> None:
    app = Bench()
    async with app.run_test(size=(40, 5)) as pilot:
        await pilot.hover(FrameLine, offset=(8, 0))
        await pilot.pause()
        assert "[/x]" in str(app.query_one(FrameLine).tooltip)
        await pilot.hover(FrameLine, offset=(1, 0))
        await pilot.pause()
        assert app.query_one(FrameLine).tooltip is None


async def test_a_command_is_shown_and_copied_by_a_click_a_note_is_not() -> None:
    app = Bench()
    async with app.run_test(size=(40, 5)) as pilot:
        echo = app.query_one(CommandEcho)
        echo.words = "gym list runs [/red]\x1b[31m " + "x" * 50
        await pilot.pause()
        assert lines(app)[1].startswith(" $ gym list runs [/red]␛[31m") and lines(app)[1].endswith("…")
        await pilot.click(CommandEcho)
        echo.words, echo.note = "", "reading a file"
        await pilot.pause()
        assert lines(app)[1] == " (reading a file)"
        await pilot.click(CommandEcho)
        await pilot.pause()
        assert app.copied == 1


def test_only_whole_groups_of_keys_are_shown_and_the_last_one_always() -> None:
    groups = [(Part("ab"), Part("cd")), (Part("efgh"),), (Part("i"),)]
    last = (Part("?"),)

    def shown(width: int) -> str:
        return "".join(part.text for part in parts_that_fit(groups, last, width))

    assert [shown(width) for width in (10, 9, 8, 5, 4, 0)] == ["abcdefghi?", "abcdefgh?", "abcd?", "abcd?", "?", "?"]


@given(st.lists(st.text(max_size=12), max_size=6), st.text(max_size=5), st.integers(0, 60))
def test_what_fits_is_never_wider(texts: list[str], last: str, width: int) -> None:
    parts = parts_that_fit([(Part(text),) for text in texts], (Part(last),), width)
    from screens.widgets.text_gate import one_line

    used = sum(cell_len(one_line(part.text)) for part in parts)
    assert used <= max(width, cell_len(one_line(last)))
