"""Effort of rollouts beyond the recorded cases: malformed evidence counts as none."""

from __future__ import annotations

from typing import Any

import pytest

from backend.metrics.perf import compute_perf_summary, rollout_perf


def test_a_quantity_nobody_reports_has_no_keys() -> None:
    summary = compute_perf_summary([{"num_turns": None, "prompt_tokens": "12"}], 2)
    assert summary == {"overall_observability_coverage": 0.5, "token_observability_coverage": 0.0}


def test_a_turnless_rollout_has_no_tokens_per_turn() -> None:
    summary = compute_perf_summary([{"num_turns": 0, "completion_tokens": 5}], 1)
    assert summary is not None and "mean_tokens_per_turn" not in summary


@pytest.mark.parametrize("trajectory", [{}, {"invocations": None}, {"invocations": ["x"]}])
def test_no_invocation_no_perf(trajectory: dict[str, Any]) -> None:
    assert rollout_perf(trajectory, 1.0) is None


def test_a_call_named_twice_counts_once() -> None:
    trajectory = {
        "invocations": [{"invocation_id": "i", "model_calls": [{"model_call_id": "c"}, {"model_call_id": "c"}]}],
        "model_calls": [{"model_call_id": "c", "token_stats": {"prompt_tokens": 7}}],
    }
    perf = rollout_perf(trajectory, None)
    assert perf == {"num_turns": 2, "num_tool_calls": 0, "token_observability_coverage": 0.5, "prompt_tokens": 7}
