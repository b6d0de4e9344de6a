from hypothesis import given
from hypothesis import strategies as st

from backend.responses.sse import DONE, ServerSentEvent, event_text, read_events


def test_the_two_forms_of_an_event():
    assert event_text({"a": "ü"}) == 'data: {"a":"ü"}\n\n'
    assert event_text({"a": 1}, "named") == 'event: named\ndata: {"a":1}\n\n'
    assert event_text(DONE) == "data: [DONE]\n\n"


def test_reading_passes_over_comments_and_unfinished_events():
    stream = ": hello\r\n\r\nevent: a\r\ndata: {\r\ndata: }\r\n\r\nid: 7\n\ndata:[DONE]\n\ndata: cut"
    assert list(read_events(stream)) == [ServerSentEvent("a", "{\n}"), ServerSentEvent(None, "[DONE]")]


def test_data_that_is_no_object_is_none():
    assert [event.json() for event in read_events("data: [1]\n\ndata: {nonsense\n\ndata: {}\n\n")] == [None, None, {}]


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers(-(2**53), 2**53) | st.none())))
def test_what_is_written_is_read(values):
    """The JSON escapes every line end that could break an event."""
    stream = "".join(event_text(value, "x") for value in values)
    assert [event.json() for event in read_events(stream)] == values
