import copy

import pytest

from backend.responses.schema import NeMoGymChatCompletionCreateParamsNonStreaming, NeMoGymResponseCreateParamsNonStreaming
from backend.responses.to_chat import (
    chat_completion_body,
    chat_params_from_responses,
    without_empty_tools,
    without_row_extra,
)

TOKENS = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.5]}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":1}'}
CHAT_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
THOUGHT = {
    "type": "reasoning",
    "id": "r",
    "summary": [{"type": "summary_text", "text": "hm"}, {"type": "summary_text", "text": "ah"}],
}


def convert(**params):
    request = NeMoGymResponseCreateParamsNonStreaming.model_validate({"input": "hi", **params})
    return chat_params_from_responses(request).model_dump(exclude_unset=True)


def messages(*items, **params):
    return convert(input=list(items), **params)["messages"]


def said(text, **fields):
    return {
        "type": "message",
        "role": "assistant",
        "id": "m",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    } | fields


def test_text_becomes_one_user_message_with_a_text_part():
    assert convert() == {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}


def test_messages_keep_role_and_parts():
    parts = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "u"},
        {"type": "input_image", "image_url": "v", "detail": "low"},
        {"type": "input_video", "video": {"url": "w"}},
    ]
    assert messages(
        {"role": "system", "content": "s"}, {"role": "developer", "content": "d"}, {"role": "user", "content": parts}
    ) == [
        {"role": "system", "content": "s"},
        {"role": "developer", "content": "d"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "u", "detail": "auto"}},
                {"type": "image_url", "image_url": {"url": "v", "detail": "low"}},
                {"type": "video_url", "video_url": {"url": "w"}},
            ],
        },
    ]


def test_what_one_turn_produced_becomes_one_message():
    output = {"type": "function_call_output", "call_id": "c", "output": "42"}
    assert messages({"role": "user", "content": "q"}, THOUGHT, said("one "), said("two"), CALL, output, CALL, said("end")) == [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "<think>hm</think><think>ah</think>one two", "tool_calls": [CHAT_CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "42"},
        {"role": "assistant", "content": "end", "tool_calls": [CHAT_CALL]},
    ]


def test_calls_without_text_have_null_content_and_text_without_calls_no_call_list():
    assert messages(CALL) == [{"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}]
    assert messages(said("a")) == [{"role": "assistant", "content": "a"}]
    assert messages({"role": "assistant", "content": "easy"}) == [{"role": "assistant", "content": "easy"}]


def test_a_refusal_stays_a_refusal():
    refused = said("", content=[{"type": "refusal", "refusal": "no"}])
    assert messages(refused) == [{"role": "assistant", "content": None, "refusal": "no"}]


def test_full_dumps_of_earlier_answers_with_their_nulls_are_fine():
    assert messages({**said("a"), "phase": None}, {**CALL, "namespace": None, "status": None, "id": None}) == [
        {"role": "assistant", "content": "a", "tool_calls": [CHAT_CALL]}
    ]


def test_chat_shaped_items_are_accepted():
    assert messages(
        {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}, {"role": "tool", "tool_call_id": "c", "content": "o"}
    ) == [
        {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "o"},
    ]


def test_text_parts_of_a_tools_output_survive():
    output = {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "a"}]}
    assert messages(output) == [{"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "a"}]}]


def test_instructions_fold_the_leading_system_and_developer_messages():
    lead = [
        {"role": "system", "content": "s"},
        {"role": "developer", "content": [{"type": "input_text", "text": "d"}]},
        {"role": "user", "content": "u"},
        {"role": "system", "content": "later"},
    ]
    assert messages(*lead, instructions="i") == [
        {"role": "system", "content": "i\n\ns\n\nd"},
        {"role": "user", "content": "u"},
        {"role": "system", "content": "later"},
    ]
    assert messages({"role": "system", "content": "s"}, instructions="i") == [{"role": "system", "content": "i\n\ns"}]
    assert convert(instructions="i")["messages"][0] == {"role": "system", "content": "i"}


def test_knobs_are_renamed_or_passed_on():
    given = convert(
        model="m",
        temperature=0.5,
        top_p=0.9,
        max_output_tokens=7,
        reasoning={"effort": "low", "summary": None},
        text={"verbosity": "high", "format": {"type": "text"}},
        top_logprobs=2,
        metadata={"a": "b"},
        user="u",
        truncation="disabled",
        background=False,
        include=[],
    )
    del given["messages"]
    assert given == {
        "model": "m",
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 7,
        "reasoning_effort": "low",
        "verbosity": "high",
        "logprobs": True,
        "top_logprobs": 2,
        "metadata": {"a": "b"},
        "user": "u",
    }


def test_tools_are_nested_without_their_nulls():
    function = {"type": "function", "name": "f", "description": None, "parameters": {"type": "object"}, "strict": True}
    custom = {"type": "custom", "name": "g", "format": {"type": "text"}}
    given = convert(tools=[function, custom], tool_choice={"type": "function", "name": "f"}, parallel_tool_calls=False)
    assert given["tools"] == [
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": True}},
        {"type": "custom", "custom": {"name": "g", "format": {"type": "text"}}},
    ]
    assert given["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert given["parallel_tool_calls"] is False
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}
    assert convert(tools=[function], tool_choice=allowed)["tool_choice"] == {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
    }


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_without_tools_nothing_is_said_about_tools(choice):
    assert set(convert(tools=[], tool_choice=choice, parallel_tool_calls=True)) == {"messages"}


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "f"}])
def test_a_choice_that_demands_a_missing_tool_is_an_error(choice):
    with pytest.raises(ValueError, match="demands a tool"):
        convert(tool_choice=choice)


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"background": True}, "background"),
        ({"context_management": [{"type": "compaction"}]}, "context_management"),
        ({"conversation": "c"}, "conversation"),
        ({"include": ["x"]}, "include"),
        ({"max_tool_calls": 0}, "max_tool_calls"),
        ({"previous_response_id": "p"}, "previous_response_id"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"truncation": "auto"}, "truncation"),
        ({"reasoning": {"summary": "auto"}}, "reasoning.summary"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format"),
        ({"input": [{"role": "assistant", "content": "a", "phase": "commentary"}]}, "phase"),
        ({"input": [{**CALL, "namespace": "n"}]}, "namespace"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}, "file_id"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "u", "detail": "original"}]}]}, "original"),
        ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, "input_file"),
        ({"tools": [{"type": "web_search"}]}, "web_search"),
        ({"tools": [{"type": "function", "name": "f", "parameters": {}, "defer_loading": True}]}, "defer_loading"),
        ({"tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "mcp"}}, "mcp"),
        (
            {"input": [{"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": "u"}]}]},
            "input_image",
        ),
        ({"input": [{"type": "mcp_call", "id": "x"}]}, "mcp_call"),
    ],
)
def test_what_chat_cannot_express_is_refused_by_name(params, named):
    with pytest.raises(NotImplementedError, match=named):
        convert(**params)


