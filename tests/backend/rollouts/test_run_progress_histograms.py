"""Histograms of bounded size."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.rollouts.run_progress_histograms import Bin, LogHistogram, RewardHistogram


def test_quantiles_are_right_to_one_per_cent() -> None:
    histogram = LogHistogram()
    for value in range(1, 1001):
        histogram.add(value)
    assert histogram.quantile(0.5) == pytest.approx(500, rel=0.011)
    assert histogram.quantile(0.95) == pytest.approx(950, rel=0.011)
    assert (histogram.quantile(0), histogram.quantile(1)) == (pytest.approx(1, rel=0.01), pytest.approx(1000, rel=0.011))


def test_equal_values_are_told_exactly() -> None:
    histogram = LogHistogram()
    for _ in range(3):
        histogram.add(7)
    assert [histogram.quantile(fraction) for fraction in (0.05, 0.5, 0.95)] == [7, 7, 7]


def test_an_empty_histogram_has_no_quantile_and_no_bins() -> None:
    assert (LogHistogram().quantile(0.5), LogHistogram().bins()) == (None, ())


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=200), st.floats(0, 1))
def test_quantiles_lie_within_a_bucket_of_the_true_ones(values: list[float], fraction: float) -> None:
    histogram = LogHistogram()
    for value in values:
        histogram.add(value)
    true = sorted(values)[max(0, math.ceil(fraction * len(values)) - 1)]
    found = histogram.quantile(fraction)
    assert found is not None
    assert min(values) <= found <= max(values)
    if 1e-3 < true < 1e9:
        assert found == pytest.approx(true, rel=0.011)
    assert sum(each.count for each in histogram.bins(12)) == len(values)
    assert len(histogram.bins(12)) <= 12


def test_exactly_zero_and_exactly_one_have_their_own_bins() -> None:
    histogram = RewardHistogram()
    for reward in (0, 0.0, 1, 1.0, 1.0, 0.5, 1e-9, 1 - 1e-12):
        histogram.add(reward)
    bins = histogram.bins()
    assert len(bins) == 26
    assert (bins[0], bins[-1]) == (Bin(0, 0, 2), Bin(1, 1, 3))
    assert (bins[1].count, bins[13].count, bins[24].count) == (1, 1, 1)
    assert bins[13] == Bin(0.5, 13 / 24, 1)


def test_rewards_outside_widen_the_bins_and_none_is_lost() -> None:
    histogram = RewardHistogram()
    for reward in (0, 1, 0.5, -19.8, 5.2):
        histogram.add(reward)
    bins = histogram.bins()
    assert len(bins) <= 32
    assert sum(each.count for each in bins) == 5
    assert bins[0].low <= -19.8 and bins[-1].high > 5.2
    assert all(one.high == following.low for one, following in pairwise(bins))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=50))
def test_any_finite_reward_is_counted(rewards: list[float]) -> None:
    histogram = RewardHistogram()
    for reward in rewards:
        histogram.add(reward)
    bins = histogram.bins()
    assert sum(each.count for each in bins) == len(rewards)
    assert len(bins) <= 32
