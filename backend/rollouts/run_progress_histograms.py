"""Histograms that take in any number of values in constant memory: one for rewards, one for times and token counts."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from itertools import pairwise

_GROWTH = 1.02
_LOG_GROWTH = math.log(_GROWTH)
_LOWEST = 1e-3
_LOG_LOWEST = math.log(_LOWEST)
_BUCKETS = 1400
"""From 0.001 to beyond 10^9, each bucket 2 % wider than the one before."""

_INNER_BINS = 24
_FIRST_WIDTH = 1 / 16
_MOST_WIDE_BINS = 32
_FARTHEST = 1e300
"""So that no bin's number is beyond the range of floats."""


@dataclass(frozen=True, slots=True)
class Bin:
    """How many values there are from `low` (included) to `high`; where both are equal, exactly that value."""

    low: float
    high: float
    count: int


class LogHistogram:
    """Quantiles of values of at least 0, right to one per cent; what is below 0.001 counts as the smallest value."""

    def __init__(self) -> None:
        self.count = 0
        self.lowest = math.inf
        self.highest = -math.inf
        self._buckets = array("Q", bytes(8 * (_BUCKETS + 1)))

    def add(self, value: float) -> None:
        """Take in a finite value."""
        self.count += 1
        if value < self.lowest:
            self.lowest = value
        if value > self.highest:
            self.highest = value
        if value <= _LOWEST:
            self._buckets[0] += 1
        else:
            self._buckets[min(_BUCKETS, 1 + int((math.log(value) - _LOG_LOWEST) / _LOG_GROWTH))] += 1

    def quantile(self, fraction: float) -> float | None:
        """The value below which `fraction` (0-1) of all values are, by nearest rank; None without values."""
        if not self.count:
            return None
        rank = max(1, math.ceil(fraction * self.count))
        below = 0
        for bucket, count in enumerate(self._buckets):
            below += count
            if below >= rank:
                middle = _LOWEST * _GROWTH ** (bucket - 0.5) if bucket else self.lowest
                return min(max(middle, self.lowest), self.highest)
        return self.highest

    def bins(self, most: int = 12) -> tuple[Bin, ...]:
        """The distribution in up to `most` bins whose bounds grow by a constant factor, from the lowest to the highest value."""
        used = [bucket for bucket, count in enumerate(self._buckets) if count]
        if not used:
            return ()
        first, span = used[0], used[-1] - used[0] + 1
        bins = min(most, span)
        edges = [first + span * number // bins for number in range(bins + 1)]
        return tuple(Bin(_lower_bound(low), _lower_bound(high), sum(self._buckets[low:high])) for low, high in pairwise(edges))


class RewardHistogram:
    """Rewards from 0 to 1 in 26 bins: exactly 0, 24 between, exactly 1. Rewards outside turn it into up to 32 bins over all of them."""

    def __init__(self) -> None:
        self._unit = array("Q", bytes(8 * (_INNER_BINS + 2)))
        self._wide: dict[int, int] | None = None
        self._width = _FIRST_WIDTH

    def add(self, reward: float) -> None:
        """Take in a finite reward."""
        if self._wide is not None:
            self._add_wide(reward, 1)
        elif 0 < reward < 1:
            self._unit[min(_INNER_BINS, 1 + int(reward * _INNER_BINS))] += 1
        elif reward == 0:
            self._unit[0] += 1
        elif reward == 1:
            self._unit[-1] += 1
        else:
            unit = self.bins()
            self._wide = {}
            for each in unit:
                self._add_wide((each.low + each.high) / 2, each.count)
            self._add_wide(reward, 1)

    def bins(self) -> tuple[Bin, ...]:
        """All bins in order, empty ones included."""
        if self._wide is not None:
            numbers = range(min(self._wide), max(self._wide) + 1)
            return tuple(Bin(number * self._width, (number + 1) * self._width, self._wide.get(number, 0)) for number in numbers)
        inner = (
            Bin((number - 1) / _INNER_BINS, number / _INNER_BINS, self._unit[number]) for number in range(1, _INNER_BINS + 1)
        )
        return (Bin(0.0, 0.0, self._unit[0]), *inner, Bin(1.0, 1.0, self._unit[-1]))

    def _add_wide(self, reward: float, count: int) -> None:
        """Count in bins of equal width, which doubles until all bins there are lie close enough together."""
        assert self._wide is not None
        if not count:
            return
        number = math.floor(max(-_FARTHEST, min(_FARTHEST, reward)) / self._width)
        self._wide[number] = self._wide.get(number, 0) + count
        while max(self._wide) - min(self._wide) >= _MOST_WIDE_BINS:
            self._width *= 2
            merged: dict[int, int] = {}
            for old, kept in self._wide.items():
                merged[old >> 1] = merged.get(old >> 1, 0) + kept
            self._wide = merged


def _lower_bound(bucket: int) -> float:
    return _LOWEST * _GROWTH ** (bucket - 1) if bucket else 0.0
