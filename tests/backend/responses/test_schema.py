import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

import backend.responses.schema as schema
from backend.responses.schema import (
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymChatCompletionMessageForTraining,
    NeMoGymChatMessageItem,
    NeMoGymEasyInputMessage,
    NeMoGymFunctionCallOutput,
    NeMoGymMessage,
    NeMoGymOpenItem,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    NeMoGymResponseFunctionToolCall,
    NeMoGymResponseInputItem,
    NeMoGymResponseOutputItem,
    NeMoGymResponseOutputMessage,
    NeMoGymResponseOutputText,
    NeMoGymResponseReasoningItem,
    NeMoGymSummary,
)

ITEM = TypeAdapter(NeMoGymResponseInputItem)
OUTPUT_ITEM = TypeAdapter(NeMoGymResponseOutputItem)
TEXT = {"type": "output_text", "text": "a", "annotations": []}
TOKENS = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.5]}

# The non-streaming keys of the two SDK request types (openai 2.44.0), without the two that the contract retires.
RESPONSES_KEYS = [
    "background",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "reasoning",
    "service_tier",
    "store",
    "context_management",
    "conversation",
    "moderation",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
    "stream",
]
CHAT_KEYS = [
    "messages",
    "model",
    "audio",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "modalities",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
]


def response(**fields):
    base = {
        "id": "r",
        "created_at": 1,
        "model": "m",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    return NeMoGymResponse.model_validate(base | fields)


def test_every_listed_name_exists():
    assert len(schema.__all__) == len(set(schema.__all__))
    assert all(hasattr(schema, name) for name in schema.__all__)


def test_request_keys_are_exactly_those_of_the_apis():
    assert set(NeMoGymResponseCreateParamsNonStreaming.model_fields) == set(RESPONSES_KEYS)
    assert set(NeMoGymChatCompletionCreateParamsNonStreaming.model_fields) == set(CHAT_KEYS)


def test_defaults_of_a_request():
    params = NeMoGymResponseCreateParamsNonStreaming(input="hi")
    assert params.model_dump(exclude_none=True) == {
        "input": "hi",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    assert params.model_dump(exclude_unset=True) == {"input": "hi"}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"role": "user", "content": "a"}, NeMoGymEasyInputMessage),
        ({"role": "assistant", "content": "a", "type": "message"}, NeMoGymEasyInputMessage),
        ({"role": "user", "content": [{"type": "input_text", "text": "a"}]}, NeMoGymEasyInputMessage),
        (
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}], "status": "completed"},
            NeMoGymMessage,
        ),
        (
            {"type": "message", "role": "assistant", "content": [TEXT], "id": "m", "status": "completed"},
            NeMoGymResponseOutputMessage,
        ),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, NeMoGymResponseFunctionToolCall),
        ({"type": "function_call_output", "call_id": "c", "output": "o"}, NeMoGymFunctionCallOutput),
        ({"type": "reasoning", "id": "r", "summary": []}, NeMoGymResponseReasoningItem),
        ({"type": "mcp_call", "id": "x", "anything": {"a": 1}}, NeMoGymOpenItem),
        ({"type": "invented_tomorrow"}, NeMoGymOpenItem),
        ({"role": "tool", "tool_call_id": "c", "content": "o"}, NeMoGymChatMessageItem),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}, NeMoGymChatMessageItem),
    ],
)
def test_an_item_becomes_the_class_that_its_type_names_and_comes_back_unchanged(item, expected):
    value = ITEM.validate_python(item)
    assert type(value) is expected
    assert value.model_dump(exclude_unset=True) == item
    assert ITEM.validate_python(value) is value
    params = NeMoGymResponseCreateParamsNonStreaming(input=[item])
    assert json.loads(params.model_dump_json(exclude_unset=True)) == {"input": [item]}


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": "a"},
        {"role": "system", "content": [], "status": "completed"},
        {"role": "assistant", "content": [TEXT], "id": "m"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "reasoning", "id": "r", "summary": []},
    ],
)
def test_token_fields_make_it_the_training_twin_and_are_atomic(item):
    value = ITEM.validate_python(item | TOKENS)
    assert type(value).__name__ == type(ITEM.validate_python(item)).__name__ + "ForTraining"
    assert value.generation_log_probs == [-0.5]
    assert not type(ITEM.validate_python(item | dict.fromkeys(TOKENS))).__name__.endswith("ForTraining")
    for missing in TOKENS:
        with pytest.raises(ValueError, match=missing):
            ITEM.validate_python({key: entry for key, entry in (item | TOKENS).items() if key != missing})


