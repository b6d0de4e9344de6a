"""What is selected with the mouse: places of a document as offsets of Textual's selection, and the text between two of them.

Textual counts lines. A block's rows get numbers of their own range, so that a selection stays on its text when blocks above grow.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from textual.geometry import Offset
from textual.selection import Selection

from screens.widgets.text_blocks import Document, Part, Spot

_ROWS = 1 << 40
_WORD = re.compile(r"\w+|[^\w\s]+")


def spot_offset(spot: Spot) -> int:
    """The line number of a row for Textual."""
    return spot.block * _ROWS + spot.row


def row_of(offset: Offset) -> Spot:
    """The row with a line number."""
    return Spot(*divmod(offset.y, _ROWS))


def word_at(text: str, position: int) -> tuple[int, int] | None:
    """The word, or the run of signs, around a character; None among blanks."""
    return next((found.span() for found in _WORD.finditer(text) if found.start() <= position < found.end()), None)


def selected_text(document: Document, selection: Selection, drawn_head: Callable[[Spot], str]) -> str:
    """The text of a selection. Lines that were only broken by the layout are joined again, and indents are left out."""
    if not document.height:
        return ""
    last_index = len(document) - 1
    first = row_of(selection.start) if selection.start is not None else Spot(0, 0)
    last = row_of(selection.end) if selection.end is not None else Spot(last_index, document.layouts[last_index].height - 1)
    begin = selection.start.x if selection.start is not None else 0
    parts: list[str] = []
    for spot in _rows_between(document, first, last):
        layout = document.layouts[spot.block]
        part = layout.part(spot.row)
        if part is Part.MORE:
            continue
        indent = layout.indent if part is Part.BODY else 0
        text = (layout.line(spot.row) or "") if part is Part.BODY else drawn_head(spot).rstrip()
        start = max(0, begin - indent) if spot == first else 0
        end = max(0, selection.end.x - indent) if selection.end is not None and spot == last else len(text)
        parts.append(text[start:end])
        parts.append(_between(document, spot, part))
    return "".join(parts[:-1])


def _rows_between(document: Document, first: Spot, last: Spot) -> list[Spot]:
    spots = []
    for index in range(max(0, first.block), min(last.block, len(document) - 1) + 1):
        height = document.layouts[index].height
        begin = first.row if index == first.block else 0
        end = last.row if index == last.block else height - 1
        spots += [Spot(index, row) for row in range(begin, min(end, height - 1) + 1)]
    return spots


def _between(document: Document, spot: Spot, part: Part) -> str:
    """What stands between a row and the next one in the text itself."""
    layout = document.layouts[spot.block]
    number = spot.row - layout.body_row
    if part is Part.BODY and layout.drawn is None and layout.wrapped is not None and number < len(layout.wrapped.lines):
        return layout.wrapped.gap_after(number)
    return "\n"
