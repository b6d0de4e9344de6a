from backend.responses.chat_stream import chat_completion_sse, sanitize_streaming_chat_body
from backend.responses.sse import DONE, read_events

CALLS = [
    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
    {"id": "c2", "type": "function", "function": {"name": "g", "arguments": '{"a":1}'}},
]
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def completion(message, finish_reason="stop", **fields):
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", **message}}
    return {"id": "cc", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **fields}


def chunks(answer, **options):
    *some, last = read_events("".join(chat_completion_sse(answer, **options)))
    assert last.data == DONE
    return [event.json() for event in some]


def deltas(answer):
    return [(chunk["choices"][0]["delta"], chunk["choices"][0]["finish_reason"]) for chunk in chunks(answer)]


def test_what_a_streaming_request_becomes():
    body = {"messages": [], "stream": True, "stream_options": {"include_usage": True}, "weird": 1, "seed": 2}
    assert sanitize_streaming_chat_body(body) == ({"messages": [], "seed": 2}, True)
    for options in (None, {}, {"include_usage": False}, "x"):
        assert not sanitize_streaming_chat_body({"messages": [], "stream_options": options})[1]


def test_each_kind_of_content_has_a_chunk():
    message = {"content": "hi", "reasoning_content": "th", "tool_calls": CALLS}
    indexed = [{"index": index, **call} for index, call in enumerate(CALLS)]
    assert deltas(completion(message, "tool_calls")) == [
        ({"role": "assistant"}, None),
        ({"reasoning_content": "th"}, None),
        ({"content": "hi"}, None),
        ({"tool_calls": indexed}, None),
        ({}, "tool_calls"),
    ]


def test_what_is_empty_has_none():
    assert deltas(completion({"content": None, "tool_calls": None})) == [({"role": "assistant"}, None), ({}, "stop")]
    assert deltas(completion({"content": "", "reasoning": "r"}))[1] == ({"reasoning_content": "r"}, None)
    assert deltas(completion({"content": None, "refusal": "no"}))[1] == ({"refusal": "no"}, None)


def test_chunks_carry_the_completions_head():
    for chunk in chunks(completion({"content": "x"}, system_fingerprint="fp", service_tier=None)):
        del chunk["choices"]
        head = {"id": "cc", "object": "chat.completion.chunk", "created": 1, "model": "m", "system_fingerprint": "fp"}
        assert chunk == head


def test_usage_comes_only_when_asked_for_and_known():
    assert chunks(completion({"content": "x"}, usage=USAGE), include_usage=True)[-1]["usage"] == USAGE
    assert chunks(completion({"content": "x"}, usage=USAGE), include_usage=True)[-1]["choices"] == []
    for answer in (chunks(completion({"content": "x"}, usage=USAGE)), chunks(completion({"content": "x"}), include_usage=True)):
        assert all("usage" not in chunk for chunk in answer)


def test_choices_come_one_after_another():
    answer = completion({"content": "x"})
    answer["choices"].append({"index": 1, "finish_reason": "length", "message": {"role": "assistant", "content": "y"}})
    assert [chunk["choices"][0]["index"] for chunk in chunks(answer)] == [0, 0, 0, 1, 1, 1]
