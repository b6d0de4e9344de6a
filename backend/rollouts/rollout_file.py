"""A rollouts file and its failures sidecar as rows, for files of any size that may still grow.

Three passes, each resumable and each useful before it ends: `extend` finds the rows, `scan_keys` reads what they are sorted, filtered and
grouped by, `facts` and `record` parse the few rows that somebody looks at.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from backend.errors import Place
from backend.io.json_codec import loads
from backend.io.line_index import CHUNK_BYTES, LineIndex
from backend.io.result_paths import ResultPaths
from backend.io.text import clean_line
from backend.rollouts.rollout_facts import RowFacts, RowPlace, Source, Unreadable, facts_of
from backend.rollouts.rollout_filter import in_order, matching
from backend.rollouts.rollout_keys import FROM_FAILURES, MISSING, SUPERSEDED, TOO_BIG, UNREADABLE, WANTED_PATHS, RolloutKeys
from backend.rollouts.rollout_order import BoundedCache, RowOrder
from backend.rollouts.rollout_query import Query
from backend.rollouts.rollout_record import PREVIEW_CHARACTERS
from backend.rollouts.rollout_search import Filtering, Needle, RowTexts, SearchStep, search
from backend.rollouts.rollout_spans import SpanScan
from backend.rollouts.rollout_tasks import TaskGroups

LARGEST_PARSED = 8 << 20
"""Bytes of a row that is parsed when somebody looks at it: about 50 ms in which no other thread runs."""
HEAD_BYTES = 1 << 16
_LARGEST_SCANNED_WHOLE = 1 << 20
_FACTS_KEPT = 2000
_RECORDS_KEPT = 64
_RECORD_BYTES_KEPT = 16 << 20
_ROWS_PER_CLOCK = 32
"""So often the key scan looks at the clock."""

_SOURCES: tuple[Source, ...] = ("rollouts", "failures")


class RolloutFile:
    """Rows in file order: those of the rollouts file first, then those of the sidecar, then what is added to either as it comes.

    `extend` and `scan_keys` are called from one thread; everything else may be called from any thread at the same time. When a file
    is replaced or truncated all rows are forgotten and `generation` grows: numbers of rows from before mean nothing then.
    """

    def __init__(self, paths: ResultPaths | Path | str) -> None:
        """Raises `GymError` when the rollouts file cannot be read."""
        self.paths = paths if isinstance(paths, ResultPaths) else ResultPaths(Path(paths))
        self.generation = 0
        self._indexes = [LineIndex(self.paths.rollouts)]
        """Of the files in `_SOURCES`, as far as they are there."""
        self._reset()

    def _reset(self) -> None:
        self._order = RowOrder()
        self.keys = RolloutKeys()
        """Columns of the first `len(keys)` rows."""
        self._facts: BoundedCache[RowFacts] = BoundedCache(_FACTS_KEPT, _FACTS_KEPT)
        self._records: BoundedCache[Mapping[str, Any] | Unreadable] = BoundedCache(_RECORDS_KEPT, _RECORD_BYTES_KEPT)
        self._groups: TaskGroups | None = None
        self._giant: tuple[int, SpanScan] | None = None

    def __len__(self) -> int:
        return len(self._order)

    # Passes.

    def extend(self, seconds: float) -> bool:
        """Find rows for about `seconds`; True when the present ends of the files are reached."""
        deadline = time.monotonic() + seconds
        if len(self._indexes) == 1 and self.paths.failures.exists():
            self._indexes.append(LineIndex(self.paths.failures))
        for source, index in enumerate(self._indexes):
            generation = index.generation
            complete = index.extend(max(deadline - time.monotonic(), 0))
            if index.generation != generation:
                self.generation += 1
                self._reset()
            self._order.grow(source, len(index))
            if not complete:
                return False
        return True

    @property
    def indexed(self) -> float:
        """Which part of the files `extend` has seen, from 0 to 1."""
        total = sum(index.total_bytes for index in self._indexes)
        return min(1.0, sum(index.indexed_bytes for index in self._indexes) / total) if total else 1.0

    @property
    def torn_bytes(self) -> int:
        """Bytes after the last rows that are no row yet."""
        return sum(index.torn_bytes for index in self._indexes)

    def scan_keys(self, seconds: float) -> bool:
        """Read the keys of further rows for about `seconds`; True when those of all rows found so far are there."""
        deadline = time.monotonic() + seconds
        while len(self.keys) < len(self._order):
            row = len(self.keys)
            source, own, after, _ = self._order.locate(row)
            index = self._indexes[source]
            flags = FROM_FAILURES if _SOURCES[source] == "failures" else 0
            size = index.span(own)[1]
            if size > _LARGEST_SCANNED_WHOLE:
                if not self._scan_giant(index, own, size, flags, deadline):
                    return False
            else:
                self._scan_block(index, own, after, flags, deadline)
            if time.monotonic() >= deadline:
                break
        return len(self.keys) >= len(self._order)

    @property
    def scanned(self) -> float:
        """Which part of the rows found `scan_keys` has read, from 0 to 1."""
        return len(self.keys) / len(self) if len(self) else 1.0

    def _scan_block(self, index: LineIndex, own: int, after: int, flags: int, deadline: float) -> None:
        data, bounds = index.block(own, CHUNK_BYTES)
        rows = min(len(bounds) - 1, after + 1)
        for number in range(rows):
            try:
                record = loads(data[bounds[number] : bounds[number + 1]])
            except ValueError:
                record = None
            self.keys.append(record if isinstance(record, dict) else None, flags)
            if number % _ROWS_PER_CLOCK == 0 and time.monotonic() >= deadline:
                return

    def _scan_giant(self, index: LineIndex, own: int, size: int, flags: int, deadline: float) -> bool:
        """Go on with the values of one large row; whether they are complete."""
        row = len(self.keys)
        if self._giant is None or self._giant[0] != row:
            offset = index.span(own)[0]
            self._giant = (
                row,
                SpanScan(lambda at, count: index.read_range(offset + at, min(count, size - at)), size, WANTED_PATHS),
            )
        scan = self._giant[1]
        if not scan.advance(max(deadline - time.monotonic(), 0)):
            return False
        self.keys.append(scan.record() if scan.balanced else None, flags | (TOO_BIG if size > LARGEST_PARSED else 0))
        self._giant = None
        return True

    # Single rows.

    def place(self, row: int) -> RowPlace:
        """Where a row is; raises IndexError for a row that is not there."""
        source, own, _, _ = self._order.locate(row)
        index = self._indexes[source]
        offset, size = index.span(own)
        return RowPlace(row, _SOURCES[source], index.path, index.line_number(own), offset, size)

    def raw(self, row: int, limit: int | None = None) -> bytes:
        """The bytes of a row, at most the first `limit`."""
        source, own, _, _ = self._order.locate(row)
        return self._indexes[source].read(own, limit)

    def record(self, row: int) -> Mapping[str, Any] | Unreadable:
        """The parsed row, or why there is none: it is not a JSON object, or larger than 8 MiB."""
        place = self.place(row)
        known = self._records.get(row, place.size)
        if known is None:
            known = self._parse(place)
            self._records.put(row, place.size, known, place.size)
        return known

    def facts(self, row: int) -> RowFacts:
        """What a list shows of a row."""
        place = self.place(row)
        facts = self._facts.get(row, place.size)
        if facts is None:
            record = self._parse(place)
            facts = self._facts_without_record(place, record) if isinstance(record, Unreadable) else facts_of(place, record)
            if not facts.too_big:  # what is known of those grows with the key scan
                self._facts.put(row, place.size, facts, 1)
        superseded = row < len(self.keys) and bool(self.keys.flags[row] & SUPERSEDED)
        return replace(facts, superseded=True) if superseded else facts

    def _parse(self, place: RowPlace) -> Mapping[str, Any] | Unreadable:
        where = Place(str(place.path), place.line)
        if place.size > LARGEST_PARSED:
            head = self.raw(place.index, HEAD_BYTES)
            return Unreadable(f"the row has {place.size / 1e6:.1f} MB, too large to be shown whole", where, head, too_big=True)
        data = self.raw(place.index)
        try:
            record = loads(data)
        except ValueError as error:
            return Unreadable(f"not valid JSON: {clean_line(str(error), 120)}", where, data[:HEAD_BYTES])
        return record if isinstance(record, dict) else Unreadable("not a JSON object", where, data[:HEAD_BYTES])

    def _facts_without_record(self, place: RowPlace, record: Unreadable) -> RowFacts:
        preview = clean_line(record.head[: 4 * PREVIEW_CHARACTERS].decode("utf-8", "replace"), PREVIEW_CHARACTERS)
        if not record.too_big or place.index >= len(self.keys):
            return RowFacts(place, unreadable=record.reason, too_big=record.too_big, preview=preview)
        keys, row = self.keys, place.index
        rollout, tokens = keys.rollouts[row], keys.output_tokens[row]
        return RowFacts(
            place,
            task=keys.task(row),
            rollout=None if rollout == MISSING else rollout,
            reward=keys.reward(row),
            failure=keys.failure(row),
            end=keys.end(row),
            agent=keys.agent(row),
            output_tokens=None if tokens == MISSING else tokens,
            unreadable=record.reason,
            too_big=True,
            preview=preview,
        )

    # All rows.

    def tasks(self) -> TaskGroups:
        """The rows scanned so far by task; marks superseded rows. Takes about 2 s for a million rows, and nothing when no row was added."""
        groups, keys = self._groups, self.keys
        if groups is None or groups.keys is not keys or groups.scanned != len(keys):
            self._groups = groups = TaskGroups(keys)
        return groups

    def rows_matching(self, query: Query) -> Sequence[int]:
        """The scanned rows that fit, in the order the query asks for.

        Words are searched in the text of the rows that fit all else, which reads these rows: see `filtering` for doing that bit by bit.
        """
        filtering = self.filtering(query)
        while not filtering.advance(1.0):
            pass
        return filtering.rows

    def filtering(self, query: Query) -> Filtering:
        """The same, step by step."""
        keys, sort = self.keys, query.sort

        def order(rows: Sequence[int]) -> Sequence[int]:
            return in_order(keys, rows, sort, self._size_of) if sort else rows

        return Filtering(matching(keys, query.conditions, self._size_of), query.words, RowTexts(self), order)

    def search_text(self, text: str, start: int, direction: int = 1, seconds: float = 0.1) -> SearchStep:
        """The first row from `start` on that contains `text`, forwards (1) or backwards (-1), looking for about `seconds`."""
        return search(self, Needle(text), start, direction, seconds)

    def next_problem(self, start: int, direction: int = 1, *, below: float = 1.0) -> int | None:
        """The first scanned row from `start` on that failed, cannot be read or has a reward under `below`; superseded rows are passed over."""
        keys = self.keys
        for row in range(start, len(keys)) if direction > 0 else range(min(start, len(keys) - 1), -1, -1):
            flags = keys.flags[row]
            if not flags & SUPERSEDED and (flags & UNREADABLE or keys.failures[row] or keys.rewards[row] < below):
                return row
        return None

    def run_of(self, row: int) -> tuple[LineIndex, int, int, int]:
        """The file of a row, its number there, and how many rows of the same file follow and precede it in order."""
        source, own, after, before = self._order.locate(row)
        return self._indexes[source], own, after, before

    def _size_of(self, row: int) -> int:
        source, own, _, _ = self._order.locate(row)
        return self._indexes[source].span(own)[1]
