from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, split_graphemes

from backend.io.text import clean
from screens.widgets.wrapping import PIECE, WrappedText, clean_pieces, columns, estimate_lines, grapheme_end

ALL = 1 << 62
FAMILY = "👩\u200d👩\u200d👧\u200d👦"

_WORDS = ["a", "word", "x" * 40, " ", "   ", "\n", "\t", "\r\n", "é", "e\u0301", "“", "—", "日本語", "ｆ", "ก็", "한국"]
_SIGNS = [FAMILY, "❤\ufe0f", "👍🏽", "🇩🇪", "🇩", "\x00", "\x9b", "\u202e", "\u200b", "\u200d", "\ufe0f", "\u2028", "\ud800"]
HOSTILE = st.one_of(st.text(), st.lists(st.sampled_from(_WORDS + _SIGNS), max_size=60).map("".join))


def wrapped(text: str, width: int) -> WrappedText:
    result = WrappedText(text, width)
    result.extend(ALL, ALL)
    return result


def lines(text: str, width: int) -> list[str]:
    return wrapped(text, width).lines


def test_lines_break_at_blanks() -> None:
    assert lines("the quick brown fox", 10) == ["the quick", "brown fox"]
    assert lines("the quick brown fox", 9) == ["the quick", "brown fox"]
    assert lines("one  two", 5) == ["one", "two"]


def test_words_wider_than_a_line_are_broken() -> None:
    assert lines("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert lines("ab cdefghij k", 4) == ["ab", "cdef", "ghij", "k"]


def test_leading_blanks_stay() -> None:
    assert lines("    return x + y", 10) == ["    return", "x + y"]
    assert lines("  a\n      b", 10) == ["  a", "      b"]
    assert lines("\tx", 10) == ["    x"]


def test_ends_of_the_text() -> None:
    assert lines("", 10) == []
    assert lines("\n", 10) == [""]
    assert lines("a\n\nb\n", 10) == ["a", "", "b"]
    assert lines("a\r\nb", 10) == ["a", "b"]
    assert lines("abcd \nx", 4) == ["abcd", "x"]
    assert lines("abcd    ", 4) == ["abcd"]


def test_wide_characters_take_two_cells() -> None:
    assert lines("日本語テキスト", 5) == ["日本", "語テ", "キス", "ト"]
    assert lines("a日本", 4) == ["a日", "本"]


def test_what_is_drawn_as_one_character_is_not_split() -> None:
    assert lines("e\u0301" * 3, 2) == ["e\u0301e\u0301", "e\u0301"]
    assert lines(FAMILY * 3, 4) == [FAMILY * 2, FAMILY]
    assert lines("❤\ufe0f" * 3, 4) == ["❤\ufe0f" * 2, "❤\ufe0f"]
    assert lines("🇩🇪🇫🇷🇮🇹", 4) == ["🇩🇪🇫🇷", "🇮🇹"]


def test_control_characters_come_out_as_pictures() -> None:
    assert lines("\x1b]0;title\x07 \x9b2J \u202eabc", 40) == ["␛]0;title␇ \ufffd2J \ufffdabc"]


def test_only_the_lines_that_are_asked_for_are_found() -> None:
    text = WrappedText("word " * 1_000_000, 50)
    text.extend(20, ALL)
    assert len(text.lines) == 20
    assert not text.finished
    assert abs(text.rest - 100_000) < 2_000
    spent = text.extend(ALL, 50_000)
    assert 50_000 <= spent < 200_000
    assert not text.finished


def test_characters_are_found_again_in_lines() -> None:
    text = wrapped("the quick brown fox\njumps", 10)
    assert list(text.starts) == [0, 10, 20]
    assert [text.line_of(offset) for offset in (0, 9, 10, 19, 20, 99)] == [0, 0, 1, 1, 2, 2]
    assert [text.gap_after(line) for line in range(3)] == [" ", "\n", "\n"]


def test_pieces_join_to_the_clean_text() -> None:
    text = ("x" * 70 + "\r\n\ty\x1b\n") * 2000
    pieces = list(clean_pieces(text))
    assert len(pieces) > 3
    assert "".join(pieces) == clean(text)
    one_line = FAMILY * 20_000
    assert "".join(clean_pieces(one_line)) == clean(one_line)
    assert "".join(clean_pieces(("a" * (PIECE - 1) + "\r\n") * 3)) == ("a" * (PIECE - 1) + "\n") * 3


def test_estimates_are_of_the_right_size() -> None:
    assert estimate_lines("", 80) == 0
    assert 50_000 <= estimate_lines("a\n" * 50_000, 80) < 51_000
    assert estimate_lines("x" * 800_000, 80) == 10_000


@given(text=HOSTILE, width=st.integers(2, 30))
def test_no_line_is_wider_than_the_width(text: str, width: int) -> None:
    result = wrapped(text, width)
    assert all(cell_len(line) <= width for line in result.lines)
    assert all("\n" not in line for line in result.lines)


@given(text=HOSTILE, width=st.integers(2, 30))
def test_nothing_but_blanks_at_breaks_is_lost(text: str, width: int) -> None:
    result = wrapped(text, width)
    whole = clean(text)
    position = 0
    for number, line in enumerate(result.lines):
        assert result.starts[number] == position
        assert whole[position : position + len(line)] == line
        following = result.starts[number + 1] if number + 1 < len(result.lines) else len(whole)
        gap = whole[position + len(line) : following]
        assert gap.strip(" ") in (("", "\n") if result.ended[number] else ("",))
        position = following


@given(text=HOSTILE, width=st.integers(2, 30), budgets=st.lists(st.integers(1, 500), max_size=20))
def test_slices_give_the_same_lines(text: str, width: int, budgets: list[int]) -> None:
    sliced = WrappedText(text, width)
    for budget in budgets:
        sliced.extend(ALL, budget)
    sliced.extend(ALL, ALL)
    assert sliced.lines == lines(text, width)
    assert sliced.rest == 0


@given(text=HOSTILE)
def test_graphemes_cover_the_text_and_keep_together_what_rich_does(text: str) -> None:
    whole = clean(text)
    ends, index = set(), 0
    while index < len(whole):
        index, size = grapheme_end(whole, index, len(whole))
        assert size >= 0
        ends.add(index)
    assert not whole or len(whole) in ends
    flags = {i + 1 for i in range(len(whole) - 1) if "\U0001f1e6" <= whole[i] <= "\U0001f1ff"}
    assert {end for _, end, _ in split_graphemes(whole)[0]} - ends <= flags


def test_columns_of_a_line() -> None:
    assert columns("abcdef", 2, 3) == ("cde", 2)
    assert columns("abc", 5, 3) == ("", 3)
    assert columns("日本語", 0, 5) == ("日本", 0)
    assert columns("日本語", 2, 4) == ("本語", 1)
    assert columns("日本語x", 3, 4) == (" 語x", 1)
    assert columns(f"a{FAMILY}b", 1, 2) == (FAMILY, 1)


@given(text=HOSTILE, begin=st.integers(0, 20), width=st.integers(1, 20))
def test_columns_never_take_more_than_the_width(text: str, begin: int, width: int) -> None:
    for line in lines(text, 30):
        part, first = columns(line, begin, width)
        assert cell_len(part) <= width
        assert part.strip(" ") in line[first:]
