"""The order of rows that come from several growing files, and a small cache of what was read of them."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class RowOrder:
    """Numbers for the rows of several files in the order in which they were found: a row keeps its number while files grow.

    One thread calls `grow`; others may call the rest at the same time.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[int, int]] = []
        """For each run of rows of one file: which file, and the first row's number in it."""
        self._begins: list[int] = []
        """The first row's number over all files."""
        self._counts: dict[int, int] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def grow(self, source: int, count: int) -> None:
        """File `source` has `count` rows now."""
        known = self._counts.get(source, 0)
        if count <= known:
            return
        if not self._runs or self._runs[-1][0] != source:
            self._runs.append((source, known))
            self._begins.append(self._length)
        self._counts[source] = count
        self._length += count - known

    def locate(self, row: int) -> tuple[int, int, int, int]:
        """The file of a row, the row's number in it, and how many rows of this file follow and precede it without another's between.

        Raises IndexError for a row that is not there.
        """
        length = self._length
        if not 0 <= row < length:
            raise IndexError(f"there is no row {row}")
        run = bisect_right(self._begins, row) - 1
        source, first = self._runs[run]
        begin = self._begins[run]
        end = self._begins[run + 1] if run + 1 < len(self._begins) else length
        return source, first + row - begin, end - row - 1, row - begin


class BoundedCache(Generic[T]):
    """Values by row, the least recently used ones dropped beyond a number of entries or a total weight. A row's size tells whether it is still the same."""

    def __init__(self, entries: int, weight: int) -> None:
        self._entries = entries
        self._most_weight = weight
        self._weight = 0
        self._kept: OrderedDict[int, tuple[int, int, T]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, row: int, size: int) -> T | None:
        with self._lock:
            entry = self._kept.get(row)
            if entry is None or entry[0] != size:
                return None
            self._kept.move_to_end(row)
            return entry[2]

    def put(self, row: int, size: int, value: T, weight: int) -> None:
        with self._lock:
            self._weight -= self._kept.pop(row, (0, 0))[1]
            self._kept[row] = size, weight, value
            self._weight += weight
            while len(self._kept) > 1 and (len(self._kept) > self._entries or self._weight > self._most_weight):
                self._weight -= self._kept.popitem(last=False)[1][1]
