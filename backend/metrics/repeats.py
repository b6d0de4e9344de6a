"""Statistics per repeat over the tasks of one agent, and over its repeats."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from backend.errors import name_some
from backend.io.row_keys import ROLLOUT
from backend.metrics.descriptive import Summary, as_number, percentile_of_sorted, summarize
from backend.metrics.groups import columns_of
from backend.metrics.records import Rollout
from backend.metrics.student_t import t_quantile_975


def repeat_rows(rollouts: Sequence[Rollout]) -> list[dict[str, Any]]:
    """One entry per rollout index, ascending: how many of the agent's tasks have it, and statistics over them.

    `rollouts` are those of one agent. Empty unless there are at least two different indices. `ci_*_95` is the two-sided Student-t
    interval of the mean, not clipped to any range; absent for a single value.
    """
    repeats: dict[int, list[Rollout]] = {}
    for rollout in rollouts:
        repeats.setdefault(rollout.repeat, []).append(rollout)
    if len(repeats) < 2:
        return []
    tasks = len({rollout.task for rollout in rollouts})
    rows = [_repeat_row(repeat, repeats[repeat], tasks) for repeat in sorted(repeats)]
    incomplete = [row[ROLLOUT] for row in rows if row["missing_count"]]
    if incomplete:
        warnings.warn(
            f"{len(incomplete)} of {len(rows)} repeats do not cover all {tasks} tasks: {name_some(incomplete)}", stacklevel=2
        )
    return rows


def across_repeats(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Statistics of each `mean/<field>` over the repeats, every repeat weighing the same.

    With ragged repeats this differs from the mean over all rollouts.
    """
    result: dict[str, float] = {}
    columns: dict[str, list[float]] = {}
    for row in rows:
        for key, value in row.items():
            if key.startswith("mean/"):
                columns.setdefault(key, []).append(value)
    for key in sorted(columns):
        summary = summarize(columns[key])
        if summary is None:
            continue
        result[f"mean_across_repeats/{key}"] = summary.mean
        result[f"median_across_repeats/{key}"] = summary.median
        result[f"std_across_repeats/{key}"] = summary.std or 0.0
        result[f"min_across_repeats/{key}"] = summary.min
        result[f"max_across_repeats/{key}"] = summary.max
        result[f"se_across_repeats/{key}"] = standard_error(summary)
        interval = mean_interval(summary)
        if interval:
            result[f"ci_low_95_across_repeats/{key}"], result[f"ci_high_95_across_repeats/{key}"] = interval
    return result


def standard_error(summary: Summary) -> float:
    """Standard error of the mean; 0.0 for a single value."""
    return (summary.std or 0.0) / math.sqrt(summary.n)


def mean_interval(summary: Summary) -> tuple[float, float] | None:
    """The two-sided 95 % Student-t interval of the mean; None for a single value."""
    if summary.n < 2:
        return None
    reach = t_quantile_975(summary.n - 1) * standard_error(summary)
    return summary.mean - reach, summary.mean + reach


def _repeat_row(repeat: int, rollouts: Sequence[Rollout], tasks: int) -> dict[str, Any]:
    columns = columns_of(rollouts)
    row: dict[str, Any] = {ROLLOUT: repeat, "sample_count": len(rollouts), "missing_count": tasks - len(rollouts)}
    for name in sorted(columns):
        summary = summarize(columns[name])
        if summary is None:
            continue
        values = sorted(value for value in columns[name] if as_number(value) is not None)
        row[f"mean/{name}"] = summary.mean
        row[f"median/{name}"] = summary.median
        row[f"std/{name}"] = summary.std or 0.0
        row[f"sem/{name}"] = standard_error(summary)
        row[f"min/{name}"] = summary.min
        row[f"max/{name}"] = summary.max
        row[f"p25/{name}"] = float(percentile_of_sorted(values, 0.25))
        row[f"p75/{name}"] = float(percentile_of_sorted(values, 0.75))
        interval = mean_interval(summary)
        if interval:
            row[f"ci_low_95/{name}"], row[f"ci_high_95/{name}"] = interval
    return row
