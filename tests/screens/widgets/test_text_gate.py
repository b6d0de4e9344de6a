"""Untrusted text on its way to the screen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.content import Content

from backend.io.text import clean_line
from screens.widgets import glyphs
from screens.widgets.text_gate import fit, one_line, safe, safe_line

HOSTILE = "[/red] [bold \x1b]0;owned\x07\x9b31m\x00‮x[@click=app.quit]y[/]"


def test_markup_and_controls_stay_visible_and_do_nothing() -> None:
    for content in (safe(HOSTILE), safe_line(HOSTILE), safe(HOSTILE, "$error")):
        assert isinstance(content, Content)
        assert content.plain.startswith("[/red] [bold ␛]0;owned␇")
        assert "[@click=app.quit]y[/]" in content.plain
        assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char == "‮" for char in content.plain)
    assert safe(HOSTILE).spans == []


def test_lines_are_kept_or_joined() -> None:
    assert safe("a\nb").plain == "a\nb"
    assert safe_line("a\nb").plain == "a ⏎ b"
    assert one_line("  a\n b") == "  a  b"


def test_fit_pads_and_shortens() -> None:
    assert fit("abc", 5) == "abc  "
    assert fit("abc", 5, right=True) == "  abc"
    assert fit("abcdef", 4) == "abc…"
    assert fit("abcdef", 4, keep_end=True) == "…def"
    assert fit("日本語", 4) == "日 …"
    assert fit("日本語", 4, keep_end=True) == "… 語"
    assert fit("abc", 0) == "" and fit("", 0) == "" and fit("abc", 1) == "…"


def test_the_sign_of_shortening_is_ascii_when_that_is_wanted() -> None:
    glyphs.use(glyphs.ASCII)
    assert fit("abcdef", 4) == "abc~"


@given(st.text(max_size=60), st.integers(0, 40), st.booleans(), st.booleans())
def test_fitted_text_has_exactly_the_width(text: str, width: int, right: bool, keep_end: bool) -> None:
    fitted = fit(clean_line(text), width, right=right, keep_end=keep_end)
    assert cell_len(fitted) == width


@given(st.text(max_size=80))
def test_no_text_becomes_markup_or_control(text: str) -> None:
    content = safe_line(text)
    assert content.spans == [] and "\n" not in content.plain
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in safe(text).plain.replace("\n", ""))
