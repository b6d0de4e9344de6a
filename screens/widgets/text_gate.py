"""The second gate for text from models, servers and files: after `clean` has removed what drives a terminal, it must not become markup."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from backend.io.text import clean, clean_line
from screens.widgets import glyphs

MUTED = "$foreground 65%"
"""Style of what matters less. `$text-muted` is an automatic colour, which content draws at full strength."""


LONGEST_LINE = 1000
"""Characters of a line that is drawn as it is; no terminal is wider."""
_LONGEST_TEXT = 20_000


def safe(text: str, style: str = "") -> Content:
    """Text for a widget, of several lines if it has them; `style` is ours (a theme style such as `$error` or `bold`).

    Only the first 20,000 characters: what may be longer belongs in a `VirtualText`.
    """
    shown = clean(text[:_LONGEST_TEXT])
    return Content.styled(shown, style) if style else Content(shown)


def safe_line(text: str, style: str = "") -> Content:
    """Text for a title, a label or a notice: one line of at most 1,000 characters."""
    shown = clean_line(text, LONGEST_LINE)
    return Content.styled(shown, style) if style else Content(shown)


def one_line(text: str) -> str:
    """Clean text on one line of at most 1,000 characters, with its blanks kept."""
    return clean(text[:LONGEST_LINE]).replace("\n", " ")


def fit(text: str, width: int, *, right: bool = False, keep_end: bool = False) -> str:
    """One line of clean text in exactly `width` cells: padded, or shortened with an ellipsis at the end (or at the beginning)."""
    size = cell_len(text)
    if size <= width:
        padding = " " * (width - size)
        return padding + text if right else text + padding
    if width <= 0:
        return ""
    sign = glyphs.current().ellipsis
    if keep_end:
        return sign + _last_cells(text, width - 1)
    return set_cell_size(text, width - 1) + sign


def _last_cells(text: str, width: int) -> str:
    if width <= 0:
        return ""
    begin = max(0, len(text) - width)  # a character takes a cell or two, or none
    while cell_len(text[begin:]) > width:
        begin += 1
    kept = text[begin:]
    return " " * (width - cell_len(kept)) + kept
