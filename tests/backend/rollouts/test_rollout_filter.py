"""Rows that fit, and their order."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.rollouts import rollout_filter
from backend.rollouts.rollout_filter import in_order, matching
from backend.rollouts.rollout_keys import TOO_BIG, RolloutKeys
from backend.rollouts.rollout_query import Sort, parse_query


def record(task: Any, reward: float | None, **more: Any) -> dict[str, Any]:
    return {"_ng_task_index": task, "_ng_rollout_index": 0, "reward": reward, **more}


@pytest.fixture
def keys() -> RolloutKeys:
    keys = RolloutKeys()
    keys.append(record(1, 0.0, agent_ref={"name": "Math"}, response={"status": "completed", "usage": {"output_tokens": 30}}), 0)
    keys.append(record(2, 1.0, agent_ref={"name": "code"}, response={"status": "completed", "usage": {"output_tokens": 10}}), 0)
    keys.append(record(3, None, _ng_failure_class="timeout_exceeded"), 0)
    keys.append(None, 0)
    keys.append(record("hard", 0.5, response={"incomplete_details": {"reason": "max_output_tokens"}}), TOO_BIG)
    return keys


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", [0, 1, 2, 3, 4]),
        ("reward<1", [0, 4]),
        ("!reward<1", [1]),
        ("reward!=1", [0, 4]),
        ("reward:0.5..1", [1, 4]),
        ("task:1,3", [0, 2]),
        ("task!=1,3", [1]),
        ("task:2..", [1, 2]),
        ("task:hard", [4]),
        ("tokens>=10", [0, 1]),
        ("size>2", [3, 4]),
        ("fail:time", [2]),
        ("fail=time", []),
        ("fail:any", [2]),
        ("fail:none", [0, 1, 3, 4]),
        ("end:length", [4]),
        ("end!=stop", [2, 3, 4]),
        ("agent:math", [0]),
        ("is:failed", [2]),
        ("is:scored", [0, 1, 4]),
        ("is:unreadable", [3]),
        ("is:big", [4]),
        ("reward<1 is:scored !end:length", [0]),
    ],
)
def test_rows_that_fit(keys: RolloutKeys, text: str, rows: list[int]) -> None:
    assert list(matching(keys, parse_query(text).conditions, lambda row: row)) == rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("sort:reward", [0, 4, 1, 2, 3]),
        ("sort:-reward", [1, 4, 0, 2, 3]),
        ("sort:tokens", [1, 0, 2, 3, 4]),
        ("sort:task", [4, 0, 1, 2, 3]),
        ("sort:end", [4, 0, 1, 2, 3]),
        ("sort:agent", [0, 1, 2, 3, 4]),
        ("sort:-agent", [1, 0, 2, 3, 4]),
        ("sort:-size", [4, 3, 2, 1, 0]),
        ("sort:-file", [4, 3, 2, 1, 0]),
    ],
)
def test_rows_without_a_value_come_last(keys: RolloutKeys, text: str, rows: list[int]) -> None:
    sort = parse_query(text).sort
    assert sort is not None
    assert in_order(keys, range(5), sort, lambda row: row) == rows


@given(st.lists(st.floats(-2, 2) | st.just(math.nan) | st.sampled_from([0.0, 1.0]), max_size=150), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_sorting_in_pieces_is_stable(monkeypatch: pytest.MonkeyPatch, rewards: list[float], descending: bool) -> None:
    monkeypatch.setattr(rollout_filter, "_SORTED_AT_ONCE", 8)
    monkeypatch.setattr(rollout_filter, "_SAMPLE", 5)
    keys = RolloutKeys()
    for reward in rewards:
        keys.append({"reward": reward}, 0)
    known = [row for row, reward in enumerate(rewards) if reward == reward]
    missing = [row for row, reward in enumerate(rewards) if reward != reward]
    expected = sorted(known, key=lambda row: rewards[row], reverse=descending) + missing
    assert in_order(keys, range(len(rewards)), Sort("reward", descending), abs) == expected
