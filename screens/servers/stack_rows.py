"""Stacks and their servers as rows: a heading per stack, and what stands in each column."""

from __future__ import annotations

import signal
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from screens.servers.board import ServerView, Snapshot, StackView
from screens.servers.startup import READY
from screens.widgets import formatting, glyphs
from screens.widgets.columns import Column
from screens.widgets.plots import sparkline
from screens.widgets.virtual_list import Cell, Row

COLUMNS = (
    Column("name", "NAME", least=16),
    Column("kind", "TYPE", 5, keep=4),
    Column("state", "STATE", 11),
    Column("health", "HEALTH", 9, keep=12),
    Column("port", "PORT", 5, right=True, keep=8),
    Column("pid", "PID", 7, right=True, keep=3),
    Column("up", "UP", 7, right=True, keep=9),
    Column("cpu", "CPU", 5, right=True, keep=11),
    Column("memory", "RSS", 5, right=True, keep=10),
    Column("busy", "BUSY", 4, right=True, keep=7),
    Column("errors", "ERR", 4, right=True, keep=6),
    Column("load", "LOAD 60s", 8, right=True, keep=2),
    Column("written", "LOG", 6, right=True, keep=1),
)
LOAD_WIDTH = 8
_WIDEST_NAME = {False: 34, True: 24}
"""Cells for names, by whether the terminal is narrow."""
SLOW_MILLISECONDS = 500.0
KINDS = {
    "head_server": "head",
    "resources_servers": "rs",
    "responses_api_agents": "agent",
    "responses_api_models": "model",
}
ORDERS = ("configured", "name", "state", "cpu", "memory", "busy", "errors")
"""What the sort key goes through; the columns' titles offer more."""
_DESCENDING = frozenset(("cpu", "memory", "busy", "errors", "up"))
_PHASES = {"setting up": "setup"}
"""Short words for what would be cut."""
FULL_LOAD = 100.0
"""Percent of a core: the scale of the load reaches at least so far, or an idle server would look busy."""
_WORDS = {"connection_error": "refused", "timeout": "timeout", "unknown_error": "no answer"}


@dataclass(frozen=True, slots=True)
class State:
    """The state of a server in a word or two, its sign and their style."""

    sign: str
    text: str
    style: str
    rank: int
    """The worst first."""


def state_of(view: ServerView, stack: StackView) -> State:
    """How a server is."""
    signs = glyphs.current()
    server = view.server
    if view.failed:
        return State(signs.failed, _end(server.code), "bad", 0)
    if view.ended:
        return State(signs.stopped, "stopped", "muted", 5)
    if stack.record.state == "stopping":
        return State(signs.starting, "stopping", "warn", 2)
    if server.state != READY:
        step = server.phase if server.phase not in ("", READY) else server.state
        return State(signs.starting, _PHASES.get(step, step), "warn", 3)
    if view.sample is not None and view.sample.health != "success":
        return State(signs.warning, "silent", "warn", 1)
    return State(signs.up, "up", "good", 4)


def health_of(view: ServerView, now: float) -> tuple[str, str]:
    """What the last probe said, or how long a step of the start has taken; and its style."""
    sample, server = view.sample, view.server
    if view.ended:
        return glyphs.current().nothing, "muted"
    if server.state != READY:
        return (formatting.short_time(now - server.phase_since) if server.phase_since else "waiting"), "muted"
    if sample is None:
        return glyphs.current().ellipsis, "muted"
    if sample.health != "success":
        return _WORDS.get(sample.health, sample.health), "bad"
    latency = formatting.short_time(None if sample.latency_ms is None else sample.latency_ms / 1000).replace(" ms", "ms")
    slow = (sample.latency_ms or 0) >= SLOW_MILLISECONDS
    return f"{sample.http_status or ''} {latency}".strip(), "warn" if slow or (sample.http_status or 0) >= 500 else "plain"


def error_share(view: ServerView) -> float | None:
    """The share of the last minute's requests that failed; None when there were none."""
    return view.recent_errors / view.recent_requests if view.recent_requests and view.recent_errors is not None else None


def uptime(view: ServerView, stack: StackView, now: float) -> float | None:
    """Seconds since a server began to answer, or its stack began to start it."""
    if view.ended:
        return None
    return max(0.0, now - stack.record.started - (view.server.seconds or 0.0))


def port_of(url: str) -> str:
    """The port in an address."""
    port = url.rpartition(":")[2].rstrip("/")
    return port if port.isdigit() else ""


def heading_of(stack: StackView, now: float, shown_run: str) -> Cell:
    """A stack in one line: what it is called, how it is, where its head server is."""
    record = stack.record
    count = sum(not view.is_head for view in stack.servers)
    parts = [f"{count} server{'' if count == 1 else 's'}"]
    if stack.ended_at is None:
        ready = sum(view.server.state == READY for view in stack.servers if not view.is_head)
        parts.append(record.state if record.state != "starting" else f"starting, {ready} ready")
        parts += [f"head {_address(record.head_url)}", f"up {formatting.clock_time(now - record.started)}"]
    else:
        parts.append(f"ended {formatting.age(now - stack.ended_at)} ago")
    if shown_run:
        parts.append(f"serves {shown_run}")
    failed = any(view.failed for view in stack.servers)
    style = "bad" if failed else "strong" if stack.ended_at is None else "muted"
    return Cell(f"{stack.title}   {' · '.join(parts)}", style)