def test_errors_name_the_place_of_the_one_meant_member():
    with pytest.raises(ValidationError) as caught:
        NeMoGymResponseCreateParamsNonStreaming(input=[{"role": "user", "content": "a"}, {"type": "function_call", "name": "f"}])
    assert [(error["loc"], error["type"]) for error in caught.value.errors()] == [
        (("input", "list", 1, "function_call", "arguments"), "missing"),
        (("input", "list", 1, "function_call", "call_id"), "missing"),
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"input": "a", "temprature": 1}, "Extra inputs are not permitted"),
        ({"input": "a", "stream": True}, "streaming is not supported"),
        ({"input": "a", "stream": "false"}, "Input should be False"),
        ({"input": "a", "service_tier": "turbo"}, "service_tier"),
        ({}, "Field required"),
        ({"input": ["text"]}, "an item must be an object"),
        ({"input": [{"role": "user", "content": ["text"]}]}, "a content part must be an object"),
        ({"input": [{"role": "robot", "content": "a"}]}, "role"),
        ({"input": [{"role": "user", "content": [{"type": "input_video"}]}]}, "exactly one of"),
        ({"input": [{"role": "user", "content": [{"type": "input_video", "video": "a", "video_url": "b"}]}]}, "exactly one of"),
        ({"input": [{"role": "user", "content": [{"type": "input_video", "video": {"url": ""}}]}]}, "exactly one of"),
        ({"input": "a", "tools": [{"name": "f"}]}, "tools"),
    ],
)
def test_what_a_request_must_not_be(body, message):
    with pytest.raises(ValidationError, match=message):
        NeMoGymResponseCreateParamsNonStreaming.model_validate(body)


def test_no_tools_may_be_said_as_null():
    assert NeMoGymResponseCreateParamsNonStreaming.model_validate({"input": "a", "tools": None}).tools == []


def test_input_parts_stay_dicts_with_their_unknown_keys():
    part = {"type": "input_image", "image_url": "u", "extra": 1}
    assert ITEM.validate_python({"role": "user", "content": [part]}).content == [part]
    video = {"type": "input_video", "video": {"url": "u"}}
    assert ITEM.validate_python({"role": "user", "content": [video]}).content == [video]


def test_items_are_made_acceptable_as_input():
    assert ITEM.validate_python({"type": "additional_tools", "role": "user", "tools": []}).role == "developer"
    assert "status" not in ITEM.validate_python({"type": "computer_call_output", "status": "failed"}).model_dump()
    assert (
        "status" not in ITEM.validate_python({"type": "reasoning", "id": "r", "summary": [], "status": "completed"}).model_dump()
    )


def test_objects_made_without_naming_their_type_are_recognised_after_any_dump():
    made = [
        NeMoGymFunctionCallOutput(call_id="c", output="o"),
        NeMoGymResponseFunctionToolCall(call_id="c", name="f", arguments="{}"),
        NeMoGymResponseOutputMessage(id="m", content=[NeMoGymResponseOutputText(text="a", annotations=[])]),
        NeMoGymResponseReasoningItem(id="r", summary=[NeMoGymSummary(text="t")]),
    ]
    dumped = NeMoGymResponseCreateParamsNonStreaming(input=made).model_dump(exclude_unset=True)
    again = NeMoGymResponseCreateParamsNonStreaming.model_validate(dumped)
    assert [type(item) for item in again.input] == [type(item) for item in made]
    assert again.input == made
    assert response(output=made).model_dump(exclude_unset=True)["object"] == "response"


def test_output_items_need_a_type():
    with pytest.raises(ValidationError, match="needs a `type`"):
        OUTPUT_ITEM.validate_python({"role": "user", "content": "a"})
    with pytest.raises(ValidationError):
        response(output=[{"role": "assistant", "content": "a"}])


def test_a_response_takes_whole_trajectories_and_joins_its_text():
    output = [
        {"type": "message", "role": "user", "content": "question"},
        {"type": "message", "role": "assistant", "id": "1", "content": [TEXT, {"type": "refusal", "refusal": "no"}, TEXT]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "o"},
        {"type": "message", "role": "assistant", "id": "2", "content": [TEXT | {"text": "b"}]},
    ]
    value = response(output=output)
    assert value.output_text == "aab"
    assert [item.type for item in value.output] == [item["type"] for item in output]
    assert response().output_text == ""


