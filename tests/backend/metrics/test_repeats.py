"""Repeats of one agent: intervals by hand, ragged repeats, single values."""

from __future__ import annotations

import pytest

from backend.metrics.descriptive import Summary
from backend.metrics.records import Rollout
from backend.metrics.repeats import across_repeats, mean_interval, repeat_rows, standard_error


@pytest.mark.parametrize(("count", "low", "high"), [(2, -0.7706, 1.7706), (3, 0.0697, 0.9303), (10, 0.2738, 0.7262)])
def test_t_intervals(count: int, low: float, high: float) -> None:
    summary = Summary(0.5, 1.0, 0.0, 0.5, 0.1 * count**0.5, count)
    assert standard_error(summary) == pytest.approx(0.1)
    assert mean_interval(summary) == pytest.approx((low, high), abs=5e-5)


def rollout(task: int, repeat: int, **numbers: float) -> Rollout:
    return Rollout(task, repeat, dict(numbers), {})


def test_a_single_repeat_says_nothing() -> None:
    assert repeat_rows([rollout(0, 3, reward=1.0), rollout(1, 3, reward=0.0)]) == []
    assert across_repeats([]) == {}


def test_a_repeat_with_one_task_has_no_interval() -> None:
    with pytest.warns(UserWarning, match="1 of 2 repeats do not cover all 2 tasks: 1"):
        first, second = repeat_rows([rollout(0, 0, reward=1.0), rollout(1, 0, reward=0.0), rollout(0, 1, reward=1.0)])
    assert (first["sample_count"], first["missing_count"], second["sample_count"], second["missing_count"]) == (2, 0, 1, 1)
    assert "ci_low_95/reward" in first and "ci_low_95/reward" not in second
    assert second["std/reward"] == second["sem/reward"] == 0.0


def test_each_repeat_weighs_the_same() -> None:
    with pytest.warns(UserWarning):
        rows = repeat_rows([rollout(0, 0, reward=1.0), rollout(1, 0, reward=1.0), rollout(0, 1, reward=0.0)])
    assert across_repeats(rows)["mean_across_repeats/mean/reward"] == 0.5


def test_not_a_number_is_no_value() -> None:
    rows = repeat_rows([rollout(0, 0, reward=float("nan"), n=1), rollout(0, 1, reward=0.5, n=1)])
    assert "mean/reward" not in rows[0]
    assert rows[1]["p25/reward"] == 0.5
