import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.io.json_codec import dumps
from backend.responses.chat_stream import chat_completion_sse
from backend.responses.messages import message_from_response, message_sse
from backend.responses.sse import DONE, event_text
from backend.responses.stream_answers import StreamedAnswer, answer_from_stream, ends_stream
from backend.responses.streaming import synthesize_responses_failure_sse, synthesize_responses_sse

TEXT = st.text(max_size=20)
CALL = st.builds(
    lambda call_id, arguments: {"id": call_id, "type": "function", "function": {"name": "f", "arguments": arguments}},
    st.text("abc", min_size=1, max_size=3),
    TEXT,
)


def joined(events):
    return "".join(events)


@given(st.lists(TEXT, max_size=3), st.sampled_from(["completed", "incomplete"]))
def test_a_replayed_response_is_read_back(texts, status):
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    response = {"id": "r", "status": status, "output": [{"type": "message", "content": content}], "usage": None}
    assert answer_from_stream("responses", joined(synthesize_responses_sse(response))) == StreamedAnswer(response, None)


@given(TEXT, TEXT, st.lists(CALL, max_size=3), st.sampled_from(["stop", "length"]))
def test_a_replayed_completion_is_read_back(text, thought, calls, reason):
    message = {"role": "assistant", "content": text or None}
    message |= {"reasoning_content": thought} if thought else {}
    message |= {"tool_calls": calls} if calls else {}
    choices = [{"index": 0, "message": message, "finish_reason": reason}]
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    completion = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}
    stream = joined(chat_completion_sse(completion, include_usage=True))
    assert answer_from_stream("chat", stream) == StreamedAnswer(completion, None)


@given(TEXT, st.dictionaries(TEXT, st.integers(-9, 9), max_size=3))
def test_a_replayed_message_is_read_back(text, arguments):
    output = [
        {"type": "message", "content": [{"type": "output_text", "text": text}]},
        {"type": "function_call", "name": "f", "call_id": "c", "arguments": dumps(arguments).decode()},
    ]
    message = message_from_response({"id": "r", "model": "m", "output": output, "usage": None})
    assert answer_from_stream("messages", joined(message_sse(message))) == StreamedAnswer(message, None)


def test_fragments_of_a_chat_stream_are_joined():
    def chunk(delta, reason=None):
        return event_text({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    def part(index, **fields):
        return {"tool_calls": [{"index": index, **fields}]}

    stream = joined(
        [
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": "He"}),
            chunk({"content": "llo"}),
            chunk(part(1, id="b", function={"name": "g", "arguments": ""})),
            chunk(part(0, id="a", function={"name": "f", "arguments": '{"x"'})),
            chunk(part(0, function={"arguments": ":1}"})),
            chunk(part(1_000_000_000, id="z", function={"name": "h"})),
            chunk({}, "tool_calls"),
            event_text(DONE),
        ]
    )
    answer = answer_from_stream("chat", stream).answer
    [choice] = answer["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Hello", "tool_calls")
    functions = [
        (call["id"], call["function"]["name"], call["function"]["arguments"]) for call in choice["message"]["tool_calls"]
    ]
    assert functions == [("a", "f", '{"x":1}'), ("b", "g", ""), ("z", "h", "")]


CUT = {
    "responses": event_text({"type": "response.created", "response": {"id": "r", "output": []}}, "response.created")
    + event_text({"type": "response.output_item.done", "output_index": 0, "item": {"type": "message"}}),
    "chat": event_text({"id": "c", "choices": [{"index": 0, "delta": {"content": "He"}}]}),
    "messages": event_text({"type": "message_start", "message": {"id": "m", "content": []}}, "message_start"),
}


@pytest.mark.parametrize("dialect", CUT)
def test_a_stream_without_its_end_is_truncated(dialect):
    read = answer_from_stream(dialect, CUT[dialect])
    assert read.problem == "stream_truncated"
    assert read.answer["id"] == {"responses": "r", "chat": "c", "messages": "m"}[dialect]


@pytest.mark.parametrize(
    ("dialect", "stream"),
    [
        ("responses", joined(synthesize_responses_failure_sse("boom"))),
        ("responses", CUT["responses"] + event_text({"type": "error", "message": "boom"}, "error")),
        ("chat", CUT["chat"] + event_text({"error": {"message": "boom"}})),
        ("messages", CUT["messages"] + event_text({"type": "error", "error": {"message": "boom"}}, "error")),
    ],
    ids=["failed response", "responses", "chat", "messages"],
)
def test_an_error_event_is_an_upstream_error(dialect, stream):
    read = answer_from_stream(dialect, stream)
    assert read.problem == "upstream_error"
    assert read.answer is not None


@pytest.mark.parametrize("dialect", CUT)
@pytest.mark.parametrize("stream", ["", "nonsense", "data: nonsense\n\n", ": only a comment\n\n"])
def test_what_is_no_stream_is_unreadable(dialect, stream):
    assert answer_from_stream(dialect, stream) == StreamedAnswer(None, "capture_parse_error")


@pytest.mark.parametrize(
    ("dialect", "piece", "expected"),
    [
        ("chat", event_text(DONE), True),
        ("chat", event_text({"choices": [{"delta": {"content": "data: [DONE]"}}]}), False),
        ("responses", event_text({"type": "response.completed"}, "response.completed"), True),
        ("responses", event_text({"type": "response.incomplete"}), True),
        ("responses", event_text({"type": "response.created", "text": "response.completed"}, "response.created"), False),
        ("messages", event_text({"type": "message_stop"}, "message_stop"), True),
        ("messages", "event: message_stop\ndata: {", False),
    ],
)
def test_the_end_of_a_stream_is_recognised_by_its_event(dialect, piece, expected):
    assert ends_stream(dialect, piece) is expected
