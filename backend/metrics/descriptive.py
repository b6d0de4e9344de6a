"""Descriptive statistics on plain lists of numbers, without a numerical library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

NUMBERS = (int, float)


class Summary(NamedTuple):
    """Mean, extremes, median and sample standard deviation of `n` values, all floats.

    `std` (divisor n - 1) is None for a single value.
    """

    mean: float
    max: float
    min: float
    median: float
    std: float | None
    n: int


def as_number(value: Any) -> int | float | None:
    """`value` when it is a finite number, a boolean as 0 or 1; None for anything else."""
    if not isinstance(value, NUMBERS):
        return None
    try:
        return +value if math.isfinite(value) else None
    except OverflowError:  # an integer beyond the range of floats
        return None


def summarize(values: Sequence[float]) -> Summary | None:
    """The summary of those values that are finite; None when there is none, or when their sum exceeds the range of floats.

    Equal values give exactly that value as their mean and 0.0 as their deviation, whatever rounding would do.
    """
    try:
        total = math.fsum(values)
        usable = total - total == 0.0
    except (OverflowError, ValueError):  # an integer beyond the range of floats, or infinities of both signs
        usable = False
    if not usable:
        finite = [value for value in values if as_number(value) is not None]
        return summarize(finite) if len(finite) < len(values) else None
    count = len(values)
    if count < 2:
        return Summary(total, total, total, total, None, count) if count else None
    ordered = sorted(values)
    low, high = float(ordered[0]), float(ordered[-1])
    if low == high:
        return Summary(low, low, low, low, 0.0, count)
    centre = total / count
    deviation = math.dist(ordered, [centre] * count) / math.sqrt(count - 1)
    return Summary(centre, high, low, median_of_sorted(ordered), deviation, count)


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean of at least one value, summed without loss."""
    return math.fsum(values) / len(values)


def sample_std(values: Sequence[float]) -> float:
    """Sample standard deviation (divisor n - 1); 0.0 for a single value."""
    summary = summarize(values)
    return (summary.std or 0.0) if summary else 0.0


def population_std(values: Sequence[float]) -> float:
    """Population standard deviation (divisor n) of at least one value."""
    centre = mean(values)
    return math.dist(values, [centre] * len(values)) / math.sqrt(len(values))


def median_of_sorted(ordered: Sequence[float]) -> float:
    """Median of at least one ascending value; the mean of the middle two when their number is even."""
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[middle])
    return (ordered[middle - 1] + ordered[middle]) / 2


def percentile_of_sorted(ordered: Sequence[float], fraction: float) -> float:
    """Percentile at `fraction` (0-1) of ascending values, linear between the neighbours of position (n - 1) * fraction.

    This is method 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American Statistician 50 (1996).
    """
    position = (len(ordered) - 1) * fraction
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
