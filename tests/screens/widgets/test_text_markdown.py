import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from screens.widgets.text_blocks import can_draw_markdown
from screens.widgets.text_markdown import markdown_lines


def drawn(text: str, width: int = 40, ascii_only: bool = False) -> list[str]:
    return ["".join(segment.text for segment in line).rstrip() for line in markdown_lines(text, width, ascii_only=ascii_only)]


def styles(text: str) -> dict[str, Style | None]:
    return {segment.text.strip(): segment.style for line in markdown_lines(text, 60) for segment in line}


def test_the_usual_elements() -> None:
    text = "# Title\n\nSome *em* text\n\n* one\n* two\n\n> said\n\n```python\nx = 1\n    y\n```\n\n|a|b|\n|-|-|\n|1|2|"
    lines = [line for line in drawn(text) if line]
    assert lines == ["Title", "Some em text", " • one", " • two", "▌ said", "  x = 1", "      y", " a  b", " ────", " 1  2"]


def test_styles_are_attributes_without_colours_and_links() -> None:
    found = styles("**strong** and `code` and [link](http://x)\n\n```python\ndef f(): pass\n```\n\n---")
    assert found["strong"] == Style(bold=True)
    for style in found.values():
        assert style is None or (style.color is None and style.bgcolor is None and style.link is None)


def test_nothing_a_model_says_is_left_out() -> None:
    text = "<think>secret</think>\n\n<div>html</div>\n\n![picture](http://y) [link](http://x)"
    assert [line for line in drawn(text) if line] == [
        "<think>secret</think>",
        "<div>html</div>",
        "[picture] (http://y) link (http://x)",
    ]


def test_entities_cannot_smuggle_control_characters() -> None:
    text = "&#27;[31m &#x202e; &#155; [a](http://x/&#27;) `\x1b` <b>&#7;</b>"
    line = "".join(drawn(text, 80))
    assert not any(char < " " or "\x7f" <= char < "\xa0" or char == "\u202e" for char in line)
    assert "[31m" in line


def test_markup_of_rich_is_text() -> None:
    assert drawn("[/red] [bold] [link=http://x]y[/link]") == ["[/red] [bold] [link=http://x]y[/link]"]


def test_only_ascii_where_wanted() -> None:
    text = "* one\n\n> said\n\n|a|b|\n|-|-|\n|1|2|\n\n---"
    assert "".join(drawn(text, ascii_only=True)).isascii()


def test_large_or_twisted_texts_are_not_drawn() -> None:
    assert can_draw_markdown("word *em* " * 100)
    assert not can_draw_markdown("x" * 100_000)
    assert not can_draw_markdown("[" * 50_000)
    assert not can_draw_markdown("|a|b|\n" * 5_000)


def test_a_cancelled_drawing_gives_nothing() -> None:
    assert markdown_lines("a\n\nb", 20, cancelled=lambda: True) == []


@settings(max_examples=60, deadline=None)
@given(text=st.text("ab*_`#>-|[]()! \n\t\x1b&;1.日é", max_size=200), width=st.integers(4, 40))
def test_lines_fit_whatever_is_drawn(text: str, width: int) -> None:
    for line in markdown_lines(text, width):
        assert cell_len("".join(segment.text for segment in line)) <= width
        assert all(isinstance(segment, Segment) and "\n" not in segment.text and "\x1b" not in segment.text for segment in line)


@pytest.mark.parametrize("text", ["- " * 40_000, "\\" * 90_000, "1. " * 30_000, "    " * 20_000, "日本" * 40_000])
def test_hostile_texts_end(text: str) -> None:
    assert can_draw_markdown(text)
    markdown_lines(text, 80)
