"""Running scores agree with the scores of a whole list."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.metrics.intervals import BOOTSTRAP_TASKS, score_interval, wilson
from backend.rollouts.run_progress_scores import TaskOutcomes, TaskScores


def scores_of(pairs: Sequence[tuple[int, float]]) -> TaskScores:
    scores = TaskScores()
    for task, score in pairs:
        scores.add(task, score)
    return scores


def test_nothing_is_known_at_first() -> None:
    scores = TaskScores()
    assert (scores.mean, scores.interval(), scores.outcomes()) == (None, None, TaskOutcomes(0, 0, 0))


def test_single_binary_scores_have_the_wilson_interval() -> None:
    scores = scores_of([(task, float(task < 26)) for task in range(72)])
    assert scores.mean == pytest.approx(26 / 72)
    assert scores.interval() == wilson(26, 72)


def test_all_alike_keeps_a_width() -> None:
    scores = scores_of([(task, 1.0) for task in (0, 0, 1, 1)])
    assert scores.interval() == wilson(2, 2)


def test_few_tasks_have_the_interval_of_the_closing_summary() -> None:
    # Task means .5, 1, 0: of the 27 resamples of three tasks, 1 has the mean 0 and 1 the mean 1, each more than 2.5 %.
    tasks = [[1, 0], [1, 1], [0, 0]]
    interval = scores_of([(task, score) for task, scores in enumerate(tasks) for score in scores]).interval()
    assert interval is not None
    assert interval == score_interval(tasks)
    assert (interval.low, interval.high, interval.method) == (0.0, 1.0, "bootstrap")


def test_clustered_interval_by_hand() -> None:
    # 50 times the tasks (1, 0), (1, 1), (0, 0): the task means differ from .5 by 0, .5, -.5, so their variance is 100 * .25 / 149.
    triples = [(0, (1, 0)), (1, (1, 1)), (2, (0, 0))]
    interval = scores_of([(3 * n + task, score) for n in range(50) for task, scores in triples for score in scores]).interval()
    assert interval is not None
    assert interval.method == "normal"
    assert (interval.low + interval.high) / 2 == pytest.approx(0.5)
    assert interval.high - 0.5 == pytest.approx(1.959963984540054 * math.sqrt(25 / 149) / math.sqrt(150))


def test_no_interval_leaves_the_scale_of_the_scores() -> None:
    # One of 300 repeats failed: the reach is 1.96 / 150 and so three times the distance of the mean from 1.
    scores = scores_of([(task, float(task + repeat > 0)) for task in range(150) for repeat in range(2)])
    interval = scores.interval()
    assert interval is not None and scores.mean is not None
    assert (interval.method, interval.high) == ("normal", 1.0)
    assert interval.low == pytest.approx(299 / 300 - 1.959963984540054 * 0.5 / 150)
    assert scores.within_unit
    wide = scores_of([(task, 3.0 * (task % 2) - 1) for task in range(150)])
    assert not wide.within_unit
    assert wide.interval() is not None


@given(st.lists(st.tuples(st.integers(0, 200), st.sampled_from([0.0, 0.25, 0.9, 1.0])), min_size=1, max_size=120))
def test_an_interval_stays_between_0_and_1_with_its_scores(pairs: list[tuple[int, float]]) -> None:
    interval = scores_of(pairs).interval()
    assert interval is None or 0 <= interval.low <= interval.high <= 1


def test_tasks_that_wait_for_repeats_have_no_outcome_yet() -> None:
    scores = TaskScores()
    assert scores.hold(0) and not scores.hold(0)
    scores.add(0, 1.0)
    assert (scores.outcomes(), scores.tasks) == (TaskOutcomes(0, 0, 0), 1)
    assert scores.interval() == wilson(1, 1)
    scores.release(0)
    assert scores.outcomes() == TaskOutcomes(1, 0, 0)
    scores.release(5)
    assert scores.outcomes() == TaskOutcomes(1, 0, 0)


def test_one_task_of_graded_scores_has_no_interval() -> None:
    assert scores_of([(0, 0.3), (0, 0.7)]).interval() is None


def test_outcomes() -> None:
    scores = scores_of([(0, 1), (0, 1), (1, 0), (2, 0), (2, 1), (3, 0.5), (10**12, 1), (-1, 0)])
    assert scores.outcomes() == TaskOutcomes(all_pass=2, all_fail=2, mixed=2)
    assert scores.tasks == 6


def test_the_normal_interval_is_that_of_the_closing_summary() -> None:
    tasks = [[(task * 7 % 5) / 4, (task * 3 % 7) / 6] for task in range(BOOTSTRAP_TASKS + 1)]
    expected = score_interval(tasks)
    found = scores_of([(task, score) for task, scores in enumerate(tasks) for score in scores]).interval()
    assert expected is not None and found is not None
    assert (found.method, expected.method) == ("normal", "normal")
    assert found.low == pytest.approx(expected.low, abs=1e-12)
    assert found.high == pytest.approx(expected.high, abs=1e-12)


def test_large_scores_that_are_close_together_keep_their_spread() -> None:
    low = scores_of([(task, float(task % 2) / 2) for task in range(100)]).interval()
    high = scores_of([(task, 1e9 + float(task % 2) / 2) for task in range(100)]).interval()
    assert low is not None and high is not None
    assert high.high - high.low == pytest.approx(low.high - low.low, rel=1e-6)


@given(st.lists(st.tuples(st.integers(-3, 6), st.floats(-100, 100)), min_size=1, max_size=60))
def test_order_does_not_matter(pairs: list[tuple[int, float]]) -> None:
    forward, backward = scores_of(pairs), scores_of(pairs[::-1])
    values = [score for _, score in pairs]
    assert forward.mean == pytest.approx(math.fsum(values) / len(values), abs=1e-9)
    assert forward.outcomes() == backward.outcomes()
    one, other = forward.interval(), backward.interval()
    assert (one is None) == (other is None)
    if one and other:
        assert one.low <= forward.mean + 1e-9 and forward.mean <= one.high + 1e-9  # type: ignore[operator]
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=1e-4)
