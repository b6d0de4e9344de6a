"""What stands beside a conversation."""

from __future__ import annotations

from backend.rollouts.transcript_facts import Field, ModelCall, facts, model_calls, verifier_fields


def test_the_verifiers_fields_begin_with_the_reward() -> None:
    record = {
        "responses_create_params": {}, "extracted": "42", "response": {}, "reward": 1.0, "reward_components": {"symbolic": 1.0, "judge": None},
        "details": {"tests": {"passed": 3}, "log": ["a"]}, "_ng_task_index": 1, "ng_perf": {}, "agent_ref": {"name": "a"}, "task_source": "x",
    }  # fmt: skip
    assert verifier_fields(record) == (
        Field("reward", "1.0"),
        Field("symbolic", "1.0", 1),
        Field("judge", "null", 1),
        Field("extracted", "42"),
        Field("details", ""),
        Field("tests", "", 1),
        Field("passed", "3", 2),
        Field("log", '["a"]', 1),
    )


def test_facts_of_a_run() -> None:
    record = {
        "responses_create_params": {"temperature": 0.2, "model": "asked"},
        "response": {
            "model": "small-7b", "status": "completed", "temperature": None,
            "usage": {"input_tokens": 412, "output_tokens": 2904, "output_tokens_details": {"reasoning_tokens": 1904}},
        },
        "agent_ref": {"name": "a1"}, "ng_perf": {"total_latency_ms": 16149, "num_turns": 3}, "_ng_attempt_index": 1,
    }  # fmt: skip
    assert facts(record, health="healthy") == (
        Field("agent", "a1"),
        Field("model", "small-7b"),
        Field("temperature", "0.2"),
        Field("tokens in", "412"),
        Field("tokens out", "2904 (1904 reasoning)"),
        Field("turns", "3"),
        Field("time", "16.1 s"),
        Field("end", "stop"),
        Field("health", "healthy"),
        Field("attempt", "1"),
    )


def test_model_calls_of_either_capture() -> None:
    calls = [
        {"duration_ms": 7900, "token_stats": {"completion_tokens": 1204}, "response_metadata": {"finish_reason": "stop"}},
        {"response_metadata": {"error_category": "rate_limit", "finish_reason": None}},
    ]
    expected = (ModelCall(7.9, 1204, "stop"), ModelCall(None, None, "rate_limit"))
    assert model_calls({"ng_trajectory": {"model_calls": calls}}) == expected
    assert model_calls({"ng_model_call_capture": {"calls": calls}}) == expected
    assert model_calls({}) == ()
