from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.responses import converter as module
from backend.responses.converter import ResponsesConverter, VLLMConverter, split_responses_input_output_items
from backend.responses.schema import (
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    NeMoGymResponseOutputMessage,
)

CONVERTER = ResponsesConverter(return_token_id_information=False)
PLAIN = ResponsesConverter(return_token_id_information=False, uses_reasoning_parser=False)
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOKENS = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.5]}


def completion(message, finish_reason="stop", usage=None):
    return NeMoGymChatCompletion.model_validate(
        {
            "id": "x",
            "created": 1,
            "model": "theirs",
            "choices": [{"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", **message}}],
            "usage": usage,
        }
    )


def respond(message, finish_reason="stop", usage=None, by=CONVERTER, **params):
    request = NeMoGymResponseCreateParamsNonStreaming(input="q", model="m", **params)
    return by.chat_completion_to_response(request, completion(message, finish_reason, usage))


def kinds(response):
    return [item.type for item in response.output]


def test_alias():
    assert VLLMConverter is ResponsesConverter


def test_a_plain_answer():
    response = respond({"content": "Hi"}, temperature=0.5, metadata={"a": "b"}, tools=[{"type": "function", "name": "f"}])
    assert response.output_text == "Hi"
    assert (response.status, response.incomplete_details, response.usage) == ("completed", None, None)
    assert response.id.startswith("resp_")
    assert response.output[0].id.startswith("msg_")
    assert (response.model, response.temperature, response.metadata) == ("m", 0.5, {"a": "b"})
    assert response.tools[0].name == "f"
    assert (response.tool_choice, response.parallel_tool_calls) == ("auto", True)
    assert NeMoGymResponse.model_validate(response.model_dump()) == response


def test_ids_come_from_uuid4_of_this_module(monkeypatch):
    class Known:
        hex = "123"

    monkeypatch.setattr(module, "uuid4", Known)
    response = respond({"content": "<think>t</think>a"})
    assert (response.id, [item.id for item in response.output]) == ("resp_123", ["rs_123", "msg_123"])


def test_the_model_must_be_known():
    with pytest.raises(ValueError, match="model"):
        CONVERTER.chat_completion_to_response(NeMoGymResponseCreateParamsNonStreaming(input="q"), completion({"content": "a"}))


def test_thoughts_become_one_item_and_leave_the_text():
    response = respond({"content": "a<think>one\n</think>b<think>two</think>c"})
    assert kinds(response) == ["reasoning", "message"]
    assert [part.text for part in response.output[0].summary] == ["one\n", "two"]
    assert response.output_text == "abc"


def test_without_the_parser_text_is_text():
    response = respond({"content": "<think>one</think>b"}, by=PLAIN)
    assert kinds(response) == ["message"]
    assert response.output_text == "<think>one</think>b"


@pytest.mark.parametrize("by", [CONVERTER, PLAIN])
@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_separate_reasoning_is_kept_and_the_text_is_empty(by, key):
    response = respond({key: "because"}, by=by)
    assert kinds(response) == ["reasoning"]
    assert response.output[0].summary[0].text == "because"
    assert response.output_text == ""


def test_an_empty_answer_is_one_message_with_empty_text():
    for content in (None, ""):
        response = respond({"content": content}, "length")
        assert kinds(response) == ["message"]
        assert response.output[0].content[0].text == ""


def test_a_refusal_is_told_from_an_empty_answer():
    response = respond({"content": None, "refusal": "I will not"})
    assert response.output[0].content[0].type == "refusal"


def test_calls_follow_the_text():
    assert kinds(respond({"content": "x", "tool_calls": [CALL, CALL]})) == ["message", "function_call", "function_call"]
    [call] = respond({"content": None, "tool_calls": [CALL]}).output
    assert (call.id, call.call_id, call.name, call.arguments) == ("c1", "c1", "f", "{}")


