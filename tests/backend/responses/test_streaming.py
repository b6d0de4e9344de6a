import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from backend.responses.params import NeMoGymResponseCreateParamsNonStreaming
from backend.responses.sse import read_events
from backend.responses.streaming import (
    sanitize_streaming_responses_body,
    synthesize_responses_failure_sse,
    synthesize_responses_sse,
    validate_streaming_responses_params,
)


def function(name, **fields):
    return {"type": "function", "name": name, "parameters": {"type": "object"}, "strict": False, **fields}


def user(text="hi", **fields):
    return {"type": "message", "role": "user", "content": text, **fields}


def clean(**body):
    return sanitize_streaming_responses_body(body)[0]


def events(stream):
    return [(event.name, event.json()) for event in read_events("".join(stream))]


def test_streaming_keys_and_unknown_keys_go():
    body = {"input": "hi", "stream": True, "stream_options": {"include_usage": True}, "client_metadata": {}, "store": False}
    assert clean(**body) == {"input": "hi", "store": False}
    assert body["stream"] is True, "the caller's body stays as it is"


def test_what_is_left_out_is_named_once(caplog):
    sanitize_streaming_responses_body(
        {"input": [{"type": "bogus"}, 5], "zz": 1, "tools": [{"type": "hologram"}], "text": {"x": 1}}
    )
    [record] = caplog.records
    for name in ("zz", "'hologram'", "'bogus'", "'int'", "text.x"):
        assert name in record.message


def test_namespaces_are_flattened_in_tools_calls_and_choice():
    call = {"type": "function_call", "name": "g", "namespace": "ns", "arguments": "{}", "call_id": "c1"}
    body = {
        "input": [user(), call],
        "tools": [
            function("f"),
            {"type": "namespace", "name": "ns", "description": "d", "tools": [function("g"), {"type": "custom", "name": "cc"}]},
            {"type": "namespace", "name": "empty"},
        ],
        "tool_choice": {"type": "function", "name": "g", "namespace": "ns"},
    }
    result, names = sanitize_streaming_responses_body(body)
    assert result["tools"] == [function("f"), function("ns__g")]
    assert names == {"ns__g": ("ns", "g")}
    assert result["input"][1] == {"type": "function_call", "name": "ns__g", "arguments": "{}", "call_id": "c1"}
    assert result["tool_choice"] == {"type": "function", "name": "ns__g"}


@pytest.mark.parametrize(
    "tool", ["x", {"name": "no type"}, {"type": "function"}, {"type": "custom"}, {"type": "namespace"}, {"type": 1}]
)
def test_tools_of_no_known_form_are_dropped(tool):
    assert clean(input="hi", tools=[tool, function("f")])["tools"] == [function("f")]


def test_hosted_tools_stay():
    tools = [{"type": "web_search", "external_web_access": True}, {"type": "local_shell"}, {"type": "custom", "name": "patch"}]
    assert clean(input="hi", tools=tools)["tools"] == tools


def test_functions_among_the_items_become_tools_each_name_once():
    late = {
        "type": "additional_tools",
        "tools": [
            function("late"),
            function("f", description="again"),
            {"type": "namespace", "name": "ns", "tools": [function("q")]},
            {"type": "web_search"},
        ],
    }
    result, names = sanitize_streaming_responses_body({"input": [user(), late], "tools": [function("f")]})
    assert result["input"] == [user()]
    assert result["tools"] == [function("f"), function("late"), function("ns__q")]
    assert names == {"ns__q": ("ns", "q")}


def test_leading_system_and_developer_messages_become_instructions():
    items = [
        {"type": "message", "role": "system", "content": "sys"},
        {"role": "developer", "content": [{"type": "input_text", "text": "dev"}, {"type": "input_text", "text": "dev2"}]},
        user(),
        {"type": "message", "role": "system", "content": "late"},
    ]
    assert clean(input=items, instructions="ins") == {"input": items[2:], "instructions": "ins\n\nsys\n\ndevdev2"}
    assert clean(input=items, instructions="") == {"input": items[2:], "instructions": "sys\n\ndevdev2"}
    assert clean(input=items[2:], instructions="ins") == {"input": items[2:], "instructions": "ins"}
    assert clean(input=items[:1]) == {"input": [], "instructions": "sys"}


