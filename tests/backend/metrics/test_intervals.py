"""Intervals of scores: known values, fixed seed, coverage of the truth."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.metrics.intervals import BOOTSTRAP_TASKS, Interval, score_interval, wilson


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662), (1, 1, 0.2065, 1.0)],
)
def test_wilson_by_hand(successes: int, trials: int, low: float, high: float) -> None:
    interval = wilson(successes, trials)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)


def test_the_method_follows_the_scores() -> None:
    assert score_interval([[1], [0.0], [True]]) == wilson(2, 3)
    assert score_interval([[1, 0], [0, 0], [1, 1]]).method == "bootstrap"  # type: ignore[union-attr]
    assert score_interval([[0.5], [0.25]]).method == "bootstrap"  # type: ignore[union-attr]


def test_nothing_can_be_said() -> None:
    assert score_interval([]) is None
    assert score_interval([[], [math.nan]]) is None
    assert score_interval([[1, 0, 1]]) is None


def test_the_same_scores_give_the_same_interval() -> None:
    tasks = [[random.Random(n).random() for _ in range(4)] for n in range(40)]
    assert score_interval(tasks) == score_interval(list(tasks))


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), min_size=2, max_size=8))
def test_an_interval_stays_within_the_scores(tasks: list[list[float]]) -> None:
    interval = score_interval(tasks)
    assert interval is not None
    scores = [score for task in tasks for score in task]
    if interval.method == "bootstrap":
        assert min(scores) - 1e-9 <= interval.low <= interval.high <= max(scores) + 1e-9


def test_ragged_tasks_weigh_by_their_attempts() -> None:
    interval = score_interval([[1.0] * 9, [0.0]] * 30)
    assert interval is not None
    assert interval.low < 0.9 < interval.high


def test_many_tasks_use_the_limit_of_the_bootstrap() -> None:
    scores = random.Random(7)
    tasks = [[scores.random(), scores.random()] for _ in range(BOOTSTRAP_TASKS + 1)]
    limit, resampled = score_interval(tasks), score_interval(tasks[:-1])
    assert limit is not None and resampled is not None
    assert (limit.method, resampled.method) == ("normal", "bootstrap")
    assert (limit.low, limit.high) == pytest.approx((resampled.low, resampled.high), abs=5e-4)


def test_the_limit_of_the_bootstrap_stays_within_the_scale() -> None:
    # One of 2 * 4,001 scores is 0, and the interval reaches 1.96 times the distance of the mean from 1.
    tasks = [[1.0, 1.0]] * BOOTSTRAP_TASKS + [[1.0, 0.0]]
    interval = score_interval(tasks)
    assert interval is not None
    assert (interval.method, interval.high) == ("normal", 1.0)
    assert interval.low == pytest.approx(1 - (1 + 1.959963984540054) / (2 * (BOOTSTRAP_TASKS + 1)), rel=1e-6)
    beyond = score_interval([[10 * score for score in task] for task in tasks])
    assert beyond is not None and beyond.high > 10


def test_scaled() -> None:
    assert Interval(0.1, 0.5, "wilson").scaled(100) == Interval(10.0, 50.0, "wilson")


@pytest.mark.parametrize(("score", "low", "high"), [(0.0, 0.0, 0.2775), (1.0, 0.7225, 1.0)])
def test_repeats_that_all_agree_still_leave_doubt(score: float, low: float, high: float) -> None:
    """Ten tasks of three equal scores: Wilson with z = 1.96 gives z^2 / (n + z^2) = 3.8415 / 13.8415 = 0.2775."""
    interval = score_interval([[score] * 3 for _ in range(10)])
    assert interval is not None
    assert (round(interval.low, 4), round(interval.high, 4), interval.method) == (low, high, "wilson")
    assert score_interval([[-1.0, 1.0], [1.0, -1.0]]) == Interval(0.0, 0.0, "bootstrap")
