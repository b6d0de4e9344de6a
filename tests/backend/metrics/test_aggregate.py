"""The aggregate of one agent on unusual records, its hooks, and its speed."""

from __future__ import annotations

import math
import random
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.config.config_types import AggregateMetricsRequest
from backend.errors import GymError
from backend.metrics.reward_profile import AggregateMetricsMixin, compute_aggregate_metrics, compute_pass_majority_metrics


def record(task: int, rollout: int, **fields: Any) -> dict[str, Any]:
    return {"_ng_task_index": task, "_ng_rollout_index": rollout, **fields}


def test_nothing_gives_nothing() -> None:
    empty = {"group_level_metrics": [], "agent_metrics": {}, "key_metrics": {}, "perf_summary": None, "repeat_level_metrics": []}
    assert compute_aggregate_metrics([]).model_dump() == empty


def test_unusable_rewards_are_left_out_and_never_averaged() -> None:
    rewards = [1.0, None, math.nan, math.inf, "1.0", True, {"a": 1}]
    records = [record(0, position, reward=reward) for position, reward in enumerate(rewards)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics = compute_aggregate_metrics(records)
    assert metrics.agent_metrics["mean/reward"] == 1.0
    assert metrics.group_level_metrics[0]["num_rollouts"] == 7
    assert [info["reward"] for info in metrics.group_level_metrics[0]["rollout_infos"]][4:] == ["1.0", 1, {"a": 1}]


def test_a_task_of_nothing_but_nan_has_no_statistics() -> None:
    metrics = compute_aggregate_metrics([record(0, 0, reward=math.nan), record(1, 0, reward=0.5)])
    assert "mean/reward" not in metrics.group_level_metrics[0]
    assert metrics.agent_metrics["mean/reward"] == 0.5


def test_framework_keys_and_the_loss_mask_are_no_metrics() -> None:
    rows = [record(0, 0, reward=1.0, mask_sample=True, _ng_attempt_index=2, _ng_other=3)]
    metrics = compute_aggregate_metrics(rows)
    assert set(metrics.key_metrics) == {"mean/reward"}
    info = metrics.group_level_metrics[0]["rollout_infos"][0]
    assert info["_ng_attempt_index"] == 2
    assert info["mask_sample"] == 1


def test_numbers_belong_to_their_tasks_whatever_the_order() -> None:
    rows = [record(33, 0, reward=0.3), record(2, 1, reward=0.1), record(10, 0, reward=0.2), record(2, 0, reward=0.5)]
    with pytest.warns(UserWarning, match="1 of 2 repeats do not cover all 3 tasks: 1"):
        metrics = compute_aggregate_metrics(rows, lambda tasks: {"per_task_metrics": [{"_ng_task_index": 10, "note": "ten"}]})
    assert [(row["_ng_task_index"], row["mean/reward"]) for row in metrics.group_level_metrics] == [
        (2, 0.3),
        (10, 0.2),
        (33, 0.3),
    ]
    assert [row.get("note") for row in metrics.group_level_metrics] == [None, "ten", None]
    assert "per_task_metrics" not in metrics.agent_metrics


@pytest.mark.filterwarnings("ignore:.*repeats do not cover:UserWarning")
def test_hooks_see_tasks_in_order_and_rollouts_as_posted() -> None:
    seen: list[Any] = []

    def hook(tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
        seen.extend([[(row["_ng_task_index"], row["_ng_rollout_index"]) for row in task] for task in tasks])
        return {"mean/reward": 7.0}

    metrics = compute_aggregate_metrics([record(1, 1, reward=1), record(0, 0, reward=0), record(1, 0, reward=1)], hook)
    assert seen == [[(0, 0)], [(1, 1), (1, 0)]]
    assert metrics.key_metrics == {"mean/reward": 7.0}


async def test_the_mixin_uses_its_own_hooks() -> None:
    class Server(AggregateMetricsMixin):
        def compute_metrics(self, tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
            return compute_pass_majority_metrics(tasks)[0]

        def get_key_metrics(self, agent_metrics: dict[str, Any]) -> dict[str, Any]:
            return {"pass@1/accuracy": agent_metrics["pass@1/accuracy"]}

    body = AggregateMetricsRequest(verify_responses=[record(0, 0, reward=1.0), record(1, 0, reward=0.0)])
    assert (await Server().aggregate_metrics(body)).key_metrics == {"pass@1/accuracy": 50.0}
    assert (await AggregateMetricsMixin().aggregate_metrics(body)).key_metrics == {"mean/reward": 0.5}


@pytest.mark.parametrize("bad", [{}, {"_ng_task_index": 0}, {"_ng_task_index": 0.0, "_ng_rollout_index": 0}])
def test_a_record_without_indices_is_named(bad: dict[str, Any]) -> None:
    with pytest.raises(GymError, match="record 1 ") as caught:
        compute_aggregate_metrics([record(0, 0, reward=1.0), bad])
    assert isinstance(caught.value, KeyError)


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1)), min_size=1, max_size=30), st.randoms())
def test_order_of_records_changes_nothing(pairs: list[tuple[int, float]], shuffler: random.Random) -> None:
    counts: dict[int, int] = {}
    rows = []
    for task, reward in pairs:
        rows.append(record(task, counts.get(task, 0), reward=reward))
        counts[task] = counts.get(task, 0) + 1
    shuffled = list(rows)
    shuffler.shuffle(shuffled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, again = compute_aggregate_metrics(rows), compute_aggregate_metrics(shuffled)
    assert ours == again
    for row in ours.group_level_metrics:
        assert row["min/reward"] <= row["mean/reward"] * (1 + 1e-12) and row["mean/reward"] <= row["max/reward"] * (1 + 1e-12)
