"""The recorded metric cases: our functions give the same numbers to 1e-9, or what a case says is better."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from backend.errors import GymError, UsageError
from backend.metrics.perf import compute_perf_summary, rollout_perf
from backend.metrics.profiler import RewardProfiler
from backend.metrics.reward_profile import (
    add_avg_sample_std_dev,
    compute_aggregate_metrics,
    compute_pass_majority_metrics,
    compute_subset_metrics,
    highest_k_metrics,
)
from backend.rollouts.expansion import plan_expansion
from backend.rollouts.expansion_options import expansion_options
from backend.rollouts.failures import FailedCall, failure_record, failures_as_zero
from backend.rollouts.input_rows import file_rows

ALL_CASES = json.loads(Path(__file__).with_name("metrics_cases.json").read_text("utf-8"))


def cases(kind: str, *, mended: bool = False) -> list[Any]:
    chosen = [case for case in ALL_CASES if case["kind"] == kind and bool(case.get("reference_defect")) == mended]
    assert chosen, kind
    return [pytest.param(case, id=case["name"]) for case in chosen]


def case_named(name: str) -> dict[str, Any]:
    return next(case for case in ALL_CASES if case["name"] == name)


def assert_same(ours: Any, expected: Any, where: str = "") -> None:
    """Equal, with numbers to 1e-9 relative to their size and the order of keys ignored."""
    if isinstance(expected, dict):
        assert isinstance(ours, dict), where
        assert ours.keys() == expected.keys(), (where, ours.keys() ^ expected.keys())
        for key, value in expected.items():
            assert_same(ours[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert isinstance(ours, list) and len(ours) == len(expected), where
        for index, (our, value) in enumerate(zip(ours, expected, strict=True)):
            assert_same(our, value, f"{where}[{index}]")
    elif isinstance(expected, float):
        assert math.isclose(ours, expected, rel_tol=1e-9, abs_tol=1e-9), (where, ours, expected)
    else:
        assert ours == expected, (where, ours, expected)


def assert_raises(expected: dict[str, Any], call: Any) -> None:
    kinds = {"ValueError": ValueError, "KeyError": KeyError, "ValidationError": GymError}
    with pytest.raises(kinds[expected["error"]]) as caught:
        call()
    assert isinstance(caught.value, GymError)
    for token in expected["message_names"]:
        assert token in str(caught.value)


def score_function(scores: dict[str, str] | None) -> Any:
    if scores is None:
        return None
    return lambda record: {name: record[field] for name, field in scores.items() if field in record}


@pytest.mark.parametrize("case", cases("pass_majority"))
def test_pass_and_majority(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    metrics, score_dicts, names, max_k = compute_pass_majority_metrics(
        given["tasks"], score_function(given["scores"]), given["answer_key"]
    )
    assert_same(metrics, expected["metrics"])
    assert (names, max_k) == (expected["score_names"], expected["max_k"])
    spreads: dict[str, Any] = {}
    add_avg_sample_std_dev(spreads, score_dicts, names, max_k)
    assert_same(spreads, expected["avg_sample_std_dev"])


def test_a_rollout_without_reward_is_left_out_of_pass_at_k() -> None:
    given = case_named("pm_missing_reward_default_score")["input"]
    with pytest.warns(UserWarning, match="1 of 2 rollouts"):
        metrics, _, names, max_k = compute_pass_majority_metrics(given["tasks"])
    expected = {
        "pass@1/accuracy": 100.0,
        "pass@1[avg-of-1]/accuracy": 100.0,
        "pass@1[avg-of-2]/accuracy": 100.0,
        "per_sample_aggregate": {"accuracy": [100.0]},
    }
    assert_same(metrics, expected)
    assert (names, max_k) == (["accuracy"], 2)


@pytest.mark.parametrize("case", cases("subset"))
def test_subsets(case: dict[str, Any]) -> None:
    given = case["input"]
    ours = compute_subset_metrics(given["tasks"], given["subset_key"], answer_key=given["answer_key"])
    assert_same(ours, case["expected"])


@pytest.mark.parametrize("case", cases("highest_k"))
def test_highest_k(case: dict[str, Any]) -> None:
    assert_same(highest_k_metrics(**case["input"]), case["expected"])


def per_task_hook(tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
    easy = {"_ng_task_index": tasks[0][0]["_ng_task_index"], "difficulty": "easy"}
    return {"custom/n_tasks": len(tasks), "per_task_metrics": [easy]}


def per_task_key_metrics(agent_metrics: dict[str, Any]) -> dict[str, Any]:
    return {key: agent_metrics[key] for key in ("mean/reward", "custom/n_tasks")}


HOOKS: dict[str | None, tuple[Any, Any]] = {
    None: (None, None),
    "pass_majority": (lambda tasks: compute_pass_majority_metrics(tasks)[0], None),
    "per_task": (per_task_hook, per_task_key_metrics),
}


@pytest.mark.filterwarnings("ignore:.*repeats do not cover:UserWarning")
@pytest.mark.parametrize("case", cases("aggregate"))
def test_aggregate(case: dict[str, Any]) -> None:
    given = case["input"]
    ours = compute_aggregate_metrics(given["verify_responses"], *HOOKS[given.get("hooks")])
    assert_same(ours.model_dump(), case["expected"])


def test_the_order_of_keys_is_the_recorded_one() -> None:
    case = case_named("agg_hook_pass_majority")
    ours = compute_aggregate_metrics(case["input"]["verify_responses"], *HOOKS["pass_majority"]).model_dump()
    assert list(ours["agent_metrics"]) == list(case["expected"]["agent_metrics"])
    assert [list(row) for row in ours["group_level_metrics"]] == [list(row) for row in case["expected"]["group_level_metrics"]]
    assert [list(row) for row in ours["repeat_level_metrics"]] == [list(row) for row in case["expected"]["repeat_level_metrics"]]


@pytest.mark.parametrize("name", ["agg_duplicate_key", "agg_missing_indices"])
def test_records_that_cannot_be_aggregated(name: str) -> None:
    case = case_named(name)
    assert_raises(case["expected"], lambda: compute_aggregate_metrics(case["input"]["verify_responses"]))


def test_the_attempt_counter_is_no_metric() -> None:
    case = case_named("agg_retry_attempt_leaks")
    ours = compute_aggregate_metrics(case["input"]["verify_responses"]).model_dump()
    leaking = "_ng_attempt_index"
    expected = case["expected"]
    for metrics in (expected["agent_metrics"], expected["key_metrics"], *expected["group_level_metrics"]):
        for key in [key for key in metrics if key.endswith(leaking)]:
            del metrics[key]
    assert_same(ours, expected)


@pytest.mark.parametrize("case", cases("perf_summary"))
def test_perf_summary(case: dict[str, Any]) -> None:
    given = case["input"]
    assert_same(compute_perf_summary(given["records"], given["total_rollouts"]), case["expected"])


@pytest.mark.parametrize("case", cases("ng_perf"))
def test_rollout_perf(case: dict[str, Any]) -> None:
    given = case["input"]
    assert_same(rollout_perf(given["ng_trajectory"], given["rollout_latency_ms"]), case["expected"])


def expand(given: dict[str, Any], folder: Path) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Expand a case's rows from a real file."""
    file = folder / "input.jsonl"
    text = "\n".join(json.dumps(row) for row in given["rows"])
    file.write_text(text if given.get("final_newline") is False else text + "\n", "utf-8")
    config = dict(given["config"])
    if "prompt_config" in given:
        (folder / "prompt.yaml").write_text(json.dumps(given["prompt_config"]), "utf-8")
        config["prompt_config"] = "prompt.yaml"
    plan = plan_expansion(file_rows("input.jsonl", [folder]), expansion_options(config, [folder]))
    rows = list(plan.rows())
    assert len(rows) == plan.rollouts
    return rows, plan.warnings


