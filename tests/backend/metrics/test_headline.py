"""The closing rows: names, scales, counts and intervals."""

from __future__ import annotations

import pytest

from backend.metrics.headline import FRACTION, PERCENT, RAW, AgentScores, summary_rows
from backend.metrics.intervals import wilson
from backend.metrics.pass_at_k import compute_pass_majority_metrics


def test_rows_of_one_agent() -> None:
    rewards = [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    tasks = [[{"reward": reward, "answer": str(reward)} for reward in task] for task in rewards]
    metrics = {"mean/reward": 0.5, **compute_pass_majority_metrics(tasks, answer_key="answer")[0]}
    rows = summary_rows([AgentScores("a", rewards, scored=5, failed=1, missing=0, key_metrics=metrics)])
    named = {row.name: row for row in rows}
    assert next(iter(named)) == "reward/mean"
    assert (named["reward/mean"].value, named["reward/mean"].scale) == (0.5, FRACTION)
    assert named["reward/mean"].interval.method == "bootstrap"  # type: ignore[union-attr]
    assert (named["pass@2/accuracy"].value, named["pass@2/accuracy"].scale) == (pytest.approx(200 / 3), PERCENT)
    assert named["pass@2/accuracy"].interval == wilson(2, 3).scaled(100)
    assert named["majority@2/accuracy"].interval is None
    assert "majority@2/no_answer" not in named and "pass@2/no_answer" in named
    assert not [name for name in named if name.endswith(("across_runs", "avg_sample_std_dev")) or name.startswith("mean/")]
    assert {(row.scored, row.failed, row.missing) for row in rows} == {(5, 1, 0)}


def test_a_score_that_is_not_the_reward_has_no_interval() -> None:
    scores = AgentScores("a", [[1.0], [0.0]], 2, 0, 0, {"pass@1/style": 75.0, "easy/pass@1/accuracy": 50.0})
    intervals = {row.name: row.interval for row in summary_rows([scores])}
    assert intervals["pass@1/style"] is None
    assert intervals["reward/mean"] == wilson(1, 2)


def test_rewards_beyond_one_are_not_called_fractions() -> None:
    assert summary_rows([AgentScores("a", [[3.0], [-1.0]], 2, 0, 0)])[0].scale == RAW


def test_without_scores_the_row_stays() -> None:
    (row,) = summary_rows([AgentScores("a", [], scored=0, failed=2, missing=1)])
    assert (row.value, row.interval, row.failed, row.missing) == (None, None, 2, 1)
