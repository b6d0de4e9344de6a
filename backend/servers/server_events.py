"""What the supervisor says about its servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from backend.events import Event


@dataclass(frozen=True, slots=True)
class StackStarting(Event):
    """The configuration is complete and the servers are about to be started."""

    type: ClassVar[str] = "stack.starting"
    servers: tuple[str, ...]
    head_url: str


@dataclass(frozen=True, slots=True)
class ServerStarted(Event):
    """A server's process runs; it does not answer yet."""

    type: ClassVar[str] = "server.started"
    name: str
    kind: str
    implementation: str
    pid: int
    url: str


@dataclass(frozen=True, slots=True)
class ServerPhase(Event):
    """A server says which step of its start-up it has come to, `seconds` after the start of the stack.

    That is `setting up`: the entry point is imported, and the application is built. `EnvironmentPreparing` and `ServerStarted` tell
    the steps before it, `ServerReady` the end.
    """

    type: ClassVar[str] = "server.phase"
    name: str
    phase: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ServerReady(Event):
    """A server answers requests, `seconds` after the start of the stack."""

    type: ClassVar[str] = "server.ready"
    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class StackProgress(Event):
    """How many servers are ready, and the names of those that are not; said at the start and every 30 s.

    `details` says of each of these, in words, what it is doing, for how long, and where its output is; empty at the start.
    """

    type: ClassVar[str] = "stack.progress"
    ready: int
    total: int
    waiting: tuple[str, ...]
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StackReady(Event):
    """All servers answer. `instances` are the objects that the head server gives out."""

    type: ClassVar[str] = "stack.ready"
    seconds: float
    instances: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class ServerEnded(Event):
    """A server's process is gone; a negative code is the number of the signal that ended it."""

    type: ClassVar[str] = "server.ended"
    name: str
    code: int


@dataclass(frozen=True, slots=True)
class StackEnded(Event):
    """A stack ends by itself, and why. One that is told to end says nothing."""

    type: ClassVar[str] = "stack.ended"
    error: str


@dataclass(frozen=True, slots=True)
class ModelEndpointState(Event):
    """What a model server's upstream endpoint does: `answering`, `unreachable` or `unknown host`."""

    type: ClassVar[str] = "endpoint.state"
    url: str
    key: str
    state: str
    reason: str = ""
