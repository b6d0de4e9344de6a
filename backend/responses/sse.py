"""Server-sent events: the text form in which all three dialects stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from backend.io.json_codec import dumps, loads

DONE = "[DONE]"
"""The data of the event that ends a Chat-Completions stream."""


class ServerSentEvent(NamedTuple):
    """One event: its name (None where the stream gives none) and its data, JSON text as a rule."""

    name: str | None
    data: str

    def json(self) -> dict[str, Any] | None:
        """The data as a JSON object; None when it is something else."""
        try:
            value = loads(self.data)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


def event_text(data: Any, name: str | None = None) -> str:
    """One event as it goes over the wire; `data` is encoded as JSON unless it is `DONE`."""
    body = DONE if data == DONE else dumps(data).decode()
    return f"event: {name}\ndata: {body}\n\n" if name else f"data: {body}\n\n"


def read_events(stream: str) -> Iterator[ServerSentEvent]:
    """The complete events of a stream: those with data that are ended by an empty line. Comments are passed over."""
    name: str | None = None
    data: list[str] = []
    for line in stream.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line:
            if data:
                yield ServerSentEvent(name, "\n".join(data))
            name, data = None, []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
