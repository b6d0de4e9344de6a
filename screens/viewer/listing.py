"""What the list of the viewer shows, and in which order: tasks with their repeats, or single rollouts.

A listing is made in a thread and does not change afterwards; rows of the file are its keys, so that the cursor stays where it was when
the next listing comes.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Hashable, Sequence
from heapq import merge
from operator import itemgetter
from typing import Protocol

from backend.rollouts.rollout_file import RolloutFile
from backend.rollouts.rollout_keys import TOO_BIG, UNREADABLE, RolloutKeys
from backend.rollouts.rollout_query import Sort
from backend.rollouts.rollout_tasks import TaskGroups, TaskRows
from screens.viewer.repeat_strip import Outcome, outcome_of, strip_text
from screens.widgets import glyphs
from screens.widgets.columns import Column
from screens.widgets.formatting import compact, count, score
from screens.widgets.virtual_list import Cell, Row

STRIP_COLUMN = "repeats"
TASK_COLUMNS = (
    Column("task", "TASK", 6, right=True),
    Column(STRIP_COLUMN, "REPEATS", least=9),
    Column("reward", "MEAN", 6, right=True, keep=1),
)
ROLLOUT_COLUMNS = (
    Column("task", "TASK", 6, right=True),
    Column("rollout", "REP", 3, right=True),
    Column("reward", "REWARD", 7, right=True),
    Column("tokens", "TOK", 5, right=True, keep=1),
    Column("end", "END", least=7),
)
_CHECK_EVERY = 1024
_SORTED_AT_ONCE = 1 << 14


class Listing(Protocol):
    """Rows for the list, and the way through them."""

    total: int
    """How many entries there are when nothing is filtered."""
    current: int | None
    """The row of the file that is on show."""

    def __len__(self) -> int: ...

    def row(self, index: int) -> Row: ...

    def key(self, index: int) -> Hashable: ...

    def index_of(self, key: Hashable) -> int | None: ...

    def rows_at(self, index: int) -> Sequence[int]:
        """The rows of the file that an entry stands for."""

    def __contains__(self, row: object) -> bool:
        """Whether a row of the file is listed; answers at once, for any number of entries."""


class TaskListing:
    """One entry per task. `current` tells which row of the file is on show."""

    def __init__(self, file: RolloutFile, groups: TaskGroups, order: Sequence[int]) -> None:
        self._file, self._keys, self._groups, self._order = file, groups.keys, groups, order
        self._listed = _marks(order, len(groups))
        self.total = len(groups)
        self.current: int | None = None
        self.strip_width = 9

    def __len__(self) -> int:
        return len(self._order)

    def entry(self, index: int) -> TaskRows:
        """The task at a place of the list."""
        return self._groups[self._order[index]]

    def rows_at(self, index: int) -> Sequence[int]:
        entry = self.entry(index)
        return entry.rows or entry.superseded

    def key(self, index: int) -> Hashable:
        return self.rows_at(index)[0]

    def __contains__(self, row: object) -> bool:
        group = self._groups.group_of(row) if isinstance(row, int) else None
        return group is not None and self._listed[group] == 1

    def index_of(self, key: Hashable) -> int | None:
        group = self._groups.group_of(key) if isinstance(key, int) else None
        return None if group is None or not self._listed[group] else self._order.index(group)

    def current_repeat(self, entry: TaskRows) -> int | None:
        """Which of a task's repeats is on show."""
        return entry.rows.index(self.current) if self.current in entry.rows else None

    def row(self, index: int) -> Row:
        entry = self.entry(index)
        first = self.rows_at(index)[0]
        if self._keys.flags[first] & UNREADABLE:
            return unreadable_row(("", f"row {self._file.place(first).line} unreadable", ""))
        outcomes = [outcome_at(self._keys, row) for row in entry.rows]
        mean = entry.mean
        style = "muted" if mean is None else "bad" if mean <= 0 else "plain"
        strip = strip_text(outcomes, self.current_repeat(entry), self.strip_width)
        name = glyphs.current().nothing if entry.task is None else str(entry.task)
        return Row((name, strip, Cell(score(mean), style)))


class RolloutListing:
    """One entry per rollout; those whose keys are not read yet show only their place."""

    def __init__(self, file: RolloutFile, order: Sequence[int]) -> None:
        self._file, self._keys, self._order = file, file.keys, order
        self.total = len(file)
        self._listed = _marks(order, self.total)
        self.current: int | None = None

    def __len__(self) -> int:
        return len(self._order)

    def rows_at(self, index: int) -> Sequence[int]:
        return (self._order[index],)

    def key(self, index: int) -> Hashable:
        return self._order[index]

    def __contains__(self, row: object) -> bool:
        return isinstance(row, int) and 0 <= row < len(self._listed) and self._listed[row] == 1

    def index_of(self, key: Hashable) -> int | None:
        return self._order.index(key) if isinstance(key, int) and key in self else None

    def row(self, index: int) -> Row:
        row, keys, signs = self._order[index], self._keys, glyphs.current()
        if row >= len(keys):
            return Row((signs.ellipsis, "", "", "", f"line {self._file.place(row).line}"), muted=True)
        if keys.flags[row] & UNREADABLE:
            return unreadable_row((f"row {self._file.place(row).line}", "", "", "", "bad row"))
        task, rollout, reward, failure = keys.task(row), keys.rollouts[row], keys.reward(row), keys.failure(row)
        tokens = keys.output_tokens[row]
        style = "plain" if reward is None or reward > 0 else "bad"
        return Row(
            (
                signs.nothing if task is None else str(task),
                count(rollout) if rollout >= 0 else signs.nothing,
                Cell(signs.failed if failure and reward is None else score(reward), "bad" if failure else style),
                compact(tokens) if tokens >= 0 else signs.nothing,
                Cell(failure or keys.end(row) or "", "bad" if failure else "muted"),
            ),
            sign=signs.failed if failure else "",
            sign_style="bad",
        )


