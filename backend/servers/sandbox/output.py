"""The output of a command, up to a limit."""

from __future__ import annotations

import asyncio
import os
from collections import deque


class LimitedOutput:
    """Keeps the beginning and the end of a stream, each half of `limit` bytes; what lies between is counted and dropped."""

    def __init__(self, limit: int) -> None:
        self.half = max(limit // 2, 1)
        self.head = bytearray()
        self.tail: deque[bytes] = deque()
        self.tail_length = 0
        self.length = 0

    def add(self, data: bytes) -> None:
        """The next piece of the stream."""
        self.length += len(data)
        room = self.half - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        if data:
            self.tail.append(data)
            self.tail_length += len(data)
            while self.tail_length - len(self.tail[0]) >= self.half:
                self.tail_length -= len(self.tail.popleft())

    def text(self) -> str:
        """What was kept, with a line in the middle that says how much is missing. Bytes that are not UTF-8 are replaced."""
        tail = b"".join(self.tail)[-self.half :]
        missing = self.length - len(self.head) - len(tail)
        if missing <= 0:
            return (bytes(self.head) + tail).decode("utf-8", "replace")
        return f"{self.head.decode('utf-8', 'replace')}\n[… {missing} bytes left out …]\n{tail.decode('utf-8', 'replace')}"


async def collect(descriptor: int, into: LimitedOutput) -> None:
    """Read a pipe to its end, or until cancelled; closes it."""
    loop = asyncio.get_running_loop()
    os.set_blocking(descriptor, False)
    ended = loop.create_future()

    def take() -> None:
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            into.add(data)
        elif not ended.done():
            ended.set_result(None)

    loop.add_reader(descriptor, take)
    try:
        await ended
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
