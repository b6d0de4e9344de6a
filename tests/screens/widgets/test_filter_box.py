"""The filter box: hidden until wanted, tells every change, gives the focus back."""

from __future__ import annotations

from typing import Any

import pytest
from textual import on
from textual.app import App
from textual.geometry import Region
from textual.widget import Widget

from screens.widgets import glyphs
from screens.widgets.filter_box import FilterBox


class Item(Widget, can_focus=True):
    pass


class Bench(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, bool]] = []
        self.left = 0
        self.quit_tried = False

    BINDINGS = [("q", "note_quit"), ("1", "note_quit")]  # noqa: RUF012 - the type is Textual's

    def compose(self) -> Any:
        yield FilterBox("words", id="box")
        yield Item()

    def on_mount(self) -> None:
        self.query_one(Item).focus()

    @on(FilterBox.Filtered, "#box")
    def _filtered(self, message: FilterBox.Filtered) -> None:
        self.told.append((message.text, message.done))

    @on(FilterBox.Left, "#box")
    def _left(self, _message: FilterBox.Left) -> None:
        self.left += 1
        self.query_one(Item).focus()

    def action_note_quit(self) -> None:
        self.quit_tried = True


def box(app: Bench) -> FilterBox:
    return app.query_one(FilterBox)


async def test_it_is_hidden_until_it_is_opened() -> None:
    app = Bench()
    async with app.run_test() as pilot:
        await pilot.pause()
        assert not box(app).display and box(app).region.height == 0
        box(app).open()
        await pilot.pause()
        assert box(app).display and box(app).has_focus and box(app).region.height == 1


async def test_every_change_is_told_at_once_and_letters_are_not_commands() -> None:
    app = Bench()
    async with app.run_test() as pilot:
        box(app).open()
        await pilot.pause()
        await pilot.press("q", "1", "backspace", "enter")
        await pilot.pause()
        assert app.told == [("q", False), ("q1", False), ("q", False), ("q", True)]
        assert not app.quit_tried and app.left == 1 and app.query_one(Item).has_focus


async def test_it_stays_while_it_has_a_filter_and_goes_when_it_has_none() -> None:
    app = Bench()
    async with app.run_test() as pilot:
        box(app).open()
        await pilot.pause()
        await pilot.press("a", "down")
        await pilot.pause()
        assert box(app).display and not box(app).has_focus
        box(app).open()
        await pilot.pause()
        await pilot.press("backspace", "down")
        await pilot.pause()
        assert not box(app).display


async def test_escape_takes_the_filter_away() -> None:
    app = Bench()
    async with app.run_test() as pilot:
        box(app).open()
        await pilot.pause()
        await pilot.press("a", "escape")
        await pilot.pause()
        assert app.told[-1] == ("", False) and app.left == 1 and not box(app).display
        assert not box(app).clear_and_close()


async def test_hostile_text_can_be_pasted() -> None:
    app = Bench()
    async with app.run_test() as pilot:
        box(app).open()
        await pilot.pause()
        box(app).value = "[/red][bold \x1b]0;x\x07"
        await pilot.pause()
        assert app.told[-1][0] == "[/red][bold \x1b]0;x\x07"


@pytest.mark.parametrize(("signs", "sign"), [(glyphs.UNICODE, "›"), (glyphs.ASCII, ">")])
async def test_a_sign_tells_it_from_the_lines_around_it(signs: glyphs.Glyphs, sign: str) -> None:
    app = Bench()
    glyphs.use(signs)
    try:
        async with app.run_test(size=(20, 4)) as pilot:
            box(app).open()
            await pilot.press("a", "b")
            await pilot.pause()
            (line,) = box(app).render_lines(Region(0, 0, 20, 1))
            assert line.text.rstrip() == f"{sign} ab" and line.cell_length == box(app).region.width
            assert box(app).render_lines(Region(4, 0, 4, 1))[0].text.strip() == ""
    finally:
        glyphs.use(glyphs.UNICODE)


class SearchBench(Bench):
    def compose(self) -> Any:
        yield FilterBox("words", id="box", anew=True)
        yield Item()


@pytest.mark.parametrize(("bench", "text"), [(Bench, "oldnew"), (SearchBench, "new")])
async def test_a_search_begins_anew_and_a_filter_goes_on(bench: type[Bench], text: str) -> None:
    app = bench()
    async with app.run_test() as pilot:
        box(app).open()
        await pilot.press(*"old", "enter")
        await pilot.pause()
        assert not box(app).has_focus and box(app).value == "old"
        box(app).open()
        await pilot.pause()
        assert box(app).value == "old"
        await pilot.press(*"new")
        assert box(app).value == text
