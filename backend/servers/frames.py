"""Messages between the supervisor and the warm parent: length-prefixed on a Unix socket, with file descriptors beside them.

Pickled, because a configuration may have keys that JSON turns into text; both ends are this program, on a private socket.
"""

from __future__ import annotations

import pickle
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("!I")
_MAX_DESCRIPTORS = 8


def encode_frame(message: dict[str, Any]) -> bytes:
    """The bytes of one message."""
    body = pickle.dumps(message)
    return _LENGTH.pack(len(body)) + body


def send_frame(connection: socket.socket, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
    """Send one message; the descriptors arrive with its first byte. The socket must be blocking."""
    data = encode_frame(message)
    if descriptors:
        data = data[socket.send_fds(connection, [data], list(descriptors)) :]
    connection.sendall(data)


class FrameReader:
    """Cuts a stream into messages; descriptors queue up in the order in which they came."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.descriptors: list[int] = []

    def receive(self, connection: socket.socket) -> list[dict[str, Any]] | None:
        """Read once from `connection`: the messages that are complete now, or None at its end."""
        data, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, _MAX_DESCRIPTORS)
        self.descriptors.extend(descriptors)
        if not data:
            return None
        return self.feed(data)

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The messages that are complete after `data`."""
        self._buffer += data
        messages = []
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                break
            messages.append(pickle.loads(bytes(self._buffer[_LENGTH.size : end])))
            del self._buffer[:end]
        return messages

    def take(self, count: int) -> list[int]:
        """The oldest `count` descriptors that were received."""
        taken, self.descriptors = self.descriptors[:count], self.descriptors[count:]
        return taken
