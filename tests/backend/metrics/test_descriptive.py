"""Statistics on plain lists, compared with the standard library."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.metrics.descriptive import as_number, mean, percentile_of_sorted, population_std, sample_std, summarize

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(VALUES)
def test_summary_agrees_with_the_standard_library(values: list[float]) -> None:
    summary = summarize(values)
    assert summary is not None
    assert summary.mean == pytest.approx(statistics.fmean(values), rel=1e-9, abs=1e-9)
    assert summary.median == pytest.approx(statistics.median(values))
    assert (summary.min, summary.max, summary.n) == (min(values), max(values), len(values))
    if len(values) == 1:
        assert summary.std is None
    else:
        assert summary.std == pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-6)
    assert population_std(values) == pytest.approx(statistics.pstdev(values), rel=1e-6, abs=1e-6)


@given(st.floats(-1e9, 1e9), st.integers(2, 50))
def test_equal_values_have_no_spread_and_keep_their_mean(value: float, count: int) -> None:
    assert summarize([value] * count) == (value, value, value, value, 0.0, count)


@given(VALUES, st.floats(0, 1))
def test_percentiles_lie_between_their_neighbours(values: list[float], fraction: float) -> None:
    ordered = sorted(values)
    place = (len(ordered) - 1) * fraction
    found = percentile_of_sorted(ordered, fraction)
    slack = 1e-9 * (1 + abs(found))
    assert ordered[math.floor(place)] - slack <= found <= ordered[math.ceil(place)] + slack


def test_percentile_by_hand() -> None:
    assert percentile_of_sorted([1, 2, 3, 10], 0.25) == 1.75
    assert percentile_of_sorted([1, 2, 3, 10], 0.9) == pytest.approx(7.9)
    assert percentile_of_sorted([4], 0.99) == 4


@pytest.mark.parametrize("unusable", [None, "1.0", math.nan, math.inf, -math.inf, 10**400, [1], {}])
def test_what_is_no_number(unusable: object) -> None:
    assert as_number(unusable) is None
    assert summarize([1.0, unusable, 3.0] if isinstance(unusable, int | float) else [1.0, 3.0]) == summarize([1.0, 3.0])


def test_booleans_are_numbers() -> None:
    assert as_number(True) == 1
    assert type(as_number(True)) is int


def test_nothing_and_too_much_have_no_summary() -> None:
    assert summarize([]) is None
    assert summarize([math.nan]) is None
    assert summarize([1.7e308, 1.7e308]) is None
    assert sample_std([]) == 0.0
    assert mean([0.1] * 10) == 0.1
