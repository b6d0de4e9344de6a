"""Messages between supervisor and warm parent."""

from __future__ import annotations

import os
import socket

from hypothesis import given
from hypothesis import strategies as st

from backend.servers.frames import FrameReader, encode_frame, send_frame


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers()), max_size=5), st.integers(min_value=1, max_value=50))
def test_messages_survive_any_cut(messages: list[dict[str, object]], size: int) -> None:
    stream = b"".join(map(encode_frame, messages))
    reader = FrameReader()
    received = []
    for begin in range(0, len(stream), size):
        received += reader.feed(stream[begin : begin + size])
    assert received == messages


def test_descriptors_arrive_with_their_message() -> None:
    left, right = socket.socketpair()
    read_end, write_end = os.pipe()
    with left, right:
        send_frame(left, {"do": "first"}, (write_end,))
        reader = FrameReader()
        assert reader.receive(right) == [{"do": "first"}]
        (received,) = reader.take(1)
        os.write(received, b"through")
        assert os.read(read_end, 10) == b"through"
        left.close()
        assert reader.receive(right) is None
    for descriptor in (read_end, write_end, received):
        os.close(descriptor)
