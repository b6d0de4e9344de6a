"""Long text in lines of so many cells, found piece by piece: nobody waits for the end of a text whose beginning is shown.

Widths are the terminal's (`rich.cells.cell_len`): wide characters take two cells, combining ones none, and what a joiner or a variation
selector ties together stays together.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator

from rich.cells import cell_len, get_character_cell_size

from backend.io.text import clean

PIECE = 8192
"""Characters that go through the gate at a time: 0.1 ms of work, or 10 ms when every one of them has to be replaced."""
SLOW = 12
"""How many times as long a character takes that has to be measured,"""
SLOWEST = 60
"""and one that may be tied to its neighbours."""
GATE = 25
"""The same for the gate, at its worst."""
LINE_COST = 80
"""What a line costs besides its characters."""

_JOINER = "\u200d"
_SELECTOR = "\ufe0f"
_TIED = re.compile("[\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_TO_MEASURE = re.compile(
    "[^\n\x20-\x7e\xa0-\xac\xae-\u02ff\u0370-\u0373\u0376\u0377\u1e00-\u1eff\u2010-\u2027\u2030-\u205e\u2070\u2071\u2074-\u208e"
    "\u2190-\u2199\u2200-\u22ff\u2500-\u25ef\u0391-\u03a1\u03a3-\u03ff\u0400-\u0482\ufffd]"
)
"""Everything but what is certainly one cell wide; a guess to the safe side, so that most text is only counted."""
_TYING = re.compile(
    "[^\n\x20-\x7e\xa0-\xac\xae-\u02ff\u0370-\u0373\u0376\u0377\u0391-\u03a1\u03a3-\u03ff\u0400-\u0482\u1e00-\u1eff\u2010-\u2027\u2030-\u205e"
    "\u2190-\u25ef\u3000-\u3029\u3030-\u303e\u3041-\u3096\u30a0-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60\ufffd]"
)
"""Likewise: everything but what certainly stands alone."""
_BLANKS = re.compile(" *")
get_character_cell_size("日")  # loads a table, which would hold up the first text to be drawn
_FLAGS = ("\U0001f1e6", "\U0001f1ff")


def clean_pieces(text: str, size: int = PIECE) -> Iterator[str]:
    """`text` through the gate, in pieces of about `size` characters that end with a line where they can.

    Joined they are `clean(text)`, but for tab stops in lines longer than a piece.
    """
    begin = 0
    while begin < len(text):
        end = begin + size
        if end < len(text):
            newline = text.rfind("\n", begin, end)
            if newline >= begin:
                end = newline + 1
            else:
                end += text[end - 1] == "\r"
                until = end + 64
                while end < min(len(text), until) and (_TIED.match(text, end - 1) or _TIED.match(text, end)):
                    end += 1
        yield clean(text[begin:end])
        begin = end


def grapheme_end(text: str, begin: int, limit: int) -> tuple[int, int]:
    """Where what is drawn as one character ends (not after `limit`), and how many cells it takes."""
    char = text[begin]
    end = begin + 1
    tied = False
    while end < limit:
        follower = text[end]
        if follower == _JOINER:
            end = min(end + 2, limit)
            tied = True
        elif follower == _SELECTOR:
            end += 1
            tied = True
        elif get_character_cell_size(follower) == 0 or (_is_flag(char) and _is_flag(follower) and end == begin + 1):
            end += 1
        else:
            break
    if tied or _is_flag(char):
        return end, cell_len(text[begin:end])
    return end, get_character_cell_size(char)


def columns(text: str, begin: int, width: int) -> tuple[str, int]:
    """The part of a line from column `begin` on, of at most `width` cells, and the index of its first character.

    A wide character that the beginning cuts in half is left out, with a blank in its place.
    """
    if text.isascii() or not _TO_MEASURE.search(text):
        return text[begin : begin + width], min(begin, len(text))
    cells, index, first, padding = 0, 0, len(text), ""
    while index < len(text):
        if cells >= begin and first == len(text):
            first, padding = index, " " * (cells - begin)
        end, size = grapheme_end(text, index, len(text))
        if cells + size > begin + width:
            break
        cells += size
        index = end
    return padding + text[first:index], max(0, first - len(padding))


def estimate_lines(text: str, width: int) -> int:
    """About how many lines a text takes, from its beginning and its length."""
    if not text:
        return 0
    sample = min(len(text), 8192)
    ends = text.count("\n", 0, sample)
    return max(1, round(len(text) / sample * (ends + (sample - ends) / max(width, 2) * (0.5 if ends else 1.0))))


class WrappedText:
    """The lines of a text, as many of them as have been asked for.

    Lines break at blanks, and inside words that are wider than a line. Blanks at a break vanish; those at the beginning of a line of the
    text stay. A final newline does not begin another line.
    """

    __slots__ = (
        "_at",
        "_base",
        "_buffer",
        "_drained",
        "_length",
        "_source",
        "_to_measure",
        "_tying",
        "ended",
        "finished",
        "lines",
        "starts",
        "widest",
        "width",
    )

    def __init__(self, text: str, width: int) -> None:
        self.width = max(2, width)
        self.lines: list[str] = []
        self.starts = array("Q")
        """Where each line begins, in characters of the clean text."""
        self.ended = bytearray()
        """1 for each line that the text itself ends; 0 where it was broken."""
        self.widest = 0
        """Cells of the widest line so far; a few more where blanks were dropped at its end."""
        self.finished = not text
        self._source = clean_pieces(text)
        self._length = len(text)
        self._buffer = ""
        self._at = 0
        self._base = 0
        self._drained = False
        self._to_measure = self._tying = -1

    def extend(self, lines: int, budget: int) -> int:
        """Find lines until there are `lines` of them or about `budget` is spent; returns what was spent.

        The unit is a character that needs no measuring, about 15 ns.
        """
        spent = 0
        while not self.finished and len(self.lines) < lines and spent < budget:
            spent += self._find_line()
        return spent

    @property
    def rest(self) -> int:
        """About how many lines are still to be found; 0 when all are."""
        if self.finished:
            return 0
        found = self._base + self._at
        if not found:
            return max(1, self._length // self.width)
        return max(1, round(max(0, self._length - found) * len(self.lines) / found))

    def covers(self, offset: int) -> bool:
        """Whether the line with this character of the clean text has been found."""
        return self.finished or offset < self._base + self._at

    def line_of(self, offset: int) -> int:
        """The line that has a character of the clean text; the last known one for what comes later."""
        return max(0, bisect_right(self.starts, offset) - 1)

    def gap_after(self, line: int) -> str:
        """What stands in the text between a line and the next one."""
        if self.ended[line]:
            return "\n"
        if line + 1 >= len(self.lines):
            return ""
        return " " * (self.starts[line + 1] - self.starts[line] - len(self.lines[line]))

    def _find_line(self) -> int:
        window = 4 * self.width + 64
        spent = LINE_COST
        while len(self._buffer) - self._at < window and not self._drained:
            spent += self._refill()
        buffer, at = self._buffer, self._at
        if at >= len(buffer):
            self.finished = True
            return spent
        end, cells, cost = self._fitting(at, min(len(buffer), at + window))
        newline = buffer.find("\n", at, end + 1)
        if newline >= 0:
            stop, following, ended = newline, newline + 1, 1
        elif end >= len(buffer):
            stop, following, ended = end, end, 1
        else:
            stop, following, ended = self._break(at, end)
        self.lines.append(buffer[at:stop])
        self.starts.append(self._base + at)
        self.ended.append(ended)
        self.widest = max(self.widest, min(cells, stop - at) if cost == self.width else cells)
        self._at = following
        if self._drained and following >= len(buffer):
            self.finished = True
        return spent + cost

    def _refill(self) -> int:
        piece = next(self._source, None)
        if piece is None:
            self._drained = True
            return 0
        self._buffer = self._buffer[self._at :] + piece
        self._base += self._at
        self._at = 0
        self._to_measure = self._tying = -1
        return len(piece) * (1 if piece.isascii() else GATE)

    def _fitting(self, at: int, limit: int) -> tuple[int, int, int]:
        """Where a line that begins at `at` must end at the latest, the cells until there, and what finding it costs."""
        plain = at + self.width
        buffer = self._buffer
        if self._to_measure < at:
            self._to_measure = self._next(_TO_MEASURE, at)
        if self._to_measure > plain:
            return min(plain, len(buffer)), self.width, self.width
        newline = buffer.find("\n", at, limit)
        limit = newline if newline >= 0 else limit
        if self._tying < at:
            self._tying = self._next(_TYING, at)
        cells, index = 0, at
        alone = min(limit, self._tying - 1)
        while index < alone:
            size = get_character_cell_size(buffer[index])
            if cells + size > self.width:
                return index, cells, SLOW * (index - at)
            cells += size
            index += 1
        while index < limit:
            end, size = grapheme_end(buffer, index, limit)
            if cells + size > self.width and index > at:
                break
            cells += size
            index = end
        return index, cells, SLOWEST * (index - at)

    def _next(self, pattern: re.Pattern[str], at: int) -> int:
        """Where the next such character is; behind everything when there is none."""
        found = None if self._buffer.isascii() else pattern.search(self._buffer, at)
        return found.start() if found else len(self._buffer) + self.width + 1

    def _break(self, at: int, end: int) -> tuple[int, int, int]:
        """Break before `end`, which is the last possible place: the line's end, the next one's begin, and whether the text ends there."""
        buffer = self._buffer
        blank = end if buffer[end] == " " else buffer.rfind(" ", at, end)
        line = buffer[at:blank].rstrip(" ") if blank > at else ""
        if not line:
            return end, end, 0
        found = _BLANKS.match(buffer, blank)
        following = found.end() if found else blank
        if following < len(buffer) and buffer[following] == "\n":
            return at + len(line), following + 1, 1
        if following >= len(buffer) and self._drained:
            return at + len(line), following, 1
        return at + len(line), following, 0


def _is_flag(char: str) -> bool:
    return _FLAGS[0] <= char <= _FLAGS[1]
