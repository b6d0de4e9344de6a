"""The steps of a stack's start, folded from its events: what each server did, since when, and for how long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

READY = "ready"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a server's start; `seconds` is None while it goes on."""

    name: str
    began: float
    """Unix time."""
    seconds: float | None = None


class Startup:
    """Events that it does not know change nothing, so that it reads what later versions write."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        """Exit codes of servers that have ended; a negative one is a signal."""
        self.error = ""
        """Why the stack ended."""
        self._ends: dict[str, float] = {}
        """Unix times at which servers ended."""
        self._steps: dict[str, list[tuple[str, float]]] = {}

    def feed(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Take more events of the stack."""
        for event in events:
            at = event.get("t")
            if isinstance(at, int | float):
                self._take(event, float(at))

    def steps_of(self, server: str) -> tuple[Step, ...]:
        """The steps of one server in their order, the last one `ready` once it answered; with the server, its last step ends."""
        marks = self._steps.get(server, [])
        steps = [Step(name, began, max(0.0, ended - began)) for (name, began), (_, ended) in pairwise(marks)]
        end = self._ends.get(server)
        return (*steps, *(Step(name, began, None if end is None else max(0.0, end - began)) for name, began in marks[-1:]))

    def _take(self, event: Mapping[str, Any], at: float) -> None:
        kind, name = event.get("type"), event.get("name")
        if kind == "stack.starting":
            self._steps.clear()
            self.codes.clear()
            self._ends.clear()
            for server in _names(event):
                self._begin(server, "preparing", at)
        elif kind == "environment.preparing":
            for server in _names(event):
                self._begin(server, "preparing", at)
        elif kind == "environment.ready":
            for server in _names(event):
                self._begin(server, "launching", at)
        elif kind == "server.phase" and isinstance(name, str):
            self._begin(name, str(event.get("phase")), at)
        elif kind == "server.started" and isinstance(name, str):
            self._begin(name, "importing", at)
        elif kind == "server.ready" and isinstance(name, str):
            self._begin(name, READY, at)
        elif kind == "server.ended" and isinstance(name, str):
            code = event.get("code")
            self.codes[name] = code if isinstance(code, int) else 0
            self._ends[name] = at
        elif kind == "stack.ended":
            self.error = str(event.get("error") or "")

    def _begin(self, server: str, step: str, at: float) -> None:
        steps = self._steps.setdefault(server, [])
        if not steps or steps[-1][0] != step:
            steps.append((step, at))


def _names(event: Mapping[str, Any]) -> list[str]:
    names = event.get("servers")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list | tuple) else []