def unreadable_row(cells: Sequence[str]) -> Row:
    """A row of the file that is no rollout; it stays visible."""
    return Row([Cell(text, "warn") for text in cells], sign=glyphs.current().warning, sign_style="warn")


def outcome_at(keys: RolloutKeys, row: int) -> Outcome:
    """The square of a row of the file."""
    if row >= len(keys):
        return Outcome.UNKNOWN
    return outcome_of(keys.reward(row), failed=bool(keys.failures[row]), unreadable=bool(keys.flags[row] & UNREADABLE))


PROBLEMS: dict[str, Callable[[RolloutKeys, int], bool]] = {
    "failed or reward below 1": lambda keys, row: (
        bool(keys.failures[row]) or bool(keys.flags[row] & UNREADABLE) or not keys.rewards[row] >= 1
    ),
    "failed": lambda keys, row: bool(keys.failures[row]) or bool(keys.flags[row] & UNREADABLE),
    "reward below 1": lambda keys, row: keys.rewards[row] < 1,
    "cut off": lambda keys, row: keys.end(row) == "length",
    "unreadable or too big": lambda keys, row: bool(keys.flags[row] & (UNREADABLE | TOO_BIG)),
}
"""What may count as a problem."""


def step(listing: Listing, current: int | None, by: int) -> int | None:
    """The row before (-1) or after (1) `current`, through the repeats of one entry and on to the next; None at the end."""
    index = None if current is None else listing.index_of(current)
    if index is None or current is None:
        return listing.rows_at(0)[0] if len(listing) else None
    rows = listing.rows_at(index)
    place = rows.index(current) + by if current in rows else 0
    if 0 <= place < len(rows):
        return rows[place]
    index += by
    return listing.rows_at(index)[0 if by > 0 else -1] if 0 <= index < len(listing) else None


def find_problem(
    listing: Listing, keys: RolloutKeys, current: int | None, by: int, kind: str, cancelled: Callable[[], bool]
) -> int | None:
    """The nearest row in one direction that counts as a problem; None when there is none. For threads: it may go through all rows."""
    is_problem, known = PROBLEMS[kind], len(keys)
    index = None if current is None else listing.index_of(current)
    if index is None or current is None:
        index, ahead = (0 if by > 0 else len(listing) - 1), None
    else:
        rows = listing.rows_at(index)
        place = rows.index(current) if current in rows else 0
        ahead = rows[place + 1 :] if by > 0 else rows[:place]
    while 0 <= index < len(listing):
        rows = listing.rows_at(index) if ahead is None else ahead
        for row in rows if by > 0 else reversed(rows):
            if row < known and is_problem(keys, row):
                return row
        ahead = None
        index += by
        if index % _CHECK_EVERY == 0 and cancelled():
            return None
    return None


def order_tasks(
    groups: TaskGroups,
    keys: RolloutKeys,
    rows: Sequence[int] | None,
    sort: Sort | None,
    size_of: Callable[[int], int],
    cancelled: Callable[[], bool],
) -> Sequence[int]:
    """Places of tasks: those that have any of `rows` (None: all), sorted by the mean of a field; tasks without a value come last."""
    chosen: Sequence[int] = range(len(groups))
    if rows is not None:
        found = (groups.group_of(row) for row in rows)
        chosen = array("I", sorted({group for group in found if group is not None}))
    if sort is None:
        return chosen
    if sort.field in ("file", "task"):
        return chosen[::-1] if sort.descending else chosen
    value = _task_values(groups, keys, sort.field, size_of)
    known, missing = [], []
    for place, group in enumerate(chosen):
        number = value(group)
        if math.isnan(number):
            missing.append(group)
        else:
            known.append((number, group))
        if place % _CHECK_EVERY == 0 and cancelled():
            break
    # One sort of a million numbers would hold up all other threads.
    first = itemgetter(0)
    pieces = [
        sorted(known[at : at + _SORTED_AT_ONCE], key=first, reverse=sort.descending)
        for at in range(0, len(known), _SORTED_AT_ONCE)
    ]
    ordered = array("I", (group for _, group in merge(*pieces, key=first, reverse=sort.descending)))
    ordered.extend(missing)
    return ordered


def _task_values(groups: TaskGroups, keys: RolloutKeys, field: str, size_of: Callable[[int], int]) -> Callable[[int], float]:
    def mean(values: Sequence[float]) -> float:
        return sum(values) / len(values) if values else math.nan

    def reward(group: int) -> float:
        value = groups[group].mean
        return math.nan if value is None else value

    def tokens(group: int) -> float:
        return mean([keys.output_tokens[row] for row in groups[group].rows if keys.output_tokens[row] >= 0])

    def failures(group: int) -> float:
        return mean([float(bool(keys.failures[row])) for row in groups[group].rows])

    def sizes(group: int) -> float:
        return mean([size_of(row) for row in groups[group].rows])

    return {"reward": reward, "tokens": tokens, "fail": failures, "size": sizes}.get(field, float)


def _marks(order: Sequence[int], total: int) -> bytes | bytearray:
    """1 for each of `total` numbers that is in the order, else 0: looking through an order of a million takes too long to be done often."""
    if isinstance(order, range) and len(order) == total:
        return b"\1" * total
    marks = bytearray(total)
    for item in order:
        marks[item] = 1
    return marks
