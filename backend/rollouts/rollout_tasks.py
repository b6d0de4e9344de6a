"""Rows of a rollouts file grouped by task, its repeats in order, and which of two rows with the same indices counts."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from backend.rollouts.compact_numbers import CompactNumbers
from backend.rollouts.rollout_keys import FROM_FAILURES, MISSING, SUPERSEDED, RolloutKeys

_PIECE = 1 << 14


@dataclass(frozen=True, slots=True)
class TaskRows:
    """The rows of one task."""

    task: int | str | None
    """None for a row without a task index, which is a group of its own."""
    rows: tuple[int, ...]
    """The rows that count, by rollout index."""
    superseded: tuple[int, ...]
    rewards: tuple[float | None, ...]
    """Of `rows`, in their order."""

    @property
    def mean(self) -> float | None:
        """The mean over scored rows; a failed attempt is not a zero."""
        scored = [reward for reward in self.rewards if reward is not None]
        return sum(scored) / len(scored) if scored else None


class TaskGroups(Sequence[TaskRows]):
    """All tasks in the scanned part of a file: by index where these are dense numbers, else in order of appearance.

    Building it marks superseded rows in the keys' flags: of several rows with the same task and rollout a scored one counts before a
    failed one, then the later one before the earlier.
    """

    def __init__(self, keys: RolloutKeys) -> None:
        self.keys = keys
        self.scanned = len(keys)
        """How many rows are grouped."""
        tasks = keys.tasks[: self.scanned]
        low, high = _extent(tasks)
        width = high - low + 1
        self._low: int | None = low
        self._numbers = CompactNumbers()
        if width > 4 * self.scanned + 1024:
            self._low = None
            width = len(_numbered(tasks, self._numbers))
        sizes = array("Q", bytes(8 * (width + 1)))
        for task in tasks:
            sizes[self._slot(task) + 1] += 1
        begins = array("Q", accumulate(sizes))
        places = begins[:]
        self._rows = array("Q", bytes(8 * self.scanned))
        for row, task in enumerate(tasks):
            slot = self._slot(task)
            self._rows[places[slot]] = row
            places[slot] += 1
        self._begins = array("Q", (begin for begin, size in zip(begins, sizes[1:], strict=False) if size))
        self._slots = array("Q", (slot for slot, size in enumerate(sizes[1:]) if size))
        self._begins.append(self.scanned)
        self._mark_superseded()

    def __len__(self) -> int:
        return len(self._slots)

    def __getitem__(self, index: int) -> TaskRows:  # type: ignore[override]
        rows = self._group(range(len(self))[index])
        keys = self.keys
        current = tuple(row for row in rows if not keys.flags[row] & SUPERSEDED)
        old = tuple(row for row in rows if keys.flags[row] & SUPERSEDED)
        return TaskRows(keys.task(rows[0]), current, old, tuple(map(keys.reward, current)))

    def __iter__(self) -> Iterator[TaskRows]:
        return map(self.__getitem__, range(len(self)))

    def group_of(self, row: int) -> int | None:
        """The index of the group that has `row`; None when it was not scanned yet."""
        return self._group_of_number(self.keys.tasks[row]) if row < self.scanned else None

    def group_of_task(self, task: int | str) -> int | None:
        """The index of a task's group; None when there is no such task."""
        number = self.keys.task_number(task)
        return None if number is None else self._group_of_number(number)

    def _group_of_number(self, number: int) -> int | None:
        if self._low is None and number not in self._numbers:
            return None
        slot = self._slot(number)
        index = bisect_left(self._slots, slot) if slot >= 0 else len(self._slots)
        return index if index < len(self._slots) and self._slots[index] == slot else None

    def _slot(self, number: int) -> int:
        return number - self._low if self._low is not None else self._numbers.get(number) or 0

    def _group(self, index: int) -> list[int]:
        """Rows of a group: by rollout index, and among equal ones those that count less first."""
        rows = self._rows[self._begins[index] : self._begins[index + 1]].tolist()
        rollouts, flags = self.keys.rollouts, self.keys.flags
        return sorted(rows, key=lambda row: (rollouts[row], not flags[row] & FROM_FAILURES, row)) if len(rows) > 1 else rows

    def _mark_superseded(self) -> None:
        rollouts, flags = self.keys.rollouts, self.keys.flags
        for index in range(len(self)):
            if self._begins[index + 1] - self._begins[index] < 2:
                continue
            rows = self._group(index)
            for row, following in pairwise(rows):
                if rollouts[row] == rollouts[following] != MISSING:
                    flags[row] |= SUPERSEDED


def _extent(tasks: array[int]) -> tuple[int, int]:
    """The least and the greatest, found piece by piece: one call for a million would hold up all other threads."""
    pieces = [tasks[begin : begin + _PIECE] for begin in range(0, len(tasks), _PIECE)]
    return min((min(piece) for piece in pieces), default=0), max((max(piece) for piece in pieces), default=0)


def _numbered(tasks: array[int], numbers: CompactNumbers) -> CompactNumbers:
    for task in tasks:
        numbers.add(task)
    return numbers
