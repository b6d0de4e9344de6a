"""Statistics of the numbers of some rollouts: of one task, or of all of an agent's."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from backend.io.row_keys import TASK
from backend.metrics.descriptive import summarize
from backend.metrics.records import Rollout

STATISTICS = ("mean", "max", "min", "median", "std")


def describe(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """`mean/<field>`, `max/…`, `min/…`, `median/…` and `std/…` of every number that a rollout has, statistic by statistic.

    Fields come in the order in which they first appear. A rollout without a field is left out of it, never a zero. `std` is
    the sample standard deviation over the values there are: absent below two of them, except that a single rollout has 0.0.
    """
    summaries = [
        (_keys(name), summary) for name, values in columns_of(rollouts).items() if (summary := summarize(values)) is not None
    ]
    result: dict[str, float] = {keys[0]: summary.mean for keys, summary in summaries}
    result.update([(keys[1], summary.max) for keys, summary in summaries])
    result.update([(keys[2], summary.min) for keys, summary in summaries])
    result.update([(keys[3], summary.median) for keys, summary in summaries])
    alone = len(rollouts) == 1
    for keys, summary in summaries:
        if summary.std is not None or alone:
            result[keys[4]] = summary.std or 0.0
    return result


def columns_of(rollouts: Sequence[Rollout]) -> dict[str, list[float]]:
    """The values of each number that a rollout has, fields in the order of their first appearance."""
    rows = [rollout.numbers for rollout in rollouts]
    try:
        # Nearly always all rollouts have the same fields.
        if sum(map(len, rows)) == len(rows) * len(rows[0]):
            return {name: [row[name] for row in rows] for name in rows[0]}
    except KeyError:
        pass
    columns: dict[str, list[float]] = {}
    for row in rows:
        for name, number in row.items():
            columns.setdefault(name, []).append(number)
    return columns


def group_row(
    rollouts: Sequence[Rollout], sample: dict[str, Any], expected: int, agent_ref: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The report on one task: statistics, a sample input, how complete it is (0-100), and each rollout's own numbers.

    `rollouts` are at least one, sorted by rollout index; `expected` counts those that were planned.
    """
    row: dict[str, Any] = {TASK: rollouts[0].task, **describe(rollouts)}
    if agent_ref is not None:
        row["agent_ref"] = agent_ref
    count = len(rollouts)
    row["sample"] = sample
    row["num_rollouts"] = count
    row["expected_num_rollouts"] = expected
    row["missing_num_rollouts"] = expected - count
    row["reward_profile_completion_pct"] = 100 * count / expected
    row["rollout_infos"] = [rollout.info for rollout in rollouts]
    return row


def by_task(rollouts: Iterable[Rollout]) -> dict[int, list[Rollout]]:
    """The rollouts of each task, in the order given."""
    tasks: dict[int, list[Rollout]] = {}
    for rollout in rollouts:
        tasks.setdefault(rollout.task, []).append(rollout)
    return tasks


@functools.lru_cache(maxsize=4096)
def _keys(name: str) -> tuple[str, ...]:
    return tuple(f"{statistic}/{name}" for statistic in STATISTICS)
