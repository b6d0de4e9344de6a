"""What the screen knows of the stacks: what there is now, what was measured in the last minute, and stacks that have just ended."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import quantiles

from backend.errors import GymError
from backend.io.event_stream import EventStream
from backend.io.tail import tail_lines
from backend.servers.stack_record import StackRecord, StackServer
from backend.servers.stack_watch import ServerSample, StackSample
from screens.servers.startup import Startup, Step

HISTORY = 60
"""Samples kept per server, one a second."""
PROBES = 20
KEPT_ENDED = 8
"""Stacks that have ended stay on the list until there are more of them, or somebody takes them off."""
HEAD_SERVER_KIND = "head_server"
_ASKED_TO = frozenset((0, -signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGINT))
"""Exit codes of a server that was told to end."""
_EVENTS_AT_ONCE = 500
_LAST_LINE_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class Probe:
    """One answer to `GET /`, or why there was none."""

    health: str
    milliseconds: float | None

    @property
    def good(self) -> bool:
        return self.health == "success"


@dataclass(frozen=True, slots=True)
class ServerView:
    """One server at one moment. Series are oldest first, one value a second, None where nothing was known."""

    stack_id: str
    server: StackServer
    sample: ServerSample | None = None
    cpu: tuple[float | None, ...] = ()
    memory: tuple[float | None, ...] = ()
    in_flight: tuple[float | None, ...] = ()
    probes: tuple[Probe, ...] = ()
    """The last ones."""
    p50: float | None = None
    p95: float | None = None
    """Milliseconds, of the answers in the last minute."""
    recent_requests: int | None = None
    recent_errors: int | None = None
    """In the last minute."""
    used_by: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    log_written: float | None = None
    """When the log was last written, Unix time."""
    last_line: str = ""
    """The log's last line, of a server that has ended."""
    over: bool = False
    """Its stack has ended."""

    @property
    def key(self) -> tuple[str, str]:
        return self.stack_id, self.server.name

    @property
    def is_head(self) -> bool:
        return self.server.kind == HEAD_SERVER_KIND

    @property
    def ended(self) -> bool:
        """Whether its process is gone."""
        gone = self.sample is not None and not self.sample.alive and bool(self.server.pid)
        return self.over or self.server.state == "ended" or gone

    @property
    def failed(self) -> bool:
        """Whether it ended although nobody asked it to."""
        said = self.over or self.server.state == "ended"
        return self.ended and (not said or (self.server.code or 0) not in _ASKED_TO)