def test_items_of_no_known_form_are_dropped_and_foreign_fields_of_the_others():
    thought = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "e"}
    answer = {"type": "message", "role": "assistant", "id": "m", "status": "completed"}
    answer["content"] = [{"type": "output_text", "text": "t", "annotations": []}]
    items = [
        user(internal=1),
        {"type": "bogus", "x": 1},
        {"type": "item_reference", "id": "x"},
        {"type": "reasoning", "summary": []},
        "text",
        {"type": ["message"]},
        {"role": "nobody", "content": "x"},
        thought | {"zz": 1},
        answer | {"internal": 3},
        {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "x"}},
    ]
    assert clean(input=items)["input"] == [user(), thought, answer, items[-1]]


def test_unknown_settings_of_reasoning_and_text_go():
    body = clean(input="hi", reasoning={"effort": "high", "zz": 1}, text={"verbosity": "low", "zz": 1})
    assert (body["reasoning"], body["text"]) == ({"effort": "high"}, {"verbosity": "low"})


def test_validation_prunes_forbidden_keys_and_keeps_other_mistakes():
    assert validate_streaming_responses_params({"input": "hi", "zz": 1}).input == "hi"
    for body in ({"input": "hi", "temperature": "hot", "zz": 1}, {"model": "m"}, {"input": None}):
        with pytest.raises(ValidationError):
            validate_streaming_responses_params(body)


def test_a_subclass_of_the_parameters_keeps_its_own_fields():
    class WithPrefix(NeMoGymResponseCreateParamsNonStreaming):
        required_prefix_token_ids: list[int] | None = None

    body, _ = sanitize_streaming_responses_body({"input": "a", "required_prefix_token_ids": [1], "stream": True}, WithPrefix)
    assert validate_streaming_responses_params(body, WithPrefix).required_prefix_token_ids == [1]


def test_a_response_is_replayed_item_by_item():
    items = [
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "name": "ns__g", "arguments": "{}", "call_id": "c"},
        {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "d"},
    ]
    response = {"id": "resp_1", "object": "response", "status": "incomplete", "output": items, "usage": None}
    split = [items[0], items[1] | {"name": "g", "namespace": "ns"}, items[2]]
    replayed = events(synthesize_responses_sse(response, {"ns__g": ("ns", "g")}))
    assert [name for name, _ in replayed] == ["response.created", *["response.output_item.done"] * 3, "response.completed"]
    assert all(data["type"] == name for name, data in replayed)
    assert replayed[0][1]["response"] == response | {"status": "in_progress", "output": []}
    assert [(data["output_index"], data["item"]) for _, data in replayed[1:-1]] == list(enumerate(split))
    assert replayed[-1][1]["response"] == response | {"output": split}


def test_a_failure_is_told_in_two_events():
    created, failed = events(synthesize_responses_failure_sse("boom"))
    assert (created[0], failed[0]) == ("response.created", "response.failed")
    assert created[1]["response"]["id"] == failed[1]["response"]["id"]
    assert failed[1]["response"]["id"].startswith("resp_")
    assert (created[1]["response"]["status"], failed[1]["response"]["status"]) == ("in_progress", "failed")
    assert failed[1]["response"]["error"] == {"code": "server_error", "message": "boom"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["message", "function", "user", "namespace", "x", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "role", "content", "name", "tools", "text", "namespace", "id"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["input", "tools", "tool_choice", "instructions", "reasoning", "text", "zz"]), JSON))
def test_no_body_breaks_it_and_a_second_time_changes_nothing(body):
    before = json.dumps(body)
    once, _ = sanitize_streaming_responses_body(body)
    assert json.dumps(body) == before
    assert sanitize_streaming_responses_body(once)[0] == once
