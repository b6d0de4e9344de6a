"""Plain tables: aligned columns, no frames, fitted to a width where one is given."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_GAP = "  "
_ELLIPSIS = "…"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None) -> str:
    """Rows under headers. With `width`, the last column is shortened until the lines fit; text that looks like a number is right-aligned."""
    cells = [list(headers), *[[_one_line(cell) for cell in row] for row in rows]]
    widths = [max(cell_width(row[column]) for row in cells) for column in range(len(headers))]
    numeric = [all(_is_number(row[column]) for row in cells[1:]) and len(cells) > 1 for column in range(len(headers))]
    if width is not None:
        others = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
        widths[-1] = max(8, min(widths[-1], width - others))
    lines = []
    for row in cells:
        padded = [_fit(cell, size, right=right) for cell, size, right in zip(row, widths, numeric, strict=True)]
        lines.append(_GAP.join(padded).rstrip())
    return "\n".join(lines)


def cell_width(text: str) -> int:
    """Terminal columns that `text` takes."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _fit(text: str, width: int, *, right: bool) -> str:
    if cell_width(text) > width:
        kept = ""
        for char in text:
            if cell_width(kept + char) > width - 1:
                break
            kept += char
        text = kept + _ELLIPSIS
    padding = " " * (width - cell_width(text))
    return padding + text if right else text + padding


def _one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _is_number(text: str) -> bool:
    return bool(text) and text.replace(".", "", 1).replace("-", "", 1).isdigit()
