"""Rows of a document as segments; every text goes through the gate before it comes here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from backend.io.text import clean_line
from screens.widgets import glyphs
from screens.widgets.formatting import count
from screens.widgets.text_blocks import KINDS, MORE_TIMES, BlockLayout, Part
from screens.widgets.text_gate import fit
from screens.widgets.text_search import Hit, Search
from screens.widgets.wrapping import columns

HEAD_LIMIT = 500
_BODY_KINDS = ("reasoning", "error", "warning", "muted")
"""Kinds whose whole text is styled; the others style their head."""


@dataclass(frozen=True, slots=True)
class Pen:
    """What drawing a row depends on besides the row."""

    width: int
    base: Style
    style: Callable[[str], Style]
    """The partial style of a component: `head-right`, `user`, `hit`, …"""
    search: Search | None = None
    shift: int = 0
    """The column that lines which are not wrapped are drawn from."""


def row_segments(layout: BlockLayout, index: int, row: int, pen: Pen, cursor: Style | None = None) -> tuple[list[Segment], int]:
    """A row of a block, and how many of its characters are out of view at the left; `cursor` is the style where the cursor is."""
    part = layout.part(row)
    if part is Part.HEAD:
        return _head(layout, index, pen, cursor), 0
    if part is Part.MORE:
        style = pen.base + (pen.style("more") if cursor is None else cursor)
        return [Segment(fit(" " * layout.indent + more_text(layout), pen.width).rstrip(), style)], 0
    return _body_line(layout, index, row, pen)


def kind_of(layout: BlockLayout) -> str:
    """The kind of a block, if it is one."""
    return layout.block.kind if layout.block.kind in KINDS else "plain"


def more_text(layout: BlockLayout) -> str:
    """What is said about the lines that are cut off."""
    signs = glyphs.current()
    more, certain = layout.more, layout.total[1]
    growth = (layout.limit or 0) * (MORE_TIMES - 1)
    what = "shows them" if more <= growth else f"shows {count(growth)} of them"
    number = count(more) if certain else f"about {count(_rounded(more))}"
    return f"{signs.ellipsis} {number} more line{'' if more == 1 else 's'} (enter {what})"


def restyle(segments: Sequence[Segment], start: int, end: int, style: Style) -> list[Segment]:
    """Segments with a style laid over the characters from `start` to `end`."""
    result: list[Segment] = []
    at = 0
    for segment in segments:
        text, own = segment.text, segment.style
        size = len(text)
        left, right = max(0, min(size, start - at)), max(0, min(size, end - at))
        if left < right:
            over = own + style if own else style
            pieces = [Segment(text[:left], own), Segment(text[left:right], over), Segment(text[right:], own)]
            result += [piece for piece in pieces if piece.text]
        else:
            result.append(segment)
        at += size
    return result


def _head(layout: BlockLayout, index: int, pen: Pen, cursor: Style | None) -> list[Segment]:
    signs = glyphs.current()
    block = layout.block
    sign = (signs.folded if layout.folded else signs.unfolded) if layout.foldable else " "
    head = clean_line(block.head, HEAD_LIMIT)
    right = clean_line(block.head_right, HEAD_LIMIT)
    under = cursor or Style.null()
    style = pen.base + (cursor if cursor is not None else pen.style("head") + pen.style(kind_of(layout)))
    room = max(1, pen.width - 2)
    right = fit(right, min(cell_len(right), max(0, room - min(cell_len(head), room // 2) - 2))) if right else ""
    space = room - (cell_len(right) + 2 if right else 0)
    size = cell_len(head)
    if block.rule and size + 1 < space:
        head += " " + signs.rule * (space - size - 1)
    head = fit(head, space)
    segments = [Segment(f"{sign} ", style), *_lit(head, index, False, 0, style, pen)]
    if right:
        segments.append(Segment("  " + right, pen.base + (pen.style("head-right") if cursor is None else under)))
    return segments


def _body_line(layout: BlockLayout, index: int, row: int, pen: Pen) -> tuple[list[Segment], int]:
    kind = kind_of(layout)
    styled = kind in _BODY_KINDS or layout.block.no_head
    style = pen.base + pen.style(kind) if styled else pen.base
    segments: list[Segment] = []
    if layout.indent:
        segments.append(Segment(" " * (layout.indent - (2 if layout.block.gutter else 0)), pen.base))
    if layout.block.gutter:
        segments.append(Segment(glyphs.current().gutter + " ", pen.base + pen.style("gutter")))
    number = row - layout.body_row
    if layout.drawn is not None:
        return segments + [Segment(text, style + own if own else style) for text, own, _ in layout.drawn[number]], 0
    line = layout.line(row)
    if line is None or layout.wrapped is None:
        return [*segments, Segment(glyphs.current().neutral, pen.base + pen.style("muted"))], 0
    first = 0
    if layout.width > pen.width:
        line, first = columns(line, pen.shift, pen.width - layout.indent)
    return segments + _lit(line, index, True, layout.wrapped.starts[number] + first, style, pen), first


def _lit(text: str, index: int, in_body: bool, offset: int, style: Style, pen: Pen) -> list[Segment]:
    """Text that begins at `offset` of its body, with the hits in it lit."""
    segments = [Segment(text, style)] if text else []
    if pen.search is None:
        return segments
    number: int
    hit: Hit
    for number, hit in pen.search.within(index, in_body, offset, offset + len(text)):
        lit = pen.style("hit-current" if number == pen.search.current else "hit")
        segments = restyle(segments, max(0, hit.start - offset), max(0, hit.end - offset), lit)
    return segments


def _rounded(number: int) -> int:
    """An estimate does not pretend to more than two digits."""
    scale = 10 ** max(0, len(str(number)) - 2)
    return round(number / scale) * scale