COLLIDING = "expand_supplied_index_collision"


@pytest.mark.parametrize("case", [case for case in cases("expand") if case.values[0]["name"] != COLLIDING])
def test_expansion(case: dict[str, Any], tmp_path: Path) -> None:
    expected = case["expected"]
    if "error" in expected:
        assert_raises(expected, lambda: expand(case["input"], tmp_path))
        return
    rows, warnings = expand(case["input"], tmp_path)
    assert rows == expected["rows"]
    assert len(warnings) == len(expected.get("warnings", ()))


def indices(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows]


def test_generated_task_numbers_avoid_given_ones(tmp_path: Path) -> None:
    """Two different rows in one task would be scored as attempts at the same question."""
    rows, _ = expand(case_named(COLLIDING)["input"], tmp_path)
    assert indices(rows) == [(1, 0), (1, 1), (0, 0), (0, 1)]


def test_equal_lines_are_one_task_with_or_without_a_final_newline(tmp_path: Path) -> None:
    rows, _ = expand(case_named("expand_duplicate_last_line_without_newline")["input"], tmp_path)
    assert indices(rows) == [(0, 0), (0, 1)]


def test_rows_without_agent_are_named_by_their_numbers(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"2 row\(s\) name no agent: 0, 2 \(counted from 0\)"):
        expand(case_named("expand_no_agent")["input"], tmp_path)


def test_every_repeat_has_its_own_seed(tmp_path: Path) -> None:
    rows, _ = expand(case_named("expand_seed")["input"], tmp_path)
    bodies = [row["responses_create_params"]["metadata"] for row in rows]
    assert bodies == [{"k": "v", "extra_body": f'{{"top_k": 5, "seed": {seed}}}'} for seed in range(3)]


def test_a_limit_of_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="limit"):
        expand(case_named("expand_limit_zero")["input"], tmp_path)


@pytest.mark.parametrize("case", cases("run_failure"))
def test_failed_run_calls(case: dict[str, Any]) -> None:
    call = FailedCall("ClientResponseError", "boom", case["input"]["http_status"])
    record = failure_record(call)
    assert record["_ng_failure_class"] == case["expected"]["_ng_failure_class"]
    assert list(record) == [*case["expected"]["keys"], "failure_reason"]


@pytest.mark.parametrize("case", cases("failures_as_zero"))
def test_failures_counted_as_zero(case: dict[str, Any]) -> None:
    given = case["input"]
    rows = [row for sidecar in given["sidecars"] for row in sidecar]
    assert failures_as_zero(rows, given["classes"], {tuple(key) for key in given["scored_keys"]}) == case["expected"]


@pytest.mark.filterwarnings("ignore:.*repeats do not cover:UserWarning")
@pytest.mark.parametrize("case", cases("profile"))
def test_reward_profile(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]

    def profile() -> Any:
        return RewardProfiler().profile(given["rows"], given["results"], allow_partial_rollouts=given["allow_partial_rollouts"])

    if "error" in expected:
        assert_raises(expected, profile)
        return
    assert_same(asdict(profile()), expected)
