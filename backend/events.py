"""What operations say while they work.

An operation yields events: small frozen dataclasses of ids, numbers, states and file names, never transcripts. A face renders them; a
run's event file keeps them as JSON lines `{"v": 1, "seq": n, "t": seconds since the epoch, "type": …, …fields}`. Readers ignore
types and fields they do not know.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

EVENT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events; subclasses set `type`, a dotted lower-case name."""

    type: ClassVar[str] = "event"

    def as_fields(self) -> dict[str, Any]:
        """The event's own fields, ready for JSON."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """A remark for people: `level` is `info` or `warning`."""

    type: ClassVar[str] = "notice"
    text: str
    level: str = "info"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list | frozenset | set):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "__fspath__"):
        return str(value)
    return value
