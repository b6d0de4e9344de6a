"""What a run's closing summary says about its mean reward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from backend.metrics.descriptive import as_number
from backend.metrics.intervals import Interval

MEAN = "reward/mean"


class ClosingMean(NamedTuple):
    """The mean of a run that is over, as its summary has it."""

    value: float
    interval: Interval | None


def closing_mean(summary: Mapping[str, Any] | None) -> ClosingMean | None:
    """The mean reward in the fields of `run.summary`; None where it has none, or one for each of several agents."""
    scores = summary.get("scores") if summary is not None else None
    rows = [row for row in scores if isinstance(row, dict) and row.get("name") == MEAN] if isinstance(scores, list) else []
    value = as_number(rows[0].get("value")) if len(rows) == 1 else None
    if value is None:
        return None
    interval = rows[0].get("interval")
    bounds: Mapping[str, Any] = interval if isinstance(interval, dict) else {}
    low, high = as_number(bounds.get("low")), as_number(bounds.get("high"))
    if low is None or high is None or low > high:
        return ClosingMean(float(value), None)
    return ClosingMean(float(value), Interval(float(low), float(high), str(bounds.get("method"))))
