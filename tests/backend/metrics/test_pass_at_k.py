"""pass@k, averages and majority votes, compared with plain definitions on random tasks, and on unusable input."""

from __future__ import annotations

import itertools
import math
import statistics
import warnings
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.metrics.pass_at_k import (
    add_avg_sample_std_dev,
    compute_pass_majority_metrics,
    compute_subset_metrics,
    highest_k_metrics,
    pass_at_k,
)

BINARY = st.sampled_from([0.0, 1.0])
GRADED = st.sampled_from([0.0, 0.25, 0.5, 1.0])
ANSWERS = st.sampled_from([None, "A", "B", "C"])


def tasks_of(scores: Any) -> Any:
    attempt = st.fixed_dictionaries({"reward": scores, "ans": ANSWERS})
    return st.lists(st.lists(attempt, min_size=1, max_size=5), min_size=1, max_size=6)


def chance_of_a_pass(values: list[float], k: int) -> float:
    """The share of all ways to choose k attempts that have a right one among them."""
    choices = list(itertools.combinations(values, k))
    return sum(max(choice) for choice in choices) / len(choices)


def vote(attempts: list[dict[str, Any]]) -> float:
    votes = Counter((attempt["ans"], attempt["reward"]) for attempt in attempts if attempt["ans"] is not None)
    most = max(votes.values(), default=0)
    tied = [score for (_, score), count in votes.items() if count == most]
    return statistics.fmean(tied) if tied else 0.0


@given(tasks_of(BINARY))
def test_pass_at_k_is_the_chance_over_all_choices(tasks: list[list[dict[str, Any]]]) -> None:
    metrics, _, _, max_k = compute_pass_majority_metrics(tasks)
    for k in range(1, max_k + 1):
        long_enough = [[attempt["reward"] for attempt in task] for task in tasks if len(task) >= k]
        expected = 100 * statistics.fmean(chance_of_a_pass(values, k) for values in long_enough)
        assert metrics[f"pass@{k}/accuracy"] == pytest.approx(expected, abs=1e-9)


@given(tasks_of(GRADED))
def test_averages_votes_and_spreads(tasks: list[list[dict[str, Any]]]) -> None:
    metrics, score_dicts, names, max_k = compute_pass_majority_metrics(tasks, answer_key="ans")
    assert names == ["accuracy", "no_answer"]
    add_avg_sample_std_dev(metrics, score_dicts, names, max_k)
    for k in range(1, max_k + 1):
        firsts = [[attempt["reward"] for attempt in task[:k]] for task in tasks]
        assert metrics[f"pass@1[avg-of-{k}]/accuracy"] == pytest.approx(100 * statistics.fmean(map(statistics.fmean, firsts)))
        assert metrics[f"majority@{k}/accuracy"] == pytest.approx(100 * statistics.fmean(vote(task[:k]) for task in tasks))
        assert metrics[f"majority@{k}/no_answer"] == 0.0
        several = [statistics.stdev(values) for values in firsts if len(values) >= 2]
        key = f"pass@1[avg-of-{k}]/accuracy/avg_sample_std_dev"
        assert (key in metrics) == bool(several)
        if several:
            assert metrics[key] == pytest.approx(statistics.fmean(several), abs=1e-9)


@given(st.integers(1, 60), st.data())
def test_one_task_against_the_binomial_formula(n: int, data: st.DataObject) -> None:
    right = data.draw(st.integers(0, n))
    k = data.draw(st.integers(1, n))
    values = [1.0] * right + [0.0] * (n - right)
    assert pass_at_k(values, k) == pytest.approx(1 - math.comb(n - right, k) / math.comb(n, k), abs=1e-12)


@pytest.mark.filterwarnings("ignore:.*no usable score:UserWarning")
def test_too_few_attempts_have_no_pass_at_k() -> None:
    assert pass_at_k([0, 0], 4) is None
    metrics = compute_pass_majority_metrics([[{"reward": 0.0}, {}], [{"reward": 1.0}]])[0]
    assert metrics["pass@1/accuracy"] == 50.0
    assert "pass@2/accuracy" not in metrics


@pytest.mark.parametrize("reward", [None, math.nan, math.inf, "1.0", [1]])
def test_an_unusable_reward_is_left_out_and_reported(reward: Any) -> None:
    tasks = [[{"reward": 1.0}, {"reward": reward}], [{"reward": 0.0}, {"reward": 0.0}]]
    with pytest.warns(UserWarning, match="1 of 4 rollouts have no usable score"):
        metrics = compute_pass_majority_metrics(tasks)[0]
    assert metrics["pass@1/accuracy"] == 50.0
    assert metrics["pass@2/accuracy"] == 0.0


def test_a_score_function_may_fail_only_where_the_reward_is_missing() -> None:
    def accuracy(record: dict[str, Any]) -> dict[str, Any]:
        return {"accuracy": record["reward"] * 1.0}

    with pytest.warns(UserWarning, match="1 of 2"):
        assert compute_pass_majority_metrics([[{"reward": 1.0}, {}]], accuracy)[0]["pass@1/accuracy"] == 100.0
    with pytest.raises(ZeroDivisionError):
        compute_pass_majority_metrics([[{"reward": 1.0}]], lambda record: {"accuracy": 1 / 0})


def test_answers_that_cannot_be_hashed_vote_by_content() -> None:
    task = [{"reward": 1.0, "ans": {"a": [1]}}, {"reward": 0.0, "ans": ["x"]}, {"reward": 1.0, "ans": {"a": [1]}}]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compute_pass_majority_metrics([task], answer_key="ans")[0]["majority@3/accuracy"] == 100.0


def test_subsets_need_a_name() -> None:
    tasks = [[{"reward": 1.0, "level": 2}], [{"reward": 0.0, "level": ""}], [{"reward": 0.0}], []]
    metrics = compute_subset_metrics(tasks, "level")
    assert metrics == {"2/pass@1/accuracy": 100.0, "2/pass@1[avg-of-1]/accuracy": 100.0}


def test_a_pattern_needs_its_placeholder() -> None:
    with pytest.raises(ValueError, match="pass@1"):
        highest_k_metrics({"pass@1/accuracy": 1.0}, "pass@1")
    assert highest_k_metrics({}, "pass@{k}") == {}