def test_custom_calls_are_kept():
    [call] = respond({"tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "g", "input": "text"}}]}).output
    assert call.model_dump() == {"type": "custom_tool_call", "id": "c", "call_id": "c", "name": "g", "input": "text"}


@pytest.mark.parametrize(
    ("finish_reason", "status", "reason"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
        (None, "completed", None),
    ],
)
def test_finish_reasons(finish_reason, status, reason):
    response = respond({"content": "a"}, finish_reason)
    assert response.status == status
    assert (response.incomplete_details and response.incomplete_details.reason) == reason


@pytest.mark.parametrize(
    ("extra", "cached", "reasoning"),
    [
        ({}, None, None),
        ({"prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 2}}, 3, 2),
        ({"cached_input_tokens": 4, "reasoning_output_tokens": 1}, 4, 1),
        ({"cache_read_input_tokens": 5}, 5, None),
        ({"prompt_tokens_details": {"cached_tokens": -1}}, None, None),
    ],
)
def test_usage(extra, cached, reasoning):
    usage = respond({"content": "a"}, usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, **extra}).usage
    assert usage.model_dump() == {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": 15,
    }


@pytest.mark.parametrize(
    ("message", "last"),
    [
        ({"content": "a"}, "NeMoGymResponseOutputMessageForTraining"),
        ({"content": "a", "tool_calls": [CALL]}, "NeMoGymResponseFunctionToolCallForTraining"),
        ({"reasoning_content": "r"}, "NeMoGymResponseReasoningItemForTraining"),
    ],
)
def test_token_fields_go_to_the_last_item(message, last):
    response = respond({**message, **TOKENS})
    assert [type(item).__name__.endswith("ForTraining") for item in response.output[:-1]] == [False] * (len(response.output) - 1)
    assert type(response.output[-1]).__name__ == last
    assert response.output[-1].generation_token_ids == [2]


def test_a_chat_request_as_a_responses_request():
    params = NeMoGymChatCompletionCreateParamsNonStreaming(
        messages=[
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "q"}, {"type": "image_url", "image_url": {"url": "u"}}]},
            {"role": "assistant", "content": "<think>t</think>a", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "o"},
        ],
        max_completion_tokens=9,
        max_tokens=4,
        reasoning_effort="low",
        tools=[{"type": "function", "function": {"name": "f"}}],
        tool_choice={"type": "function", "function": {"name": "f"}},
    )
    converted = CONVERTER.chat_completion_to_responses_create_params(params)
    assert [item.type for item in converted.input] == [
        "message",
        "message",
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert converted.input[1].content[1] == {"type": "input_image", "image_url": "u", "detail": "auto"}
    assert converted.input[-1].status == "completed"
    assert (converted.max_output_tokens, converted.reasoning) == (9, {"effort": "low"})
    assert converted.tools == [{"type": "function", "name": "f", "parameters": None, "strict": None}]
    assert converted.tool_choice == {"type": "function", "name": "f"}


def test_a_trajectory_is_cut_where_generation_begins():
    user, tool = {"role": "user", "content": "q"}, {"type": "function_call_output", "call_id": "c", "output": ""}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}
    answer = NeMoGymResponseOutputMessage(id="m", content=[])
    assert split_responses_input_output_items([user, user, call, tool, answer]) == ([user, user], [call, tool, answer])
    assert split_responses_input_output_items([user, answer, user]) == ([user], [answer, user])
    assert split_responses_input_output_items([user, tool]) == ([user, tool], [])
    assert split_responses_input_output_items([{"type": "reasoning"}]) == ([], [{"type": "reasoning"}])


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(lambda text: "think>" not in text)