def columns_for(snapshot: Snapshot, *, narrow: bool) -> tuple[Column, ...]:
    """The columns, with room for the longest name as far as that is sensible: names often begin alike."""
    longest = max((cell_len(view.server.name) + 1 for stack in snapshot.stacks for view in stack.servers), default=0)
    name = COLUMNS[0]
    return replace(name, least=max(name.least, min(longest, _WIDEST_NAME[narrow]))), *COLUMNS[1:]


class StackRows:
    """All stacks with their servers, in the order `order` within each stack."""

    def __init__(
        self, snapshot: Snapshot, now: float, runs: dict[str, str], order: str = "configured", *, upside_down: bool = False
    ) -> None:
        self._now = now
        self._runs = runs
        self._lines: list[tuple[StackView, ServerView | None]] = []
        for stack in snapshot.stacks:
            self._lines.append((stack, None))
            self._lines += [(stack, view) for view in _ordered(stack, order, upside_down, now)]
        self._places = {self.key(index): index for index in range(len(self._lines))}

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, index: int) -> tuple[StackView, ServerView | None]:
        """The stack of a row, and its server; None in the heading."""
        return self._lines[index]

    def key(self, index: int) -> tuple[str, str]:
        stack, view = self._lines[index]
        return stack.record.id, view.server.name if view is not None else ""

    def index_of(self, key: Hashable) -> int | None:
        return self._places.get(key)  # type: ignore[call-overload]

    def row(self, index: int) -> Row:
        stack, view = self._lines[index]
        if view is None:
            return Row((), heading=heading_of(stack, self._now, self._runs.get(stack.record.id, "")))
        over = stack.ended_at is not None
        if view.failed:
            return Row(_name_and_state(stack, view), muted=over, rest=Cell(view.last_line or "its log is empty", "bad"))
        return Row(_cells(stack, view, self._now), muted=over)


def _name_and_state(stack: StackView, view: ServerView) -> tuple[Cell | str, ...]:
    state = state_of(view, stack)
    kind = KINDS.get(view.server.kind, view.server.kind)
    return Cell(view.server.name, "strong", indent=1), kind, Cell(f"{state.sign} {state.text}", state.style)


def _cells(stack: StackView, view: ServerView, now: float) -> tuple[Cell | str, ...]:
    nothing = glyphs.current().nothing
    sample, server = view.sample, view.server
    health, health_style = health_of(view, now)
    share = None if view.ended else error_share(view)
    load = "" if view.ended else sparkline(view.cpu, LOAD_WIDTH, glyphs.is_ascii(), least_top=FULL_LOAD)
    alive = sample is not None and sample.alive and not view.ended
    cpu = sample.cpu_percent if sample is not None and alive else None
    written = None if view.log_written is None else now - view.log_written
    return (
        *_name_and_state(stack, view),
        Cell(health, health_style),
        port_of(server.url) or nothing,
        str(server.pid) if server.pid and not view.ended else nothing,
        formatting.clock_time(uptime(view, stack, now)),
        nothing if cpu is None else f"{cpu:.0f}%",
        formatting.compact(sample.memory if sample is not None and alive else None),
        formatting.compact(sample.in_flight if sample is not None and alive else None),
        Cell(nothing if share is None else _percent(share), "bad" if share else "plain"),
        load,
        Cell(formatting.age(written), "muted"),
    )


def _ordered(stack: StackView, order: str, upside_down: bool, now: float) -> Sequence[ServerView]:
    """The servers of a stack, the head server always first."""
    heads = [view for view in stack.servers if view.is_head]
    others = [view for view in stack.servers if not view.is_head]

    def value(view: ServerView) -> float | str:
        sample = view.sample
        numbers: dict[str, float | None] = {
            "cpu": sample.cpu_percent if sample else None,
            "memory": sample.memory if sample else None,
            "busy": sample.in_flight if sample else None,
            "errors": error_share(view),
            "up": uptime(view, stack, now),
            "state": state_of(view, stack).rank,
            "pid": view.server.pid,
        }
        texts = {"name": view.server.name, "kind": view.server.kind, "port": port_of(view.server.url).rjust(5)}
        return texts[order] if order in texts else (numbers.get(order) or 0.0)

    if order != "configured":
        others.sort(key=lambda view: view.server.name)
        others.sort(key=value, reverse=(order in _DESCENDING) != upside_down)
    elif upside_down:
        others.reverse()
    return [*heads, *others]


def is_descending(order: str, *, upside_down: bool) -> bool:
    """Whether an order goes from large to small."""
    return (order in _DESCENDING) != upside_down


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.0995 else f"{100 * share:.1f}%"


def _end(code: int | None) -> str:
    if code is None:
        return "gone"
    if code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
    return f"exit {code}"


def _address(url: str) -> str:
    return url.removeprefix("http://").rstrip("/")
