"""Records as conversations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.rollouts.transcript import Kind, Transcript, Turn, transcript
from backend.rollouts.transcript_diff import align
from backend.rollouts.transcript_facts import facts, model_calls, verifier_fields


def message(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}], **more}


def test_a_conversation_with_a_tool() -> None:
    record = {
        "responses_create_params": {
            "instructions": "Be brief.",
            "input": [
                {"role": "system", "content": "You count."},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "How many?"}]},
            ],
            "tools": [{"type": "function", "name": "python"}, {"type": "web_search"}],
        },
        "response": {
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "count"}], "content": [{"type": "reasoning_text", "text": "a, b"}]},
                {"type": "function_call", "name": "python", "call_id": "call_1", "arguments": '{"code":"1+1"}'},
                {"type": "function_call_output", "call_id": "call_1", "output": "2"},
                message("Two."),
            ],
            "status": "completed",
        },
    }  # fmt: skip
    assert transcript(record) == Transcript(
        (
            Turn(Kind.SYSTEM, "Be brief.", "instructions"),
            Turn(Kind.SYSTEM, "You count."),
            Turn(Kind.USER, "How many?"),
            Turn(Kind.REASONING, "count\n\na, b", generated=True),
            Turn(Kind.TOOL_CALL, '{\n  "code": "1+1"\n}', "python", generated=True, call_id="call_1", partner=5, is_json=True),
            Turn(Kind.TOOL_RESULT, "2", "python", generated=True, call_id="call_1", partner=4),
            Turn(Kind.ASSISTANT, "Two.", generated=True, end="stop"),
        ),
        ("python", "web_search"),
        "stop",
    )


def test_a_plain_input_is_what_the_user_says() -> None:
    assert transcript({"responses_create_params": {"input": "2+2?"}}).turns == (Turn(Kind.USER, "2+2?"),)


def test_calls_and_results_without_their_other_half_are_orphans() -> None:
    output = [
        {"type": "function_call", "name": "f", "call_id": "a", "arguments": "not json"},
        {"type": "function_call_output", "call_id": "b", "output": "?"},
        {"type": "function_call_output", "output": "?"},
    ]
    turns = transcript({"response": {"output": output}}).turns
    assert [(turn.orphan, turn.partner, turn.is_json) for turn in turns] == [(True, None, False)] * 3


def test_an_id_used_twice_pairs_in_order() -> None:
    call = {"type": "function_call", "name": "f", "call_id": "a", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "a", "output": "x"}
    turns = transcript({"response": {"output": [result, call, call, result, result]}}).turns
    assert [turn.partner for turn in turns] == [None, 3, 4, 1, 2]


def test_hosted_tools_carry_their_results() -> None:
    item = {"type": "mcp_call", "id": "m1", "server_label": "files", "name": "read", "arguments": "{}", "output": "text"}
    failed = {**item, "id": "m2", "output": None, "error": "no such file"}
    search = {"type": "web_search_call", "id": "w1", "status": "completed"}
    turns = transcript({"response": {"output": [item, failed, search]}}).turns
    assert [(turn.kind, turn.title, turn.body, turn.error) for turn in turns] == [
        (Kind.TOOL_CALL, "files.read", "{}", False),
        (Kind.TOOL_RESULT, "files.read", "text", False),
        (Kind.TOOL_CALL, "files.read", "{}", False),
        (Kind.TOOL_RESULT, "files.read", "no such file", True),
        (Kind.TOOL_CALL, "web_search", '{\n  "id": "w1",\n  "status": "completed"\n}', False),
    ]
    assert [turn.orphan for turn in turns] == [False] * 5


def test_custom_tools_and_chat_messages() -> None:
    output = [
        {"type": "custom_tool_call", "call_id": "c", "name": "shell", "input": "ls -l"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "total 0"}]},
        {
            "role": "assistant", "content": None, "reasoning_content": "hm",
            "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}],
        },
        {"role": "tool", "tool_call_id": "t", "content": "ok"},
    ]  # fmt: skip
    turns = transcript({"response": {"output": output}}).turns
    assert [(turn.kind, turn.title, turn.body, turn.partner) for turn in turns] == [
        (Kind.TOOL_CALL, "shell", "ls -l", 1),
        (Kind.TOOL_RESULT, "shell", "total 0", 0),
        (Kind.REASONING, "", "hm", None),
        (Kind.TOOL_CALL, "f", '{\n  "x": 1\n}', 4),
        (Kind.TOOL_RESULT, "f", "ok", 3),
    ]


def test_pictures_refusals_and_encrypted_reasoning() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 1000, "detail": "auto"}
    record = {
        "responses_create_params": {"input": [{"role": "user", "content": [picture, {"type": "input_text", "text": "What?"}]}]},
        "response": {
            "output": [
                {"type": "reasoning", "summary": [], "encrypted_content": "x" * 500},
                {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]},
            ]
        },
    }
    user, reasoning, answer = transcript(record).turns
    assert user.body == "[image image/png, 1022 characters]\nWhat?"
    assert reasoning.body == "[encrypted, 500 characters]"
    assert (answer.body, answer.refused) == ("I will not.", True)


def test_what_is_unknown_is_shown_as_it_is() -> None:
    items = [{"type": "compaction", "id": "c1"}, 7, {"role": "narrator", "content": "once"}, {"type": ["odd"]}]
    turns = transcript({"response": {"output": items}}).turns
    assert [(turn.kind, turn.title) for turn in turns] == [
        (Kind.OTHER, "compaction"),
        (Kind.OTHER, "not an item"),
        (Kind.OTHER, "narrator"),
        (Kind.OTHER, "item"),
    ]
    assert [json.loads(turn.body) for turn in turns] == items


def test_token_counts_where_they_can_belong_to_one_turn_only() -> None:
    usage = {"output_tokens": 100, "output_tokens_details": {"reasoning_tokens": 60}}
    reasoning = {"type": "reasoning", "summary": []}
    one = transcript({"response": {"output": [reasoning, message("a")], "usage": usage}})
    assert [turn.tokens for turn in one.turns] == [60, 40]
    two = transcript({"response": {"output": [reasoning, message("a"), message("b")], "usage": usage}})
    assert [turn.tokens for turn in two.turns] == [60, None, None]
    trained = transcript({"response": {"output": [message("a", generation_token_ids=[1, 2, 3]), message("b")], "usage": usage}})
    assert [turn.tokens for turn in trained.turns] == [3, None]


def test_a_failed_attempt_says_why() -> None:
    record = {
        "_ng_failure_class": "agent_run_error", "_ng_failure_type": "ClientResponseError", "_ng_failure_message": "500",
        "_ng_failure_http_status": 500, "_ng_failure_response_body": '{"detail":"boom"}', "failure_reason": "the agent answered HTTP 500",
    }  # fmt: skip
    (turn,) = transcript(record).turns
    assert (turn.kind, turn.title, turn.error, turn.end) == (Kind.FAILURE, "agent_run_error", True, "failed")
    assert turn.body == (
        'the agent answered HTTP 500\ntype: ClientResponseError\nmessage: 500\nhttp status: 500\n\n{"detail":"boom"}'
    )


def test_an_error_of_the_endpoint_is_a_turn() -> None:
    (turn,) = transcript({"response": {"output": [], "error": {"code": "x", "message": "overloaded"}, "status": "failed"}}).turns
    assert (turn.kind, turn.body, turn.end) == (Kind.FAILURE, "overloaded", "failed")


KEYS = [
    "responses_create_params", "response", "input", "output", "type", "role", "content", "text", "call_id", "tool_calls", "function", "tools",
    "arguments", "summary", "usage", "error", "instructions", "_ng_failure_class", "reward", "reward_components", "ng_trajectory", "model_calls",
    "image_url", "status", "name", "temperature", "encrypted_content", "output_tokens_details", "incomplete_details", "agent_ref",
]  # fmt: skip
WORDS = [
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "mcp_call",
    "assistant",
    "user",
    "tool",
    "input_image",
    "refusal",
]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=5),
    max_leaves=30,
)


@given(st.dictionaries(st.sampled_from(KEYS), anything, max_size=6), st.lists(anything, max_size=6))
@settings(max_examples=80, deadline=None)
def test_no_record_is_too_odd(record: dict[str, Any], items: list[Any]) -> None:
    for value in (record, {"response": {"output": items, **record}, "responses_create_params": {"input": items}}):
        shown = transcript(value)
        assert all(turn.partner is None or shown.turns[turn.partner].partner == at for at, turn in enumerate(shown.turns))
        assert all(isinstance(turn.body, str) and isinstance(turn.title, str) for turn in shown.turns)
        verifier_fields(value)
        facts(value)
        model_calls(value)
        assert all(pair.left == pair.right for pair in align(shown, shown))


@pytest.mark.parametrize("depth", [2000])
def test_deep_nesting_is_shown_somehow(depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    assert len(transcript({"response": {"output": [value, {"type": "x", "y": value}]}}).turns) == 2