@given(texts, st.lists(texts, max_size=3), st.lists(st.tuples(texts, texts), max_size=3))
def test_an_answer_sent_back_says_the_same(text, thoughts, calls):
    """Chat answer -> response -> chat history keeps text, thoughts and calls."""
    marked = "".join(f"<think>{thought}</think>" for thought in thoughts)
    tool_calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": a}} for i, (name, a) in enumerate(calls)
    ]
    response = respond({"content": marked + text, "tool_calls": tool_calls or None})
    [message] = CONVERTER.responses_items_to_chat_completion_messages(response.output)
    assert (message["content"] or "") == marked + text
    assert message.get("tool_calls", []) == tool_calls


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 4}}, 4),
        ({"prompt_tokens_details": {"cached_tokens": None}, "cached_input_tokens": 5}, 5),
        ({"prompt_tokens_details": SimpleNamespace(cached_tokens=7)}, 7),
        (SimpleNamespace(prompt_tokens_details={"cached_tokens": 0}), 0),
        ({"prompt_tokens_details": {"cached_tokens": -1}}, None),
        ({"prompt_tokens_details": {"cached_tokens": True}}, None),
        ({"prompt_tokens_details": {"cached_tokens": "3"}}, None),
        (None, None),
    ],
)
def test_a_detail_of_a_usage_that_an_endpoint_reports_its_own_way(usage, expected):
    assert module._usage_detail(usage, "prompt_tokens_details", "cached_tokens", "cached_input_tokens") == expected


def test_reasoning_and_text_are_told_apart_and_put_together_again():
    text = "First.<think>a</think>Second.<think>b\n</think>"
    assert CONVERTER._extract_reasoning_from_content(text) == (["a", "b\n"], "First.Second.")
    assert CONVERTER._extract_reasoning_from_content("plain") == ([], "plain")
    assert CONVERTER._wrap_reasoning_in_think_tags(["a", "b"]) == "<think>a</think><think>b</think>"


def test_an_assistant_message_with_parts_becomes_items():
    parts = [{"type": "text", "text": "<think>t</think>a"}, {"type": "text", "text": "b"}]
    thought, said, call = CONVERTER.postprocess_assistant_message_dict(
        {"role": "assistant", "content": parts, "tool_calls": [CALL]}
    )
    assert (thought.summary[0].text, said.content[0].text, call.call_id) == ("t", "ab", "c1")


def test_a_refusal_among_the_parts_of_an_assistant_message_is_kept():
    parts = [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}]
    refused, said = CONVERTER.postprocess_assistant_message_dict({"role": "assistant", "content": parts})
    assert (refused.content[0].refusal, said.content[0].text) == ("no", "a")
    with pytest.raises(NotImplementedError, match="a part of type `image_url` in an assistant message"):
        CONVERTER.postprocess_assistant_message_dict({"role": "assistant", "content": [{"type": "image_url"}]})


@given(st.lists(texts, min_size=1, max_size=4))
def test_the_parts_of_a_tools_output_survive_both_ways(parts):
    output = [{"type": "input_text", "text": text} for text in parts]
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    request = NeMoGymResponseCreateParamsNonStreaming(
        input=[{"role": "user", "content": "q"}, call, {"type": "function_call_output", "call_id": "c", "output": output}]
    )
    chat = CONVERTER.responses_to_chat_completion_create_params(request)
    message = chat.model_dump(exclude_unset=True)["messages"][-1]
    assert message == {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": text} for text in parts]}
    back = CONVERTER.chat_completion_to_responses_create_params(chat).model_dump(exclude_unset=True)["input"][-1]
    assert (back["type"], back["call_id"], back["output"]) == ("function_call_output", "c", output)


def test_an_image_among_the_parts_of_a_tools_output_is_kept_or_refused_by_name():
    image = {"type": "image_url", "image_url": {"url": "u"}}
    parts = [{"type": "text", "text": "a"}, image]
    [item] = CONVERTER.chat_completions_messages_to_responses_items([{"role": "tool", "tool_call_id": "c", "content": parts}])
    assert item["output"] == [
        {"type": "input_text", "text": "a"},
        {"type": "input_image", "image_url": "u", "detail": "auto"},
    ]
    with pytest.raises(NotImplementedError, match="`input_image` in a tool's output"):
        CONVERTER.responses_items_to_chat_completion_messages([item])


def test_the_time_of_an_answer_is_the_endpoints():
    assert respond({"content": "a"}).created_at == 1
