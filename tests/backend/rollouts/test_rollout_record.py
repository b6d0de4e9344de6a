"""What a record says about its rollout."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.rollouts import rollout_record as record_views
from backend.rollouts.rollout_record import (
    Tokens,
    end_of,
    failure_of,
    output_tokens_of,
    preview_of,
    reward_of,
    seconds_of,
    tokens_of,
    turns_of,
)


def answer(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}


@pytest.mark.parametrize(
    ("record", "end"),
    [
        ({"response": {"status": "completed"}}, "stop"),
        ({"response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}}, "length"),
        ({"response": {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}}, "content_filter"),
        ({"response": {"status": "incomplete", "incomplete_details": None}}, "incomplete"),
        ({"response": {"status": "failed"}}, "failed"),
        ({"_ng_failure_class": "timeout_exceeded"}, "timeout"),
        ({"_ng_failure_class": "agent_run_error", "response": {"status": "completed"}}, "failed"),
        ({"response": {}}, None),
        ({"response": None}, None),
    ],
)
def test_how_a_rollout_ended(record: dict[str, Any], end: str | None) -> None:
    assert end_of(record) == end


@pytest.mark.parametrize(
    ("value", "reward"), [(1, 1.0), (0.5, 0.5), (True, 1.0), (None, None), ("1", None), ([], None), (10**400, None)]
)
def test_rewards_are_finite_numbers(value: Any, reward: float | None) -> None:
    assert reward_of({"reward": value}) == reward


def test_tokens_in_the_words_of_either_api() -> None:
    responses = {
        "input_tokens": 9, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 2},
    }  # fmt: skip
    chat = {
        "prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }  # fmt: skip
    for usage in (responses, chat):
        assert tokens_of({"response": {"usage": usage}}) == Tokens(9, 5, 2, 4)
        assert output_tokens_of({"response": {"usage": usage}}) == 5


@pytest.mark.parametrize("count", [True, 3.0, -1, None, "3"])
def test_only_whole_counts_count(count: Any) -> None:
    assert tokens_of({"response": {"usage": {"input_tokens": count, "prompt_tokens": 7}}}).input is None


def test_turns_are_counted_between_results_of_tools() -> None:
    call, result = {"type": "function_call", "name": "f"}, {"type": "function_call_output", "output": "1"}
    output = [{"type": "reasoning"}, call, call, result, result, answer("a"), {"role": "user", "content": "go on"}, answer("b")]
    assert turns_of({"response": {"output": output}}) == 3
    assert turns_of({"response": {"output": output}, "ng_perf": {"num_turns": 7}}) == 7
    assert turns_of({}) == 0


def test_time_comes_from_the_wall_clock_of_the_run_first() -> None:
    assert seconds_of({"ng_perf": {"total_latency_ms": 1500}, "response": {"created_at": 1, "completed_at": 9}}) == 1.5
    assert seconds_of({"response": {"created_at": 1.5, "completed_at": 4}}) == 2.5
    assert seconds_of({"response": {"created_at": 4, "completed_at": 1}}) is None


def test_the_preview_is_the_last_answer() -> None:
    call = {"type": "function_call", "name": "f", "arguments": '{"x":1}'}
    assert preview_of({"response": {"output": [answer("first"), answer("the\nlast\x1b"), call]}}) == "the ⏎ last␛"
    assert preview_of({"response": {"output": [answer("  "), call]}}) == 'f({"x":1})'
    assert preview_of({"_ng_failure_class": "x", "failure_reason": "no answer", "response": {}}) == "no answer"
    assert len(preview_of({"response": {"output": [answer("x" * 999)]}})) == 200
    refusal = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    assert preview_of({"response": {"output": [refusal]}}) == "No."


def test_a_failure_class_may_be_anything() -> None:
    assert failure_of({"_ng_failure_class": "x"}) == "x"
    assert failure_of({"_ng_failure_class": {"a": 1}}) == '{"a":1}'
    assert failure_of({"_ng_failure_class": None}) is None


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["message", "assistant", "function_call"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["usage", "output", "role", "type", "content", "text", "reason", "status", "name"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
KEYS = ["reward", "response", "_ng_failure_class", "agent_ref", "ng_perf", "failure_reason", "_ng_task_index"]


@given(st.dictionaries(st.sampled_from(KEYS), json_values, max_size=6))
def test_no_value_of_a_wrong_type_is_an_error(record: dict[str, Any]) -> None:
    for name in (
        "reward_of",
        "failure_of",
        "agent_of",
        "end_of",
        "tokens_of",
        "output_tokens_of",
        "seconds_of",
        "turns_of",
    ):
        getattr(record_views, name)(record)
    assert len(record_views.preview_of(record)) <= record_views.PREVIEW_CHARACTERS


def test_values_become_text() -> None:
    assert record_views.plain("a b") == "a b"
    assert json.loads(record_views.plain({"a": [1]})) == {"a": [1]}
