import pytest

from backend.responses.messages import message_from_response, message_sse, responses_body_from_messages
from backend.responses.params import NeMoGymResponseCreateParamsNonStreaming
from backend.responses.sse import read_events

USAGE = {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}
PNG = {"type": "base64", "media_type": "image/png", "data": "AAA"}
ANY = {"type": "object", "properties": {}}


def items(*messages):
    return responses_body_from_messages({"messages": list(messages)})["input"]


def content(*blocks, role="user"):
    return items({"role": role, "content": list(blocks)})


def text(value, **fields):
    return {"type": "text", "text": value, **fields}


def response(*output, **fields):
    return {"id": "resp_1", "model": "theirs", "status": "completed", "output": list(output), "usage": USAGE, **fields}


def message_item(*parts):
    return {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": list(parts)}


def output_text(value):
    return {"type": "output_text", "text": value, "annotations": []}


def call(arguments="{}"):
    return {"type": "function_call", "name": "f", "arguments": arguments, "call_id": "c9", "id": "fc"}


def test_the_settings_of_a_request():
    body = {
        "model": "claude",
        "max_tokens": 50,
        "system": [text("s1"), text("s2", cache_control={"type": "ephemeral"})],
        "temperature": 0.0,
        "top_p": 0.9,
        "top_k": 3,
        "stop_sequences": ["x"],
        "metadata": {"user_id": "u"},
        "thinking": {"type": "enabled", "budget_tokens": 5},
        "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}, {"name": "g"}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
    }
    assert responses_body_from_messages(body) == {
        "model": "claude",
        "max_output_tokens": 50,
        "instructions": "s1\ns2",
        "temperature": 0.0,
        "top_p": 0.9,
        "tools": [
            {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": False},
            {"type": "function", "name": "g", "parameters": ANY, "strict": False},
        ],
        "tool_choice": "required",
        "input": [{"type": "message", "role": "user", "content": "hi"}],
    }
    assert responses_body_from_messages({}) == {"input": []}
    assert responses_body_from_messages({"system": "s", "messages": []})["instructions"] == "s"


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "none"}, "none"),
        ({"type": "any"}, "required"),
        ({"type": "tool", "name": "f"}, {"type": "function", "name": "f"}),
    ],
)
def test_tool_choices(choice, expected):
    assert responses_body_from_messages({"messages": [], "tool_choice": choice})["tool_choice"] == expected


def test_text_and_images_in_a_row_are_one_message():
    assert content(text("a"), {"type": "image", "source": PNG}, text("b")) == [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "a"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAA", "detail": "auto"},
                {"type": "input_text", "text": "b"},
            ],
        }
    ]


def test_a_turn_with_thinking_and_a_tool():
    tool_use = {"type": "tool_use", "id": "tu", "name": "f", "input": {"a": 1}}
    thought, said, called = content(
        {"type": "thinking", "thinking": "t", "signature": "sg"}, text("o"), text("k"), tool_use, role="assistant"
    )
    assert thought["id"].startswith("rs_")
    assert (thought["type"], thought["encrypted_content"]) == ("reasoning", "sg")
    assert thought["summary"] == [{"type": "summary_text", "text": "t"}]
    assert said == {"type": "message", "role": "assistant", "content": "ok"}
    assert called == {
        "type": "function_call", "id": "tu", "call_id": "tu", "name": "f", "arguments": '{"a":1}', "status": "completed"
    }  # fmt: skip
    assert content(
        {"type": "tool_result", "tool_use_id": "tu", "content": [text("r1"), text("r2")]},
        {"type": "tool_result", "tool_use_id": "tu2", "content": "plain", "is_error": True},
        {"type": "tool_result", "tool_use_id": "tu3"},
        text("go on"),
    ) == [
        {"type": "function_call_output", "call_id": "tu", "output": "r1\nr2"},
        {"type": "function_call_output", "call_id": "tu2", "output": "plain"},
        {"type": "function_call_output", "call_id": "tu3", "output": ""},
        {"type": "message", "role": "user", "content": "go on"},
    ]


def test_the_result_is_a_valid_request():
    everything = [text("a"), {"type": "image", "source": PNG}, {"type": "tool_result", "tool_use_id": "t"}]
    thoughts = [{"type": "thinking", "thinking": "t"}, {"type": "tool_use", "id": "u", "name": "f", "input": {}}]
    body = {
        "max_tokens": 5,
        "messages": [{"role": "user", "content": everything}, {"role": "assistant", "content": thoughts}],
    }
    request = NeMoGymResponseCreateParamsNonStreaming.model_validate(responses_body_from_messages(body))
    assert [item.type for item in request.input] == ["message", "function_call_output", "reasoning", "function_call"]