def test_what_endpoints_invent_is_tolerated_and_kept():
    usage = {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 9, "cache_write_tokens": 1},
        "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": None},
        "total_tokens": 4,
        "cost": 0.1,
    }
    value = response(service_tier="turbo", status="odd", usage=usage, invented={"a": 1}, output=[{"type": "new", "x": 1}])
    dumped = value.model_dump(exclude_unset=True)
    assert (dumped["service_tier"], dumped["invented"], dumped["usage"]) == ("turbo", {"a": 1}, usage)
    assert dumped["output"] == [{"type": "new", "x": 1}]


def test_tools_of_a_response_read_as_objects_and_dump_as_they_came():
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}
    value = response(tools=[tool], tool_choice={"type": "function", "name": "f"}, reasoning={"effort": "low"})
    assert value.tools[0].name == "f"
    assert value.tools[0]["name"] == "f"
    assert value.reasoning.effort == "low"
    assert value.model_dump()["tools"] == [tool]
    with pytest.raises(KeyError):
        value.tools[0]["absent"]


def test_required_fields_of_a_response():
    with pytest.raises(ValidationError) as caught:
        NeMoGymResponse.model_validate({})
    missing = {error["loc"][0] for error in caught.value.errors()}
    assert missing == {"id", "created_at", "model", "output", "parallel_tool_calls", "tool_choice", "tools"}


def test_generated_text_needs_annotations():
    assert NeMoGymResponseOutputText(text="a", annotations=[]).model_dump() == TEXT | {"logprobs": None}
    with pytest.raises(ValidationError):
        NeMoGymResponseOutputText(text="a")


def test_chat_requests_are_strict_on_keys_and_open_on_messages():
    messages = [
        {"role": "developer", "content": "d"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "a"}, {"type": "video_url", "video_url": {"url": "u"}}],
            "name": "x",
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "o"},
    ]
    params = NeMoGymChatCompletionCreateParamsNonStreaming(messages=messages)
    assert params.model_dump(exclude_unset=True) == {"messages": messages}
    for body in (
        {"messages": messages, "functions": []},
        {"messages": messages, "stream": True},
        {"messages": messages, "stream": "false"},
        {"messages": [{"role": "robot", "content": ""}]},
        {"messages": [{"role": "tool", "content": ""}]},
        {},
    ):
        with pytest.raises(ValidationError):
            NeMoGymChatCompletionCreateParamsNonStreaming.model_validate(body)


def completion(message, **fields):
    return NeMoGymChatCompletion.model_validate(
        {"id": "x", "created": 1, "model": "m", "choices": [{"index": 0, "finish_reason": "eos", "message": message}]} | fields
    )


def test_chat_answers_tolerate_what_endpoints_do():
    call = {"id": "", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}
    message = (
        completion({"role": "assistant", "tool_calls": [call, {"function": {"name": "g", "arguments": None}}]}).choices[0].message
    )
    assert message.content is None
    assert [tool_call.function.arguments for tool_call in message.tool_calls] == ['{"a":1}', "{}"]
    assert all(tool_call.id.startswith("call_") for tool_call in message.tool_calls)
    assert completion({"role": "assistant"}, usage={"prompt_tokens": None}).usage is None
    assert completion({"role": "assistant"}, usage={"prompt_tokens": 1, "completion_tokens": 2}).usage.total_tokens == 3


def test_chat_answers_with_token_fields_are_for_training():
    assert isinstance(completion({"role": "assistant", **TOKENS}).choices[0].message, NeMoGymChatCompletionMessageForTraining)
    with pytest.raises(ValidationError, match="generation_log_probs"):
        completion({"role": "assistant", "prompt_token_ids": [1], "generation_token_ids": [1]})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
item_like = st.dictionaries(
    st.sampled_from(["type", "role", "content", "id", "status", "call_id", "name", "arguments", "output", "summary", *TOKENS]),
    st.sampled_from(["message", "function_call", "function_call_output", "reasoning", "user", "assistant", "tool", "completed"])
    | json_values,
    max_size=6,
)


@given(json_values | item_like)
def test_any_json_is_an_item_that_survives_or_a_validation_error(value):
    try:
        item = ITEM.validate_python(value)
    except ValidationError:
        return
    dropped = {"status"} if value.get("type") == "reasoning" else set()
    assert set(item.model_dump(exclude_unset=True)) >= set(value) - dropped
