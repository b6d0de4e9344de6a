"""The list of any length: cursor, place, marks, mouse, hostile cells, a million rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App
from textual.pilot import Pilot

from screens.widgets import glyphs
from screens.widgets.columns import Column
from screens.widgets.virtual_list import Cell, Row, VirtualList
from tests.workbench import heartbeat

HOSTILE = "[/red][bold \x1b]0;owned\x07\x9b31m‮日本語\x00"


class Names:
    """Rows whose keys are their texts."""

    def __init__(self, names: Sequence[str], **style: Any) -> None:
        self.names = list(names)
        self.style = style

    def __len__(self) -> int:
        return len(self.names)

    def row(self, index: int) -> Row:
        return Row((Cell(self.names[index]), str(index)), **self.style)

    def key(self, index: int) -> Hashable:
        return self.names[index]

    def index_of(self, key: Hashable) -> int | None:
        return self.names.index(key) if key in self.names else None  # type: ignore[arg-type]


class Numbers:
    """A million rows without a million things."""

    def __init__(self, count: int = 1_000_000) -> None:
        self.count = count
        self.asked: set[int] = set()

    def __len__(self) -> int:
        return self.count

    def row(self, index: int) -> Row:
        self.asked.add(index)
        return Row((f"row {index}", str(index)))

    def key(self, index: int) -> Hashable:
        return index

    def index_of(self, key: Hashable) -> int | None:
        return key if isinstance(key, int) and key < self.count else None


class Bench(App[None]):
    def __init__(self, rows: Any, **options: Any) -> None:
        super().__init__()
        self.rows = rows
        self.told: list[tuple[str, Any]] = []
        self.options = options

    def compose(self) -> Any:
        yield VirtualList([Column("name", "NAME"), Column("n", "N", 8, right=True)], id="list", **self.options)

    def on_mount(self) -> None:
        self.list.show(self.rows)
        self.list.focus()

    @property
    def list(self) -> VirtualList:
        return self.query_one(VirtualList)

    def on_virtual_list_highlighted(self, message: VirtualList.Highlighted) -> None:
        self.told.append(("at", message.index))

    def on_virtual_list_opened(self, message: VirtualList.Opened) -> None:
        self.told.append(("open", message.index))

    def on_virtual_list_header_clicked(self, message: VirtualList.HeaderClicked) -> None:
        self.told.append(("header", message.column))

    def on_virtual_list_marks_changed(self, _message: VirtualList.MarksChanged) -> None:
        self.told.append(("marks", len(self.list.marks)))


def names(count: int, begin: int = 0) -> list[str]:
    return [f"name {number}" for number in range(begin, begin + count)]


async def test_header_rows_and_cursor_are_drawn() -> None:
    app = Bench(Names(["one", "two"]))
    async with app.run_test(size=(24, 5)) as pilot:
        await pilot.pause()
        shown = app.list.visible_text()
        assert shown[0].split() == ["NAME", "N"] and shown[1].split() == ["▸", "one", "0"] and shown[2].split() == ["two", "1"]
        assert shown[3:] == ["", ""]
        assert app.told == [("at", 0)]


async def test_the_rest_of_a_row_is_drawn_over_the_columns_that_are_left() -> None:
    class Broken(Names):
        def row(self, index: int) -> Row:
            return Row((Cell(self.names[index]),), rest=Cell(f"{HOSTILE} and more than fits", "bad"))

    app = Bench(Broken(["one", "two"]))
    async with app.run_test(size=(24, 5)) as pilot:
        await pilot.pause()
        assert app.list.visible_text()[2].startswith("  two")
        strip = app.list.render_line(2)
        assert strip.cell_length == 24 and "[/red]" in strip.text and "\x1b" not in strip.text


async def test_keys_move_open_and_stay_inside() -> None:
    app = Bench(Names(names(30)))
    async with app.run_test(size=(40, 11)) as pilot:
        await pilot.press("k")
        assert app.list.cursor == 0
        await pilot.press("j", "down", "pagedown")
        assert app.list.cursor == 12
        await pilot.press("end")
        await pilot.pause()
        assert app.list.cursor == 29 and "name 29" in app.list.visible_text()[-1]
        await pilot.press("pagedown", "j")
        assert app.list.cursor == 29
        await pilot.press("enter")
        await pilot.pause()
        assert app.told[-1] == ("open", 29)
        await pilot.press("home", "pageup")
        await pilot.pause()
        assert app.list.cursor == 0 and "name 0" in app.list.visible_text()[1]


async def test_a_held_key_keeps_the_cursor_in_view() -> None:
    app = Bench(Names(names(200)))
    async with app.run_test(size=(40, 11)) as pilot:
        for _ in range(150):
            app.list.action_cursor_down()
        await pilot.pause()
        assert "name 150" in "\n".join(app.list.visible_text())


async def test_cursor_and_scroll_stay_on_the_row_when_rows_come_and_go() -> None:
    app = Bench(Names(names(100)))
    async with app.run_test(size=(40, 11)) as pilot:
        app.list.move_to(50)
        await pilot.pause()
        line = next(number for number, text in enumerate(app.list.visible_text()) if "name 50" in text)
        app.list.show(Names(["fresh 1", "fresh 2", *names(100)]))
        await pilot.pause()
        assert app.list.cursor_key == "name 50" and "name 50" in app.list.visible_text()[line]
        app.list.show(Names(names(60, 40)))
        await pilot.pause()
        assert app.list.cursor_key == "name 50"
        app.list.show(Names(names(5)))
        await pilot.pause()
        assert app.list.cursor == 4 and "name 4" in "\n".join(app.list.visible_text())
        app.list.show(Names([]))
        await pilot.pause()
        assert app.list.cursor_key is None
        await pilot.press("j", "enter", "end", "space")


async def test_rows_that_arrive_above_come_into_view_at_the_very_top() -> None:
    app = Bench(Names(names(100)))
    async with app.run_test(size=(40, 11)) as pilot:
        await pilot.pause()
        app.list.show(Names(["fresh", *names(100)]))
        await pilot.pause()
        assert app.list.cursor_key == "name 0" and "fresh" in app.list.visible_text()[1]


async def test_newest_first_follows_at_the_top_and_counts_arrivals_elsewhere() -> None:
    app = Bench(Names(names(100)), newest_first=True)
    async with app.run_test(size=(40, 11)) as pilot:
        await pilot.pause()
        app.list.show(Names(["fresh", *names(100)]))
        await pilot.pause()
        assert app.list.cursor_key == "fresh" and app.list.arrived == 0
        app.list.move_to(30)
        await pilot.pause()
        before = app.list.visible_text()[1].split()[:2]
        app.list.show(Names(["new 1", "new 2", "fresh", *names(100)]))
        await pilot.pause()
        assert app.list.arrived == 2 and app.list.visible_text()[1].split()[:2] == before
        await pilot.press("home")
        assert app.list.arrived == 0


async def test_marks_follow_their_rows_and_only_where_marking_is_allowed() -> None:
    app = Bench(Names(names(10)), markable=True)
    async with app.run_test(size=(40, 11)) as pilot:
        await pilot.press("space", "space")
        app.list.show(Names(["fresh", *names(10)]))
        await pilot.pause()
        assert [text[0] for text in app.list.visible_text()[1:4]] == [" ", "*", "*"]
        assert app.told[-1][0] == "at" or ("marks", 2) in app.told
        await pilot.press("home", "j", "space")
        assert app.list.marks == {"name 1"}
    other = Bench(Names(names(3)))
    async with other.run_test(size=(40, 11)) as pilot:
        await pilot.press("space")
        assert other.list.marks == set() and other.list.cursor == 0


async def test_mouse_moves_opens_sorts_and_scrolls() -> None:
    app = Bench(Names(names(100)))
    async with app.run_test(size=(40, 11)) as pilot:
        assert await pilot.click(VirtualList, offset=(3, 4))
        await pilot.pause(0.6)
        assert app.list.cursor == 3 and ("open", 3) not in app.told
        assert await pilot.click(VirtualList, offset=(3, 4))
        await pilot.pause(0.6)
        assert app.told[-1] == ("open", 3)
        assert await pilot.click(VirtualList, offset=(3, 7), times=2)
        await pilot.pause()
        assert app.told[-1] == ("open", 6)
        assert await pilot.click(VirtualList, offset=(36, 0))
        await pilot.pause()
        assert app.told[-1] == ("header", "n")
        app.list.scroll_to(y=20, animate=False)
        await pilot.pause()
        assert "name 20" in app.list.visible_text()[1] and app.list.cursor == 6
        assert await pilot.click(VirtualList, offset=(3, 1))
        await pilot.pause()
        assert app.list.cursor == 20


async def test_a_click_below_the_rows_does_nothing() -> None:
    app = Bench(Names(names(2)))
    async with app.run_test(size=(40, 11)) as pilot:
        await pilot.click(VirtualList, offset=(3, 8))
        await pilot.pause()
        assert app.told == [("at", 0)]


async def test_going_to_a_key() -> None:
    app = Bench(Names(names(100)))
    async with app.run_test(size=(40, 11)) as pilot:
        assert app.list.move_to_key("name 60") and not app.list.move_to_key("gone")
        await pilot.pause()
        assert "name 60" in "\n".join(app.list.visible_text()) and app.told[-1] == ("at", 60)


async def test_the_order_is_shown_in_the_header_and_long_titles_leave_room() -> None:
    app = Bench(Names(names(3)))
    async with app.run_test(size=(40, 11)) as pilot:
        app.list.show_order("name", descending=True)
        await pilot.pause()
        assert "NAME▼" in app.list.visible_text()[0]
        app.list.show_order("n")
        await pilot.pause()
        assert "N▲" in app.list.visible_text()[0] and "▼" not in app.list.visible_text()[0]
        app.list.show_columns([Column("name", "OTHER")])
        await pilot.pause()
        assert "OTHER" in app.list.visible_text()[0]


async def test_a_smaller_terminal_keeps_the_cursor_in_view() -> None:
    app = Bench(Names(names(100)))
    async with app.run_test(size=(40, 30)) as pilot:
        app.list.move_to(25)
        await pilot.resize_terminal(30, 8)
        await pilot.pause()
        assert "name 25" in "\n".join(app.list.visible_text())


def lit_text(app: Bench, y: int) -> str:
    """The letters of a line that are drawn underlined."""
    return "".join(segment.text for segment in app.list.render_line(y) if segment.style and segment.style.underline)


@pytest.mark.parametrize(
    ("options", "text", "lit", "shown"),
    [
        ({}, "abcdefgh", (0, 2, 7), "ach"),
        ({}, "abcdefghijkl", (0, 11), "a"),
        ({"keep_end": True}, "abcdefghijkl", (0, 11), "l"),
        ({"keep_end": True}, "abc", (1,), "b"),
        ({"right": True}, "abc", (0, 2), "ac"),
        ({}, "日本語abc", (0, 5), "日c"),
        ({}, "abc\x1b", (0, 3), ""),
        ({}, "abc", (7, 9), ""),
    ],
)
async def test_lit_letters_are_those_that_were_meant(
    options: dict[str, bool], text: str, lit: tuple[int, ...], shown: str
) -> None:
    class Lit(Names):
        def row(self, index: int) -> Row:
            return Row((Cell(text, lit=lit),))

    app = Bench(Lit(["a", "b"]))
    async with app.run_test(size=(40, 11)) as pilot:
        app.list.show_columns([Column("name", "NAME", 10, **options)])
        await pilot.pause()
        assert lit_text(app, 1) == lit_text(app, 2) == shown


async def test_hostile_cells_stay_texts_and_lines_keep_their_width() -> None:
    app = Bench(Names([HOSTILE, "x" * 100_000, "a\nb\tc"], sign="\x1b", muted=True))
    async with app.run_test(size=(60, 6)) as pilot, heartbeat():
        await pilot.pause()
        text = "\n".join(app.list.visible_text())
        assert "[/red][bold ␛]0;owned␇" in text and "a ⏎ b c" in text
        assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char == "‮" for char in text.replace("\n", ""))
        assert all(app.list.render_line(y).cell_length == app.list.size.width for y in range(6))


CELLS = st.text(max_size=30) | st.sampled_from([HOSTILE, "👩‍👩‍👧‍👦 family", "é" * 20, "日本語" * 9, "\u200b\u200d"])


@settings(max_examples=15, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(
    rows=st.lists(st.tuples(CELLS, CELLS, st.lists(st.integers(0, 40), max_size=5)), min_size=1, max_size=8),
    width=st.integers(4, 70),
)
async def test_any_row_has_the_width_of_the_list(rows: list[tuple[str, str, list[int]]], width: int) -> None:
    class Any_(Names):
        def row(self, index: int) -> Row:
            left, right, lit = rows[index]
            return Row((Cell(left, "bad", tuple(sorted(lit))), Cell(right, "good")))

    app = Bench(Any_([str(number) for number in range(len(rows))]))
    async with app.run_test(size=(width, 10)) as pilot:
        await pilot.pause()
        for y in range(10):
            strip = app.list.render_line(y)
            assert strip.cell_length == app.list.size.width
            assert cell_len(strip.text) == app.list.size.width


async def test_a_million_rows_cost_what_is_on_screen() -> None:
    rows = Numbers()
    app = Bench(rows)
    async with app.run_test(size=(80, 40)) as pilot:
        await pilot.pause()
        async with heartbeat():
            await _walk_through(app, pilot)
        assert len(rows.asked) < 3000


async def _walk_through(app: Bench, pilot: Pilot[None]) -> None:
    await pilot.press("end")
    await pilot.pause()
    assert "row 999999" in app.list.visible_text()[-1]
    for _ in range(20):
        await pilot.press("pageup")
    await pilot.press("home")
    for place in (123_456, 999_000, 500_000):
        app.list.move_to(place, center=True)
        await pilot.pause()
        assert f"row {place}" in "\n".join(app.list.visible_text())
    app.list.show(Numbers(1_000_001))
    await pilot.pause()
    assert app.list.cursor == 500_000


async def test_signs_are_ascii_when_that_is_wanted() -> None:
    glyphs.use(glyphs.ASCII)
    app = Bench(Names(["x" * 100, "b"]), markable=True)
    async with app.run_test(size=(40, 11)) as pilot:
        app.list.show_order("name")
        await pilot.press("space", "j")
        await pilot.pause()
        assert "\n".join(app.list.visible_text()).isascii()
