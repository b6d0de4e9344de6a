"""Events as JSON lines, for whoever follows a command from outside."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backend.events import EVENT_VERSION, Event
from backend.io.json_codec import loads
from backend.io.jsonl import JsonlWriter, read_jsonl
from backend.io.redact import Redactor

_TAIL_BYTES = 1 << 20


class EventLog:
    """Appends events to a file; `seq` counts from 0 in each log, `t` is seconds since the epoch. Secrets are masked.

    With `resumed` the count goes on where the events in the file end.
    """

    def __init__(self, path: str | Path, redactor: Redactor | None = None, *, resumed: bool = False) -> None:
        self._redactor = redactor or Redactor()
        self._writer = JsonlWriter(path)
        self._sequence = _last_sequence(Path(path)) + 1 if resumed else 0

    def append(self, event: Event, at: float | None = None) -> None:
        """Write one event, as happening now or at a given time."""
        head = {"v": EVENT_VERSION, "seq": self._sequence, "t": time.time() if at is None else at, "type": event.type}
        self._writer.write(head | self._redactor.tree(event.as_fields()))
        self._sequence += 1

    def close(self) -> None:
        self._writer.close()


def _last_sequence(path: Path) -> int:
    """The number of the last event in a file, -1 in an empty one; only the end of the file is read."""
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        lines = file.read().splitlines()
    for line in reversed(lines):
        try:
            sequence = loads(line)["seq"]
        except (ValueError, TypeError, KeyError):
            continue
        if isinstance(sequence, int):
            return sequence
    return -1


def read_events(path: str | Path) -> Iterator[dict[str, Any]]:
    """The events of a file as mappings; an unfinished last line is left out."""
    for line in read_jsonl(path, allow_torn_tail=True):
        yield line.value
