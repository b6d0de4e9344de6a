"""Text that models and servers bring along, made safe to draw."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backend.io.text import cell_width, clean, clean_line, printable

any_text = st.text(st.characters(exclude_categories=())) | st.text(
    st.sampled_from("a\t\r\n\x1b\x85\u200b\u200d\u202e\u2028\ufe0f\U000e0041\U000e0101é漢👩\ud800 ")
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("\x1b[2Jgone\rback", "␛[2Jgone␍back"),
        ("a\x9b1mb\x7f\x00", "a\ufffd1mb␡␀"),
        ("a\u202edcb\u2066x\u200f", "a\ufffddcb\ufffdx\ufffd"),
        ("4\u200b2 \u20604\ufeff", "4\ufffd2 \ufffd4\ufffd"),
        ("a\u2028b\u2029c", "a␤b␤c"),
        ("x\ud800y", "x\ufffdy"),
        ("one\r\ntwo\r\r\n", "one\ntwo␍\n"),
        ("hid\U000e0068\U000e0069", "hid\ufffd\ufffd"),
    ],
)
def test_what_drives_a_terminal_or_hides_becomes_a_picture(text: str, shown: str) -> None:
    assert clean(text) == shown


@pytest.mark.parametrize("text", ["👩\u200d💻", "❤\ufe0f", "1\ufe0f\u20e3", "نمی\u200cخواهم", "क्\u200dष", "漢\U000e0100"])
def test_joiners_and_selectors_stay_where_scripts_and_emoji_need_them(text: str) -> None:
    assert clean(text) == text


def test_joiners_and_selectors_that_only_hide_something_are_shown() -> None:
    assert clean("4\u200d2") == "4\ufffd2"
    assert clean("x\ufe0f\ufe01\ufe02") == "x\ufe0f\ufffd\ufffd"
    assert clean("a\U000e0101") == "a\ufffd"


def test_tabs_go_to_the_next_stop_of_their_line() -> None:
    assert clean("a\tb\nabcde\tf") == "a   b\nabcde   f"
    assert clean("漢\tb\té") == "漢  b   é"
    assert clean("a\tb", tab_width=8) == "a       b"


def test_a_cell_has_one_line() -> None:
    assert clean_line("  one \n\n two\tthree\r\n") == "one ⏎ two three"
    assert clean_line("abcdef", 4) == "abc…"
    assert clean_line("abcd", 4) == "abcd"
    assert clean_line("x" * 10_000_000, 3) == "xx…"
    assert clean_line("abc", 0) == ""


def test_width_counts_columns() -> None:
    assert (cell_width("abc"), cell_width("漢字"), cell_width("e\u0301")) == (3, 4, 1)


@given(any_text, st.integers(1, 8))
@example("\r\r\n\t", 4)
def test_clean_text_is_harmless_and_stays_what_it_is(text: str, tab_width: int) -> None:
    result = clean(text, tab_width=tab_width)
    assert all(char == "\n" or unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp") for char in result)
    assert not set(result) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\u200e\u200f\ufeff")
    assert clean(result, tab_width=tab_width) == result
    assert len(text.replace("\r\n", "\n")) <= len(result) <= tab_width * len(text)
    assert result.splitlines() == result.removesuffix("\n").split("\n") or not result


@given(any_text)
def test_printable_text_has_as_many_characters(text: str) -> None:
    result = printable(text)
    assert len(result) == len(text)
    assert printable(result) == result


@given(any_text, st.integers(0, 30))
def test_a_cell_keeps_to_its_limit(text: str, limit: int) -> None:
    result = clean_line(text, limit)
    assert len(result) <= limit
    assert not set(result) & set("\n\t\r")