def test_token_fields_go_onto_the_merged_message_only_on_demand():
    request = NeMoGymResponseCreateParamsNonStreaming(input=[{"role": "user", "content": "q"}, said("a"), {**CALL, **TOKENS}])
    plain = chat_params_from_responses(request).model_dump(exclude_unset=True)["messages"][1]
    assert not TOKENS.keys() & plain.keys()
    trained = chat_params_from_responses(request, with_token_fields=True).model_dump(exclude_unset=True)["messages"][1]
    assert trained == plain | TOKENS


def test_the_body_for_an_endpoint():
    params = chat_params_from_responses(NeMoGymResponseCreateParamsNonStreaming(input="a", temperature=0.5, model="theirs"))
    body = chat_completion_body(params, model="ours", extra_body={"temperature": 1, "top_k": 3})
    assert body == {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}],
        "temperature": 0.5,
        "top_k": 3,
        "model": "ours",
    }
    kept = {"tools": [1], "tool_choice": "auto", "parallel_tool_calls": True}
    assert without_empty_tools(kept) is kept
    assert without_empty_tools({**kept, "tools": [], "a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    ("metadata", "added", "rest"),
    [
        (None, {}, None),
        ({}, {}, {}),
        ({"a": "b"}, {}, {"a": "b"}),
        ({"extra_body": ""}, {}, None),
        ({"extra_body": '{"seed": 2, "x": null}'}, {"seed": 2, "x": None}, None),
        ({"a": "b", "extra_body": '{"seed": 2}'}, {"seed": 2}, {"a": "b"}),
    ],
)
def test_what_a_row_adds_to_the_call_is_taken_out_of_its_metadata(metadata, added, rest):
    body = {"input": "a"} if metadata is None else {"input": "a", "metadata": metadata}
    before = copy.deepcopy(body)
    assert without_row_extra(body) == ({"input": "a"} if rest is None else {"input": "a", "metadata": rest}, added)
    assert body == before


def test_the_rows_additions_stand_between_the_configured_ones_and_the_request():
    params = NeMoGymChatCompletionCreateParamsNonStreaming(
        messages=[], temperature=0.5, metadata={"extra_body": '{"temperature": 2, "top_k": 2}'}
    )
    body = chat_completion_body(params, model="m", extra_body={"temperature": 1, "top_k": 1, "min_p": 1})
    assert body == {"messages": [], "temperature": 0.5, "top_k": 2, "min_p": 1, "model": "m"}


@pytest.mark.parametrize("text", ["[1]", "{", "seed", "[" * 100_000])
def test_additions_that_are_no_object_are_refused(text):
    with pytest.raises(ValueError, match=r"metadata\.extra_body must be the JSON text of an object"):
        without_row_extra({"metadata": {"extra_body": text}})