@pytest.mark.parametrize(
    ("block", "error", "named"),
    [
        ({"type": "document", "source": {}}, NotImplementedError, "document"),
        ({"type": "redacted_thinking", "data": "z"}, NotImplementedError, "redacted_thinking"),
        ({"type": "image", "source": {"type": "url", "url": "http://x"}}, NotImplementedError, "base64"),
        ({"type": "image", "source": PNG | {"media_type": "image/bmp"}}, ValueError, "image/bmp"),
        ({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image"}]}, NotImplementedError, "image"),
        ({"type": "tool_result"}, ValueError, "tool_use_id"),
        ({"type": "tool_use", "name": "f"}, ValueError, "id"),
    ],
)
def test_what_cannot_be_expressed_is_named(block, error, named):
    with pytest.raises(error, match=named):
        content(block)


@pytest.mark.parametrize("body", [{"messages": "x"}, {"messages": [1]}, {"messages": [{"role": "user", "content": [1]}]}])
def test_what_is_no_request_is_an_error(body):
    with pytest.raises(ValueError, match="list of objects"):
        responses_body_from_messages(body)


def test_an_unknown_tool_choice_is_named():
    with pytest.raises(NotImplementedError, match="weird"):
        responses_body_from_messages({"messages": [], "tool_choice": {"type": "weird"}})


def test_an_answer():
    summary = [{"type": "summary_text", "text": "th"}, {"type": "summary_text", "text": "th2"}]
    thought = {"id": "rs", "type": "reasoning", "summary": summary, "encrypted_content": "sig"}
    assert message_from_response(response(thought, message_item(output_text("hello")), call('{"a":1}')), "asked") == {
        "id": "resp_1",
        "type": "message",
        "role": "assistant",
        "model": "asked",
        "content": [
            {"type": "thinking", "thinking": "th", "signature": "sig"},
            {"type": "thinking", "thinking": "th2", "signature": "sig"},
            {"type": "text", "text": "hello"},
            {"type": "tool_use", "id": "c9", "name": "f", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 7},
    }
    assert message_from_response(response(message_item(output_text("x"))))["model"] == "theirs"


@pytest.mark.parametrize(
    ("output", "reason", "expected"),
    [
        (message_item(output_text("x")), None, "end_turn"),
        (message_item({"type": "refusal", "refusal": "no"}), None, "end_turn"),
        (call(), None, "tool_use"),
        (call(), "max_output_tokens", "max_tokens"),
        (message_item(output_text("x")), "content_filter", "refusal"),
        (message_item(output_text("x")), "their own word", "end_turn"),
    ],
)
def test_stop_reasons(output, reason, expected):
    details = {"reason": reason} if reason else None
    assert message_from_response(response(output, incomplete_details=details))["stop_reason"] == expected


def test_a_refusal_is_text_and_a_thought_without_signature_has_an_empty_one():
    thought = {"id": "rs", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]}
    refused = message_item({"type": "refusal", "refusal": "no"})
    assert message_from_response(response(thought, refused))["content"] == [
        {"type": "thinking", "thinking": "t", "signature": ""},
        {"type": "text", "text": "no"},
    ]


def test_unknown_usage_stays_unknown():
    assert message_from_response(response(usage=None))["usage"] == {"input_tokens": None, "output_tokens": None}


@pytest.mark.parametrize("arguments", ["[1]", "{broken", '"x"'])
def test_arguments_that_are_no_object_are_an_error(arguments):
    with pytest.raises(ValueError, match=r"`f` are not a JSON object"):
        message_from_response(response(call(arguments)))


def test_no_arguments_are_an_empty_object():
    assert message_from_response(response(call("")))["content"][0]["input"] == {}


def test_the_stream_of_an_answer():
    thought = {"id": "rs", "type": "reasoning", "summary": [{"type": "summary_text", "text": "th"}]}
    message = message_from_response(response(thought, message_item(output_text("hi")), call('{"a":1}')), "asked")
    events = [(event.name, event.json()) for event in read_events("".join(message_sse(message)))]
    assert all(data["type"] == name for name, data in events)
    blocks = [
        ({"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "th"}),
        ({"type": "text", "text": ""}, {"type": "text_delta", "text": "hi"}),
        (
            {"type": "tool_use", "id": "c9", "name": "f", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"a":1}'},
        ),
    ]
    expected = [("message_start", {"message": message | {"content": []}})]
    for index, (shell, delta) in enumerate(blocks):
        expected.append(("content_block_start", {"index": index, "content_block": shell}))
        expected.append(("content_block_delta", {"index": index, "delta": delta}))
        expected.append(("content_block_stop", {"index": index}))
    stop = {"delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 7}}
    expected += [("message_delta", stop), ("message_stop", {})]
    assert [(name, {key: value for key, value in data.items() if key != "type"}) for name, data in events] == expected
