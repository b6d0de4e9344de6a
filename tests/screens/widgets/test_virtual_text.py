from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.color import Color
from textual.message import Message
from textual.pilot import Pilot

from screens.widgets import glyphs
from screens.widgets.text_blocks import TextBlock
from screens.widgets.virtual_text import VirtualText
from tests.workbench import heartbeat, settle

CONVERSATION = [
    TextBlock("s", "You solve problems.\nStep by step.", "system", "312 tok", "system", folded=True),
    TextBlock("u", "Find the number of ordered pairs (a, b) with a product that leaves 3.", "user", "88 tok", "user"),
    TextBlock("t", "sum(1 for a in range(9)\n    if a % 7 == 3)", "tool call  python", "call_1", "tool", gutter="┃"),
    TextBlock("a", "The count repeats with period 7.", "assistant", "851 tok", "assistant"),
    TextBlock("end", "", "end: stop", kind="muted", rule=True),
]


class Shelf(App[None]):
    """One text, and as much of a workbench as it needs."""

    def __init__(self, text: VirtualText) -> None:
        super().__init__()
        self.text = text
        self.work = 0
        self.heard: list[Message] = []
        self.animation_level = "none"

    @property
    def idle(self) -> bool:
        return self.work == 0

    def begin_work(self) -> None:
        self.work += 1

    def end_work(self) -> None:
        self.work -= 1

    def compose(self) -> ComposeResult:
        yield self.text

    def on_virtual_text_cursor_moved(self, message: VirtualText.CursorMoved) -> None:
        self.heard.append(message)

    def on_virtual_text_chosen(self, message: VirtualText.Chosen) -> None:
        self.heard.append(message)

    def on_virtual_text_fold_toggled(self, message: VirtualText.FoldToggled) -> None:
        self.heard.append(message)

    def on_virtual_text_scrolled(self, message: VirtualText.Scrolled) -> None:
        self.heard.append(message)

    def on_virtual_text_searched(self, message: VirtualText.Searched) -> None:
        self.heard.append(message)