@dataclass(frozen=True, slots=True)
class StackView:
    """One stack at one moment, the head server first."""

    record: StackRecord
    servers: tuple[ServerView, ...]
    ended_at: float | None = None
    """When it was missed, Unix time; None while it runs."""
    error: str = ""
    """Why it ended, if it said so."""

    @property
    def title(self) -> str:
        return self.record.name or self.record.id


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All stacks at one moment: those that run, the oldest first, then those that have ended."""

    at: float
    """Unix time."""
    stacks: tuple[StackView, ...]

    def stack(self, stack_id: str) -> StackView | None:
        return next((stack for stack in self.stacks if stack.record.id == stack_id), None)

    def server(self, key: tuple[str, str]) -> ServerView | None:
        stack = self.stack(key[0])
        return next((view for view in stack.servers if view.server.name == key[1]), None) if stack is not None else None

    @property
    def running(self) -> tuple[StackView, ...]:
        return tuple(stack for stack in self.stacks if stack.ended_at is None)


@dataclass(slots=True)
class _History:
    """What was measured of one server."""

    cpu: deque[float | None] = field(default_factory=lambda: deque(maxlen=HISTORY))
    memory: deque[float | None] = field(default_factory=lambda: deque(maxlen=HISTORY))
    in_flight: deque[float | None] = field(default_factory=lambda: deque(maxlen=HISTORY))
    probes: deque[Probe] = field(default_factory=lambda: deque(maxlen=HISTORY))
    counts: deque[tuple[int | None, int | None]] = field(default_factory=lambda: deque(maxlen=HISTORY))
    """Requests and errors since the server began."""

    def add(self, sample: ServerSample, *, ready: bool) -> None:
        self.cpu.append(sample.cpu_percent)
        self.memory.append(sample.memory)
        self.in_flight.append(sample.in_flight)
        self.counts.append((sample.requests, sample.errors))
        if ready:  # before, nobody expects an answer
            self.probes.append(Probe(sample.health, sample.latency_ms))

    def leave_gap(self) -> None:
        """Nothing is known of a moment."""
        for series in (self.cpu, self.memory, self.in_flight):
            series.append(None)

    def latency(self) -> tuple[float | None, float | None]:
        """Median and 95th percentile of the answers, in milliseconds."""
        times = [probe.milliseconds for probe in self.probes if probe.good and probe.milliseconds is not None]
        if len(times) < 2:
            return (times[0], times[0]) if times else (None, None)
        cuts = quantiles(times, n=20, method="inclusive")
        return cuts[9], cuts[18]

    def recent(self, index: int) -> int | None:
        """How much a count has grown since the oldest sample; None when that is not known."""
        known = [value for pair in self.counts if (value := pair[index]) is not None]
        return max(0, known[-1] - known[0]) if len(known) > 1 else None


class Board:
    """Keeps the history of all servers. It reads events and logs, so it belongs to the thread that watches the stacks."""

    def __init__(self) -> None:
        self._histories: dict[tuple[str, str], _History] = {}
        self._startups: dict[str, tuple[EventStream, Startup]] = {}
        self._running: dict[str, StackView] = {}
        self._ended: OrderedDict[str, StackView] = OrderedDict()
        self._last_lines: dict[tuple[str, str], tuple[float | None, str]] = {}
        """Per server, when its log was written, and the last line then."""
        self._samples: dict[tuple[str, str], ServerSample] = {}

    def note(self, samples: Iterable[StackSample]) -> None:
        """Take new samples."""
        for stack in samples:
            states = {server.name: server.state for server in stack.record.servers}
            for sample in stack.servers:
                key = (stack.record.id, sample.name)
                self._samples[key] = sample
                self._histories.setdefault(key, _History()).add(sample, ready=states.get(sample.name) == "ready")

    def note_pause(self) -> None:
        """Leave a gap in the histories: nobody has looked for a while."""
        for history in self._histories.values():
            history.leave_gap()

    def look(self, records: Sequence[StackRecord], now: float) -> Snapshot:
        """All stacks as they are with these records, of the stacks that run."""
        before, self._running = self._running, {record.id: self._view(record) for record in records}
        for stack_id, stack in before.items():
            if stack_id not in self._running:
                self._end(stack, now)
        return Snapshot(now, (*self._running.values(), *reversed(self._ended.values())))

    def close(self) -> None:
        """Close the event files."""
        for stream, _ in self._startups.values():
            stream.close()
        self._startups.clear()

    def _view(self, record: StackRecord) -> StackView:
        startup = self._startup(record)
        users: dict[str, list[str]] = {}
        for server in record.servers:
            for name in server.uses:
                users.setdefault(name, []).append(server.name)
        views = [self._server_view(record, server, startup, tuple(users.get(server.name, ()))) for server in record.servers]
        return StackView(record, tuple(sorted(views, key=lambda view: not view.is_head)))

    def _server_view(self, record: StackRecord, server: StackServer, startup: Startup, used_by: tuple[str, ...]) -> ServerView:
        key = (record.id, server.name)
        history = self._histories.get(key, _History())
        p50, p95 = history.latency()
        view = ServerView(
            record.id,
            server,
            self._samples.get(key),
            tuple(history.cpu),
            tuple(history.memory),
            tuple(history.in_flight),
            tuple(history.probes)[-PROBES:],
            p50,
            p95,
            history.recent(0),
            history.recent(1),
            used_by,
            startup.steps_of(server.name),
            _written(server.log),
        )
        return replace(view, last_line=self._last_line(key, server.log)) if view.ended else view

    def _end(self, stack: StackView, now: float) -> None:
        """Keep a stack that is gone, with what its last events say."""
        startup = self._startup(stack.record)
        servers = []
        for view in stack.servers:
            code = startup.codes.get(view.server.name, view.server.code)
            server = replace(view.server, state="ended", code=code)
            last_line = self._last_line(view.key, server.log)
            steps = startup.steps_of(server.name)
            servers.append(replace(view, server=server, over=True, sample=None, steps=steps, last_line=last_line))
            self._histories.pop(view.key, None)
            self._samples.pop(view.key, None)
            self._last_lines.pop(view.key, None)
        self._startups.pop(stack.record.id)[0].close()
        self._ended[stack.record.id] = replace(stack, servers=tuple(servers), ended_at=now, error=startup.error)
        while len(self._ended) > KEPT_ENDED:
            self._ended.popitem(last=False)

    def _startup(self, record: StackRecord) -> Startup:
        """The start of a stack, with all events that are there now."""
        if record.id not in self._startups:
            self._startups[record.id] = (EventStream(record.events or os.devnull), Startup())
        stream, startup = self._startups[record.id]
        with contextlib.suppress(GymError):
            while events := stream.read(_EVENTS_AT_ONCE):
                startup.feed(events)
        return startup

    def _last_line(self, key: tuple[str, str], log: str) -> str:
        """The end of a log, read anew when it was written since: the last words arrive after the server's end."""
        written = _written(log)
        known = self._last_lines.get(key)
        if known is None or known[0] != written:
            known = self._last_lines[key] = written, _end_of(log)
        return known[1]


def _written(log: str) -> float | None:
    """When a log was last written; None for one that is empty or not there."""
    try:
        found = os.stat(log)
    except OSError:
        return None
    return found.st_mtime if found.st_size else None


def _end_of(log: str) -> str:
    """The last line of a log that says something."""
    if not log:
        return ""
    try:
        lines = tail_lines(log, 20, _LAST_LINE_BYTES)
    except GymError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
