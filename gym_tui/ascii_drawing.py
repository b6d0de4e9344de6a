"""Drawing with ASCII only: borders, bars and signs are replaced as the last step before the terminal.

One place instead of a rule per widget, so that what Textual draws by itself (toasts, scrollbars, borders) is covered too.
What stays is text of the user's: letters of any script.
"""

from __future__ import annotations

from dataclasses import fields

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter
from textual.scrollbar import ScrollBarRender

from screens.widgets.glyphs import ASCII, UNICODE


class PlainScrollBar(ScrollBarRender):
    """A scrollbar of whole cells."""

    VERTICAL_BARS = [" "] * 8
    HORIZONTAL_BARS = [" "] * 8


class AsciiFilter(LineFilter):
    """Replaces drawing characters by ASCII ones of the same width."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.text.isascii() else Segment(segment.text.translate(_TABLE), segment.style, segment.control)
            for segment in segments
        ]


def _table() -> dict[int, str]:
    drawn = {0x2500 + offset: "+" for offset in range(0x80)}  # box drawing: corners and crossings
    drawn |= dict.fromkeys(map(ord, "─━┄┅┈┉╌╍═╴╶╸╺╼╾"), "-")
    drawn |= dict.fromkeys(map(ord, "│┃┆┇┊┋╎╏║╵╷╹╻╽╿"), "|")
    drawn |= dict.fromkeys(range(0x2580, 0x25A0), "#")  # block elements
    drawn |= dict.fromkeys(map(ord, "▁▂▔▏▕"), " ")
    drawn |= dict.fromkeys(map(ord, "▌▐▍▎▊▋"), "|")
    drawn |= dict.fromkeys(map(ord, "░▒"), ".")
    drawn |= dict(zip(map(ord, "▲▼↑↓←→•◆◇▪≤≥≈“”‘’"), "^v^v<>*o.*<>~\"\"''", strict=True))
    drawn |= dict.fromkeys(range(0x2400, 0x2427), "?")  # pictures of control characters
    drawn |= dict.fromkeys((0x240D, 0x2424, 0x23CE), "<")
    drawn[0xFFFD] = "?"
    drawn |= {ord(getattr(UNICODE, field.name)): getattr(ASCII, field.name) for field in fields(UNICODE)}
    return drawn


_TABLE = _table()