@pytest.fixture(autouse=True)
def frozen_heap() -> Iterator[None]:
    """What the test run holds is not searched for garbage while the loop is watched."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@asynccontextmanager
async def shown(
    blocks: Sequence[TextBlock] = (), *, size: tuple[int, int] = (41, 12), **options: Any
) -> AsyncIterator[tuple[VirtualText, Pilot[None]]]:
    text = VirtualText(blocks, **options)
    async with Shelf(text).run_test(size=size) as pilot:
        text.focus()
        await settle(pilot)
        yield text, pilot


def heard(pilot: Pilot[None], kind: type[Message]) -> list[Any]:
    assert isinstance(pilot.app, Shelf)
    return [message for message in pilot.app.heard if type(message) is kind]


def numbered(count: int, begin: int = 0) -> str:
    return "\n".join(f"line {number}" for number in range(begin, begin + count))


async def test_heads_bodies_gutters_and_rules() -> None:
    async with shown(CONVERSATION) as (text, _):
        assert text.visible_text() == [
            "▸ system                         312 tok",
            "▾ user                            88 tok",
            "  Find the number of ordered pairs (a,",
            "  b) with a product that leaves 3.",
            "▾ tool call  python               call_1",
            "  ┃ sum(1 for a in range(9)",
            "  ┃     if a % 7 == 3)",
            "▾ assistant                      851 tok",
            "  The count repeats with period 7.",
            "  end: stop ────────────────────────────",
            "",
            "",
        ]


async def test_ascii_signs() -> None:
    glyphs.use(glyphs.ASCII)
    async with shown([*CONVERSATION, TextBlock("m", numbered(300), "many")]) as (text, pilot):
        await pilot.press("end")
        await settle(pilot)
        assert all(line.isascii() for line in text.visible_text())
        assert text.visible_text()[-1] == "  ~ 100 more lines (enter shows them)"
        await pilot.press("home")
        assert text.visible_text()[0] == "+ system                         312 tok"
        assert text.visible_text()[5] == "  | sum(1 for a in range(9)"


async def test_keys_go_from_part_to_part_and_fold() -> None:
    async with shown(CONVERSATION) as (text, pilot):
        await pilot.press("j")
        assert text.cursor_key == "u"
        await pilot.press("enter")
        await settle(pilot)
        assert text.is_folded(1)
        assert text.visible_text()[:3] == [
            "▸ system                         312 tok",
            "▸ user                            88 tok",
            "▾ tool call  python               call_1",
        ]
        await pilot.press("k", "enter")
        await settle(pilot)
        assert text.visible_text()[:3] == ["▾ system                         312 tok", "  You solve problems.", "  Step by step."]
        await pilot.pause()
        assert [(m.index, m.key) for m in heard(pilot, VirtualText.CursorMoved)] == [(1, "u"), (0, "s")]
        assert [(m.key, m.folded) for m in heard(pilot, VirtualText.FoldToggled)] == [("u", True), ("s", False)]


async def test_all_are_folded_and_unfolded() -> None:
    async with shown(CONVERSATION) as (text, pilot):
        await pilot.press("j", "j", "j", "e")
        await settle(pilot)
        assert [line[:6].strip() for line in text.visible_text()[:5]] == ["▸ syst", "▸ user", "▸ tool", "▸ assi", "end:"]
        assert text.cursor_key == "a"
        await pilot.press("e")
        await settle(pilot)
        assert not any(text.is_folded(index) for index in range(4))


async def test_long_bodies_start_cut_and_show_ten_times_as_much() -> None:
    async with shown([TextBlock("r", numbered(2012), "result"), TextBlock("n", "x", "next")]) as (text, pilot):
        assert text.virtual_size.height == 1 + 200 + 1 + 2
        await pilot.press("j")
        await settle(pilot)
        assert text.visible_text()[-1] == "  … 1 812 more lines (enter shows 1 800…"
        await pilot.press("enter")
        await settle(pilot)
        assert text.virtual_size.height == 1 + 2000 + 1 + 2
        await pilot.press("j", "j")
        await settle(pilot)
        assert text.cursor_key == "n"
        await pilot.press("k", "enter")
        await settle(pilot)
        assert text.virtual_size.height == 1 + 2012 + 2
        assert text.cursor_key == "r"


async def test_keys_scroll_by_lines_and_pages() -> None:
    async with shown([TextBlock("r", numbered(100), "result")]) as (text, pilot):
        await pilot.press("down", "down", "up")
        assert text.visible_text()[0] == "  line 0"
        await pilot.press("pagedown")
        assert text.visible_text()[0] == "  line 11"
        await pilot.press("end")
        assert text.visible_text()[-1] == "  line 99"
        await pilot.pause()
        assert heard(pilot, VirtualText.Scrolled)[-1].at_end
        await pilot.press("home")
        assert text.visible_text()[0].startswith("▾ result")


async def test_j_goes_on_from_the_view_when_the_cursor_is_out_of_it() -> None:
    blocks = [TextBlock(number, numbered(30), f"part {number}") for number in range(6)]
    async with shown(blocks) as (text, pilot):
        text.scroll_to(y=31 * 3 + 5)
        await pilot.press("j")
        assert text.cursor == 4
        text.scroll_to(y=31 * 2 + 5)
        await pilot.press("k")
        assert text.cursor == 2
        await settle(pilot)
        assert text.visible_text()[0] == "▾ part 2"


async def test_the_place_is_kept_when_blocks_are_set_again() -> None:
    blocks = [TextBlock(number, numbered(30), f"part {number}") for number in range(6)]
    async with shown(blocks) as (text, pilot):
        await pilot.press("j", "j", "enter", "j")
        await settle(pilot)
        text.scroll_to(y=70)
        await settle(pilot)
        before = text.visible_text()
        text.set_blocks([TextBlock("new", numbered(50), "new"), *blocks[:5], TextBlock(5, numbered(40), "part 5")])
        await settle(pilot)
        assert text.visible_text() == before
        assert text.cursor_key == 3
        assert text.is_folded(3)
        text.set_blocks(blocks, keep_place=False)
        await settle(pilot)
        assert (text.cursor, text.scroll_offset.y, text.is_folded(2)) == (0, 0, False)


async def test_the_place_is_kept_when_the_width_changes() -> None:
    body = " ".join(f"word{number}" for number in range(900))
    async with shown([TextBlock("a", body, "A"), TextBlock("b", body, "B")]) as (text, pilot):
        text.scroll_to(y=120)
        await settle(pilot)
        first = text.visible_text()[0].split()[0]
        await pilot.resize_terminal(60, 14)
        await settle(pilot)
        assert first in text.visible_text()[0].split()


async def test_without_wrapping_the_text_scrolls_sideways() -> None:
    line = " ".join(f"{number:03}" for number in range(60))
    async with shown([TextBlock("a", f"{line}\n日本語 {line}", "A", "right", gutter="┃")]) as (text, pilot):
        assert text.virtual_size.height > 10
        await pilot.press("W")
        await settle(pilot)
        assert text.virtual_size.height == 3
        assert text.visible_text()[1:3] == [f"  ┃ {line[:36]}".rstrip(), f"  ┃ 日本語 {line[:29]}".rstrip()]
        text.scroll_to(x=3)
        await settle(pilot)
        assert text.visible_text()[1:3] == [f"  ┃ {line[3:39]}".rstrip(), f"  ┃  語 {line[:32]}".rstrip()]
        assert text.visible_text()[0] == "▾ A" + " " * 32 + "right"
        await drag(pilot, (4, 1), (6, 1))
        assert pilot.app.screen.get_selected_text() == line[3:6]
        await pilot.press("right", "W")
        await settle(pilot)
        assert text.scroll_offset.x == 0


async def test_search_lights_hits_and_jumps_into_folded_and_cut_bodies() -> None:
    blocks = [
        TextBlock("a", "Nothing here", "A", folded=True),
        TextBlock("b", numbered(1000) + "\nthe needle", "B", folded=True),
        TextBlock("c", "NEEDLE", "needle"),
    ]
    async with shown(blocks) as (text, pilot):
        assert text.search("needle") == 3
        assert text.hit_position == (0, 3)
        assert text.next_hit()
        await settle(pilot)
        assert text.hit_position == (1, 3)
        assert not text.is_folded(1)
        assert text.is_folded(0)
        assert "  the needle" in text.visible_text()
        assert text.cursor_key == "b"
        assert text.next_hit() and text.next_hit() and text.next_hit()
        assert text.hit_position == (1, 3)
        assert text.previous_hit()
        assert text.hit_position == (3, 3)
        assert text.search("Needle") == 0
        assert not text.next_hit()
        assert text.search("") == 0
        assert text.hit_position == (0, 0)
        await pilot.pause()
        assert heard(pilot, VirtualText.Searched)[0].total == 3


async def test_the_current_hit_differs_from_the_others() -> None:
    async with shown([TextBlock("a", "one two one two", "A")]) as (text, pilot):
        text.search("two")
        text.next_hit()
        await settle(pilot)
        styles = [segment.style for segment in text.render_line(1) if segment.text == "two"]
        assert len(styles) == 2
        assert styles[0] is not None and styles[0].reverse
        assert styles[1] is not None and styles[1].underline and not styles[1].reverse


async def test_hits_across_a_line_break_are_lit_on_both_lines() -> None:
    async with shown([TextBlock("a", "x" * 30 + "needle" + "y" * 30, "A")], size=(36, 8)) as (text, pilot):
        assert text.search("needle") == 1
        await settle(pilot)
        lit = [segment.text for y in (1, 2) for segment in text.render_line(y) if segment.style and segment.style.underline]
        assert lit == ["nee", "dle"]


async def test_markdown_is_drawn_by_and_by_and_plain_while_it_has_hits() -> None:
    blocks = [TextBlock("a", "**strong** text\n\n* item", "A", markdown=True), TextBlock("b", "**plain**", "B")]
    async with shown(blocks) as (text, pilot):
        await settle(pilot, lambda: text.visible_text()[1] == "  strong text")
        assert text.visible_text()[:6] == ["▾ A", "  strong text", "", "   • item", "▾ B", "  **plain**"]
        text.search("item")
        await settle(pilot)
        assert text.visible_text()[1] == "  **strong** text"
        text.search("")
        await settle(pilot, lambda: text.visible_text()[1] == "  strong text")
        text.markdown = False
        await settle(pilot)
        assert text.visible_text()[1] == "  **strong** text"


async def test_a_log_is_followed_until_one_scrolls_up() -> None:
    async with shown() as (text, pilot):
        text.set_lines(f"line {number}" for number in range(500))
        await settle(pilot)
        assert text.visible_text()[-1] == "line 499"
        text.append_lines(["line 500"])
        await settle(pilot)
        assert text.visible_text()[-1] == "line 500"
        assert text.follow and text.pending == 0
        await pilot.press("up", "up")
        await settle(pilot)
        assert not text.follow
        before = text.visible_text()
        text.append_lines(["line 501", "line 502\nline 503"])
        await settle(pilot)
        assert text.visible_text() == before
        assert text.pending == 3
        await pilot.press("end")
        await settle(pilot)
        assert text.visible_text()[-1] == "line 503"
        assert text.follow and text.pending == 0


async def test_lines_of_a_log_are_drawn_by_their_kind() -> None:
    async with shown() as (text, pilot):
        text.append_kinds([("plain", ["fine"]), ("error", ["bad", "worse"]), ("plain", ["fine again"])])
        await settle(pilot)
        assert text.visible_text()[:4] == ["fine", "bad", "worse", "fine again"]
        colours = [{segment.style.color for segment in text.render_line(y) if segment.style} for y in range(4)]
        assert colours[0] == colours[3] != colours[1] == colours[2]
        assert text.follow


async def test_a_log_keeps_its_last_lines_and_says_so() -> None:
    async with shown(kept_lines=1000) as (text, pilot):
        text.set_lines([])
        for begin in range(0, 3000, 50):
            text.append_lines(f"line {number}" for number in range(begin, begin + 50))
        await settle(pilot)
        assert text.visible_text()[-1] == "line 2999"
        await pilot.press("home")
        await settle(pilot)
        assert text.visible_text()[:2] == ["… 2 000 earlier lines are not kept", "line 2000"]


async def test_lines_in_view_stay_when_old_ones_are_dropped() -> None:
    async with shown(kept_lines=1000) as (text, pilot):
        text.set_lines(f"line {number}" for number in range(1000))
        await settle(pilot)
        text.scroll_to(y=500)
        await settle(pilot)
        assert text.visible_text()[0] == "line 500"
        text.append_lines(f"line {number}" for number in range(1000, 1350))
        await settle(pilot)
        assert text.visible_text()[0] == "line 500"


async def test_a_click_on_a_head_folds_and_one_on_the_rest_shows_more() -> None:
    async with shown([TextBlock("a", "one", "A"), TextBlock("b", numbered(300), "B")]) as (text, pilot):
        assert await pilot.click(VirtualText, offset=(3, 0))
        await settle(pilot)
        assert text.is_folded(0)
        assert await pilot.click(VirtualText, offset=(5, 5))
        await settle(pilot)
        assert text.cursor_key == "b"
        assert not text.is_folded(1)
        await pilot.press("end")
        await settle(pilot)
        assert await pilot.click(VirtualText, offset=(5, 11))
        await settle(pilot)
        assert text.virtual_size.height == 302


async def test_dragging_selects_text_without_its_layout() -> None:
    async with shown(CONVERSATION) as (text, pilot):
        await drag(pilot, (2, 2), (10, 3))
        assert pilot.app.screen.get_selected_text() == "Find the number of ordered pairs (a, b) with a"
        assert not text.is_folded(1)
        await drag(pilot, (6, 5), (6, 8))
        selected = pilot.app.screen.get_selected_text()
        assert selected is not None
        assert selected.startswith("m(1 for a in range(9)\n    if a % 7 == 3)\n▾ assistant")
        assert selected.endswith("851 tok\nThe c")
        await pilot.press("ctrl+c")
        assert pilot.app.clipboard == selected


async def test_a_double_click_selects_a_word() -> None:
    async with shown(CONVERSATION) as (text, pilot):
        assert await pilot.double_click(VirtualText, offset=(13, 2))
        assert pilot.app.screen.get_selected_text() == "number"
        selected = [segment for segment in text.render_line(2) if segment.text == "number"]
        assert len(selected) == 1


async def test_the_selection_is_dropped_when_its_text_is() -> None:
    async with shown(CONVERSATION) as (text, pilot):
        await pilot.double_click(VirtualText, offset=(13, 2))
        text.set_blocks(CONVERSATION)
        assert pilot.app.screen.get_selected_text() == "number"
        text.set_blocks(CONVERSATION[2:])
        assert pilot.app.screen.get_selected_text() is None


async def test_the_wheel_scrolls_without_moving_the_cursor() -> None:
    async with shown([TextBlock("a", numbered(100), "A"), TextBlock("b", "x", "B")]) as (text, pilot):
        text.post_message(wheel(text))
        await settle(pilot)
        assert text.scroll_offset.y > 0
        assert text.cursor == 0


HOSTILE = [
    "[/red] [bold [link=http://x]",
    "\x1b[31mred\x1b]0;title\x07 \x1b]52;c;aGk=\x07 \x9b2J \x90q",
    "日本語 e\u0301 👩\u200d👩\u200d👧\u200d👦 ❤\ufe0f 🇩🇪",
    "\u202eabc\u2066def \u200b \u2028 \x00 \ud800 \r \x08\x7f",
]


async def test_hostile_text_is_only_text() -> None:
    body = "\n".join(HOSTILE)
    blocks = [
        TextBlock(kind, body, f"{body} [/x]", body, kind, markdown=kind == "user", gutter="[/g]")
        for kind in ("user", "tool", "strange")
    ]
    async with heartbeat(), shown([*blocks, TextBlock("raw", body, no_head=True)], size=(61, 40)) as (text, pilot):
        text.search("[/red]")
        text.next_hit()
        await settle(pilot)
        joined = "".join(text.visible_text())
        assert "[/red] [bold [link=http://x]" in joined
        assert "␛[31mred␛]0;title␇" in joined
        forbidden = {chr(code) for code in (*range(32), *range(0x7F, 0xA0))} | set("\u202e\u2066\u200b\u2028\ud800")
        assert not forbidden & set(joined)
        await drag(pilot, (0, 0), (30, 20))
        assert not forbidden & set((pilot.app.screen.get_selected_text() or "").replace("\n", ""))


_SLOWER = ["x", "日本", "👩\u200d👩\u200d👧\u200d👦 ", "e\u0301", "\n"]


@pytest.mark.parametrize("unit", ["word ", "a\tb\x1b", *(pytest.param(unit, marks=pytest.mark.slow) for unit in _SLOWER)])
async def test_a_line_of_a_million_characters_never_blocks(unit: str) -> None:
    body = unit * (1_000_000 // len(unit))
    async with shown(size=(100, 30)) as (text, pilot), heartbeat(0.1):
        text.set_blocks([TextBlock("a", body, "A"), TextBlock("b", body, "B", folded=True)])
        await pilot.pause()
        assert text.visible_text()[0] == "▾ A"
        await pilot.press("end", "pageup", "W", "end", "W", "home")
        await settle(pilot)


@pytest.mark.slow
async def test_twenty_megabytes_never_block() -> None:
    body = "\n".join(f"{number} lorem ipsum “dolor” sit amet — consectetur" for number in range(420_000)) + "\nneedle"
    assert len(body) > 20_000_000
    async with shown(size=(100, 30)) as (text, pilot), heartbeat(0.1):
        text.set_blocks([TextBlock("a", body, "A")])
        await pilot.press("j")
        await settle(pilot)
        assert text.visible_text()[-1].startswith("  … about 4")
        await pilot.press("enter", "end", "enter", "end")
        await settle(pilot)
        text.search("needle")
        await settle(pilot, lambda: text.search_finished, seconds=60)
        assert text.hit_position == (0, 1)
        text.next_hit()
        await settle(pilot, lambda: "  needle" in text.visible_text(), seconds=60)
        assert text.hit_position == (1, 1)


async def test_thousands_of_blocks_never_block() -> None:
    blocks = [TextBlock(number, numbered(20), f"part {number}", markdown=number % 2 == 0) for number in range(3000)]
    async with shown(size=(100, 30)) as (text, pilot), heartbeat(0.1):
        text.set_blocks(blocks)
        await pilot.press("end", "k", "pageup", "e", "j", "e", "home")
        await settle(pilot)
        text.search("line 19")
        await settle(pilot, lambda: text.search_finished)
        assert text.hit_position == (0, 3000)
        text.previous_hit()
        await settle(pilot)
        assert text.cursor_key == 2999


async def test_a_log_that_grows_fast_never_blocks() -> None:
    async with shown(size=(100, 30), kept_lines=2000) as (text, pilot), heartbeat(0.1):
        for begin in range(0, 10_000, 400):
            text.append_lines(
                f"{number} INFO request done in {number % 97} ms " + "x" * (number % 300) for number in range(begin, begin + 400)
            )
            await pilot.pause(0.001)
        await settle(pilot)
        assert text.visible_text()[-1].endswith("x" * 50)


async def test_a_log_that_is_set_before_it_is_shown_begins_at_its_end() -> None:
    text = VirtualText()
    text.set_lines(f"line {number}" for number in range(500))
    async with Shelf(text).run_test(size=(41, 12)) as pilot:
        await settle(pilot)
        assert text.visible_text()[-1] == "line 499"
        text.set_blocks(CONVERSATION)
        await settle(pilot)
        assert not text.follow
        assert text.visible_text()[0].startswith("▸ system")


async def test_an_empty_text_takes_every_key() -> None:
    async with shown() as (text, pilot):
        await pilot.press("j", "k", "enter", "e", "W", "end", "home", "pagedown", "pageup", "up", "down", "left", "right")
        assert not text.next_hit()
        assert text.plain_text() == ""
        assert text.cursor_key is None
        text.set_blocks([TextBlock("a", "", no_head=True)])
        await pilot.press("j", "enter")
        await settle(pilot)
        assert text.visible_text() == [""] * 12


async def test_a_head_without_a_body_is_chosen_by_enter_and_by_a_click() -> None:
    blocks = [TextBlock("a", "body", "first"), TextBlock("b", head="second"), TextBlock("c", head="third")]
    async with shown(blocks) as (text, pilot):
        await pilot.press("enter", "j", "enter")
        assert text.is_folded(0)
        assert await pilot.click(VirtualText, offset=(3, 2))
        await settle(pilot)
        assert [message.key for message in heard(pilot, VirtualText.Chosen)] == ["b", "c"]


async def test_raw_text_scrolls_by_lines_and_enter_shows_more_of_it() -> None:
    async with shown([TextBlock("raw", numbered(500), no_head=True)]) as (text, pilot):
        await pilot.press("j", "j")
        assert text.visible_text()[0] == "line 2"
        await pilot.press("end", "enter")
        await settle(pilot)
        assert text.virtual_size.height == 500


async def test_heads_give_way_to_narrow_widths() -> None:
    blocks = [TextBlock("a", "body", "a long head that does not fit", "and more at the right")]
    for width in (5, 10, 20, 30):
        async with shown(blocks, size=(width, 5)) as (text, _):
            assert all(len(line) <= width - 1 for line in text.visible_text())
            assert text.visible_text()[0].startswith("▾ a")


async def test_styles_come_from_the_theme() -> None:
    async with shown(CONVERSATION) as (text, pilot):
        pilot.app.theme = "textual-light"
        await settle(pilot)
        light = text.render_line(8)._segments[1].style
        pilot.app.theme = "textual-dark"
        await settle(pilot)
        dark = text.render_line(8)._segments[1].style
        assert light is not None and dark is not None and light.color is not None and dark.color is not None
        assert Color.from_rich_color(light.color).brightness < Color.from_rich_color(dark.color).brightness


def test_the_plain_text_of_a_block() -> None:
    text = VirtualText(CONVERSATION)
    assert text.plain_text(3) == "assistant  851 tok\nThe count repeats with period 7."
    assert text.plain_text() == "system  312 tok\nYou solve problems.\nStep by step."


def wheel(text: VirtualText) -> events.MouseScrollDown:
    return events.MouseScrollDown(text, 3, 3, 0, 0, 0, False, False, False, screen_x=3, screen_y=3)


async def drag(pilot: Pilot[None], begin: tuple[int, int], end: tuple[int, int]) -> None:
    await pilot.mouse_down(offset=begin)
    await pilot.hover(offset=end)
    await pilot.mouse_up(offset=end)
    await pilot.pause()
