"""Words in the raw text of rows, by bytes: fast enough for gigabytes, and resumable."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from backend.io.json_codec import dumps, dumps_ascii
from backend.io.line_index import CHUNK_BYTES, LineIndex
from backend.rollouts.rollout_query import Word

_NEIGHBOURS, _SPREAD = 16, 8
"""Rows are read together when the next 16 that are asked about are among the next 128."""
_ROWS_PER_CLOCK = 16


class Needle:
    """A text as JSON files write it: with UTF-8 or with `\\u` escapes.

    Capitals count when there is one in the text; otherwise ASCII letters are found in either case. The text of keys and numbers is
    searched too: rows are searched as they are in the file.
    """

    def __init__(self, text: str) -> None:
        self._any_case = text == text.lower()
        forms = {dumps(text)[1:-1], dumps_ascii(text)[1:-1]}
        self._forms = tuple(form.lower() if self._any_case else form for form in forms)
        self.longest = max(map(len, forms))

    def find(self, data: bytes) -> int:
        """Where the text occurs first; -1 when it does not."""
        return self._search(data, first=True)

    def find_last(self, data: bytes) -> int:
        return self._search(data, first=False)

    def _search(self, data: bytes, *, first: bool) -> int:
        if self._any_case:
            data = data.lower()
        if first:
            return min((at for form in self._forms if (at := data.find(form)) >= 0), default=-1)
        return max(data.rfind(form) for form in self._forms)

    def is_in_row(self, index: LineIndex, row: int) -> bool:
        """Whether a row contains the text, whatever its size."""
        offset, size = index.span(row)
        overlap = self.longest - 1
        end = offset + size
        while offset < end:
            piece = index.read_range(offset, min(CHUNK_BYTES + overlap, end - offset))
            if self.find(piece) >= 0:
                return True
            if not piece:
                return False
            offset += CHUNK_BYTES
        return False


@dataclass(frozen=True, slots=True)
class SearchStep:
    """How far a search has come."""

    row: int | None
    """The row that was found."""
    next_row: int
    """Where to go on, in the same direction."""
    finished: bool
    """Nothing is left in this direction."""


class Rows(Protocol):
    """Rows by number, of one or several files."""

    def __len__(self) -> int: ...

    def run_of(self, row: int) -> tuple[LineIndex, int, int, int]:
        """The file of a row, its number there, and how many rows of the same file follow and precede it without a gap in the numbers."""


class RowTexts:
    """Whether rows contain a text, for rows asked about in ascending order: neighbours are read together."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._first = self._end = 0
        self._data = b""
        self._bounds: list[int] = []
        self._absent: set[Needle] = set()
        """Texts that no row of the block contains."""

    def contain(self, row: int, needle: Needle, *, ahead: bool) -> bool:
        """Whether `row` contains the text; `ahead` tells that rows right after it will be asked about as well."""
        if not self._first <= row < self._end:
            index, own, after, _ = self._rows.run_of(row)
            if not ahead or index.span(own)[1] > CHUNK_BYTES:
                return needle.is_in_row(index, own)
            self._data, self._bounds = index.block(own, CHUNK_BYTES)
            self._first, self._end = row, row + min(len(self._bounds) - 1, after + 1)
            self._absent.clear()
        if needle in self._absent:
            return False
        at = row - self._first
        if at == 0 and needle.find(self._data) < 0:
            self._absent.add(needle)
            return False
        return needle.find(self._data[self._bounds[at] : self._bounds[at + 1]]) >= 0


class Filtering:
    """Rows of which those are kept that contain all words, found out bit by bit."""

    def __init__(
        self, candidates: Sequence[int], words: Sequence[Word], texts: RowTexts, order: Callable[[Sequence[int]], Sequence[int]]
    ) -> None:
        """`candidates` are in ascending order; `order` puts the rows found into the order wanted."""
        self._candidates = candidates
        self._words = [(Needle(word.text), not word.negated) for word in words]
        self._texts = texts
        self._order = order
        self._looked_at = 0 if words else len(candidates)
        self._found: list[int] = []
        self._ordered: Sequence[int] | None = None

    @property
    def rows(self) -> Sequence[int]:
        """The rows found so far."""
        if self._looked_at < len(self._candidates):
            return self._order(self._found)
        if self._ordered is None:
            self._ordered = self._order(self._found if self._words else self._candidates)
        return self._ordered

    @property
    def progress(self) -> float:
        """Which part of the rows was looked at, from 0 to 1."""
        return self._looked_at / len(self._candidates) if self._candidates else 1.0

    def advance(self, seconds: float) -> bool:
        """Look at further rows for about `seconds`; True when done."""
        deadline = time.monotonic() + seconds
        candidates, total, texts = self._candidates, len(self._candidates), self._texts
        at = self._looked_at
        while at < total:
            row = candidates[at]
            ahead = candidates[min(at + _NEIGHBOURS, total - 1)] - row <= _NEIGHBOURS * _SPREAD
            if all(texts.contain(row, needle, ahead=ahead) is wanted for needle, wanted in self._words):
                self._found.append(row)
            at += 1
            if at % _ROWS_PER_CLOCK == 0 and time.monotonic() >= deadline:
                break
        self._looked_at = at
        return at >= total


def search(rows: Rows, needle: Needle, start: int, direction: int, seconds: float) -> SearchStep:
    """The first row from `start` on (itself included) that contains the text; `direction` is 1 or -1.

    Stops after about `seconds`; call again with `next_row`.
    """
    deadline = time.monotonic() + seconds
    row = max(start, 0) if direction > 0 else min(start, len(rows) - 1)
    while 0 <= row < len(rows):
        index, own, after, before = rows.run_of(row)
        first, last = (own, own + after) if direction > 0 else _window_before(index, own, before)
        if index.span(first)[1] > CHUNK_BYTES:
            found, passed = (own if needle.is_in_row(index, own) else None), 1
        else:
            found, passed = _in_window(index, needle, first, last, direction)
        if found is not None:
            at = row + found - own
            return SearchStep(at, at + direction, not 0 <= at + direction < len(rows))
        row += direction * passed
        if time.monotonic() >= deadline:
            break
    return SearchStep(None, row, not 0 <= row < len(rows))


def _window_before(index: LineIndex, row: int, before: int) -> tuple[int, int]:
    """The first and last of the rows up to `row`, about a chunk of them; only `row` itself when one of them is larger than that."""
    offset, size = index.span(row)
    first = index.row_at(max(offset + size - CHUNK_BYTES, 0))
    first = max(row - before, min(row, 0 if first is None else first + 1))
    return first, row


def _in_window(index: LineIndex, needle: Needle, first: int, last: int, direction: int) -> tuple[int | None, int]:
    """The row found among some that fit into a chunk, and how many rows were looked at."""
    data, bounds = index.block(first, CHUNK_BYTES)
    if (count := len(bounds) - 1) > last - first + 1:
        count = last - first + 1
        data = data[: bounds[count]]
    at = needle.find(data) if direction > 0 else needle.find_last(data)
    return (first + bisect_right(bounds, at) - 1 if at >= 0 else None), count
