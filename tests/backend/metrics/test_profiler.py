"""Reward profiles beyond the recorded cases."""

from __future__ import annotations

from typing import Any

import pytest

from backend.errors import GymError
from backend.metrics.profiler import RewardProfiler, profile_rewards


def row(task: int, rollout: int, **fields: Any) -> dict[str, Any]:
    return {"_ng_task_index": task, "_ng_rollout_index": rollout, "agent_ref": {"name": "a"}, **fields}


def test_a_null_response_is_no_obstacle() -> None:
    profile = profile_rewards([row(0, 0), row(1, 0)], [row(1, 0, response=None, reward=1.0), row(0, 0, reward=0.0)])
    assert profile.agent_metrics[0]["mean/reward"] == 0.5


@pytest.mark.parametrize(
    ("rows", "results", "named"),
    [
        ([row(0, 0), row(0, 0)], [], r"\(0, 0\)"),
        ([{"_ng_task_index": 0, "_ng_rollout_index": 0}], [row(0, 0)], "agent_ref.name"),
        ([row(0, 0)], [{"reward": 1.0}], "_ng_task_index"),
        ([{"agent_ref": {"name": "a"}}], [], "entry 0"),
    ],
)
def test_problems_are_named(rows: list[Any], results: list[Any], named: str) -> None:
    with pytest.raises(GymError, match=named):
        profile_rewards(rows, results)


def test_the_completion_summary_counts_what_does_not_belong() -> None:
    summary = RewardProfiler().profile_completion_summary([row(0, 0), row(0, 1), row(1, 0)], [row(0, 0), row(5, 0)])
    assert summary == {
        "expected_rollout_rows": 3,
        "completed_rollout_rows": 1,
        "missing_rollout_rows": 2,
        "extra_rollout_rows": 1,
        "reward_profile_completion_pct": pytest.approx(100 / 3),
        "total_input_rows": 2,
        "complete_input_rows": 0,
        "partial_input_rows": 1,
        "missing_input_rows": 1,
    }
