"""Rows that fit the conditions of a query, and rows in the order it asks for, over the columns of `RolloutKeys`.

Everything is loops of the interpreter and sorts of small pieces: a sort of a million rows in one call would hold up all other threads.
"""

from __future__ import annotations

import math
import random
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from backend.rollouts.rollout_keys import (
    MISSING,
    SUPERSEDED,
    TASK_LIMIT,
    TOO_BIG,
    UNREADABLE,
    UNSTAMPED_TASKS,
    Labels,
    RolloutKeys,
)
from backend.rollouts.rollout_query import (
    COMPARISONS,
    Condition,
    NumberCondition,
    RangeCondition,
    Sort,
    StateCondition,
    TextCondition,
)

_SORTED_AT_ONCE = 1 << 12
_SAMPLE = 1 << 10
Sizes = Callable[[int], int]


def matching(keys: RolloutKeys, conditions: Iterable[Condition], size_of: Sizes) -> Sequence[int]:
    """The scanned rows for which all conditions hold, in file order; `size_of` gives the bytes of a row."""
    rows: Sequence[int] = range(len(keys))
    for condition in conditions:
        match condition:
            case NumberCondition() | RangeCondition():
                rows = _by_number(keys, condition, rows, size_of)
            case TextCondition():
                rows = _by_text(keys, condition, rows)
            case StateCondition():
                rows = _by_state(keys, condition, rows)
    return rows


def in_order(keys: RolloutKeys, rows: Sequence[int], sort: Sort, size_of: Sizes) -> list[int]:
    """`rows` (in file order) sorted; equal ones stay in file order, those without the value come last."""
    if sort.field == "file":
        return list(reversed(rows)) if sort.descending else list(rows)
    value_of = _sort_values(keys, sort.field, size_of)
    known: list[int] = []
    missing: list[int] = []
    for row in rows:
        value = value_of(row)
        (missing if value is None or value != value else known).append(row)
    buckets = _buckets(known, value_of)
    if sort.descending:
        buckets.reverse()
    ordered = []
    for bucket in buckets:
        bucket.sort(key=value_of, reverse=sort.descending)  # type: ignore[arg-type]  # all of these have a value
        ordered += bucket
    return ordered + missing


def _by_number(keys: RolloutKeys, condition: NumberCondition | RangeCondition, rows: Sequence[int], size_of: Sizes) -> list[int]:
    if condition.field == "size":
        column: Any = _Computed(size_of)
    elif condition.field == "task":
        column = keys.tasks
        rows = [row for row in rows if -TASK_LIMIT <= column[row] < TASK_LIMIT]
    else:
        column = {"reward": keys.rewards, "rollout": keys.rollouts, "tokens": keys.output_tokens}[condition.field]
    if condition.field in ("rollout", "tokens"):
        rows = [row for row in rows if column[row] != MISSING]
    elif condition.field == "reward":
        rows = [row for row in rows if column[row] == column[row]]
    keep = not condition.negated
    if isinstance(condition, RangeCondition):
        low, high = condition.low, condition.high
        return [row for row in rows if (low <= column[row] <= high) is keep]
    if len(condition.values) > 1:
        values = set(condition.values)
        return [row for row in rows if (column[row] in values) is keep]
    (value,) = condition.values
    compare = COMPARISONS[condition.operator]
    return [row for row in rows if compare(column[row], value) is keep]


def _by_text(keys: RolloutKeys, condition: TextCondition, rows: Sequence[int]) -> list[int]:
    keep = not condition.negated
    if condition.field == "task":
        number = keys.task_number(condition.text or "")
        return [row for row in rows if (keys.tasks[row] == number) is keep]
    column, labels = _labelled(keys, condition.field)
    wanted = {number for number, text in enumerate(labels.texts) if _fits(condition, text)}
    return [row for row in rows if (column[row] in wanted) is keep]


def _by_state(keys: RolloutKeys, condition: StateCondition, rows: Sequence[int]) -> list[int]:
    keep = not condition.negated
    flags = keys.flags
    bit = {"unreadable": UNREADABLE, "superseded": SUPERSEDED, "big": TOO_BIG}.get(condition.state)
    if bit is not None:
        return [row for row in rows if bool(flags[row] & bit) is keep]
    failed = condition.state == "failed"
    return [row for row in rows if not flags[row] & UNREADABLE and ((keys.failures[row] != 0) is failed) is keep]


def _fits(condition: TextCondition, text: str | None) -> bool:
    if condition.text is None or text is None:
        return condition.text is text
    return condition.text in text.lower() if condition.operator == ":" else condition.text == text.lower()


def _labelled(keys: RolloutKeys, field: str) -> tuple[array[int], Labels]:
    if field == "fail":
        return keys.failures, keys.failure_labels
    return (keys.ends, keys.end_labels) if field == "end" else (keys.agents, keys.agent_labels)


def _sort_values(keys: RolloutKeys, field: str, size_of: Sizes) -> Callable[[int], float | None]:
    if field == "size":
        return size_of
    if field == "reward":
        return keys.rewards.__getitem__
    if field == "task":  # names before numbers, rows without a task last
        return lambda row: None if keys.tasks[row] >= UNSTAMPED_TASKS else keys.tasks[row]
    if field in ("rollout", "tokens"):
        column = keys.rollouts if field == "rollout" else keys.output_tokens
        return lambda row: None if column[row] == MISSING else column[row]
    column, labels = _labelled(keys, field)
    ranks: dict[int, float] = {0: math.nan}
    ranks |= {labels.texts.index(text): rank for rank, text in enumerate(sorted(filter(None, labels.texts)))}
    return lambda row: ranks.get(column[row], math.nan)


def _buckets(rows: list[int], value_of: Callable[[int], Any]) -> list[list[int]]:
    """Rows cut by value into lists of some thousands, in ascending order of values and each in the order given."""
    if len(rows) <= _SORTED_AT_ONCE:
        return [rows]
    sample = sorted(map(value_of, random.Random(0).sample(rows, min(_SAMPLE, len(rows)))))
    pivots = sample[:: max(1, len(sample) * _SORTED_AT_ONCE // len(rows))]
    buckets: list[list[int]] = [[] for _ in range(len(pivots) + 1)]
    for row in rows:
        buckets[bisect_right(pivots, value_of(row))].append(row)
    return buckets


class _Computed:
    """A column that is computed."""

    def __init__(self, value_of: Sizes) -> None:
        self._value_of = value_of

    def __getitem__(self, row: int) -> int:
        return self._value_of(row)
