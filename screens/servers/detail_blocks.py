"""The detail pane's text: what is known of one server, or of one stack, as blocks."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from screens.servers.board import ServerView, StackView
from screens.servers.stack_rows import FULL_LOAD, KINDS, error_share, state_of, uptime
from screens.servers.startup import READY
from screens.widgets import formatting, glyphs
from screens.widgets.plots import sparkline
from screens.widgets.text_blocks import TextBlock
from screens.widgets.text_tables import table

_SERIES_WIDTH = 20
CALLS = "calls"
"""First part of the keys of blocks that lead to another server; the second one is its name."""


def server_blocks(view: ServerView, stack: StackView, now: float, shown_path: Callable[[Path], str]) -> list[TextBlock]:
    """What is known of a server."""
    blocks = []
    if view.failed:
        text = view.last_line or "Its log is empty."
        blocks.append(TextBlock("end", text, f"{glyphs.current().failed} {state_of(view, stack).text}", "last line", "error"))
    steps = list(_steps(view, stack.ended_at or now))
    start = [TextBlock("start", table(steps, frozenset({1})), "Start")] if steps else []
    starts = view.server.state != READY and not view.ended
    blocks += [*(start if starts else ()), _facts(view, stack, now)]
    if view.probes and not view.ended:
        blocks.append(_health(view))
    if view.sample is not None and view.sample.alive and not view.ended:
        blocks.append(_load(view))
    return [*blocks, *_callers(view), *(() if starts else start), _files(view, shown_path)]


def stack_blocks(stack: StackView, shown_path: Callable[[Path], str]) -> list[TextBlock]:
    """What is known of a stack."""
    record = stack.record
    blocks = []
    if stack.error:
        blocks.append(TextBlock("end", stack.error, f"{glyphs.current().failed} Why it ended", kind="error"))
    rows = [
        ["id", record.id],
        ["head", record.head_url],
        ["process", str(record.pid)],
        ["started", _moment(record.started)],
        ["folder", record.folder],
        ["run", shown_path(Path(record.run)) if record.run else ""],
        ["events", shown_path(Path(record.events)) if record.events else ""],
    ]
    blocks.append(TextBlock("stack", table([row for row in rows if row[1]]), "Stack"))
    links = [f"{view.server.name} {_joined(view.server.uses)}" for view in stack.servers if view.server.uses]
    if links:
        blocks.append(TextBlock("links", "\n".join(links), "Who calls whom"))
    starts = [[view.server.name, formatting.short_time(view.server.seconds)] for view in stack.servers]
    blocks.append(TextBlock("ready", table(starts, frozenset({1})), "Ready after"))
    if record.command:
        blocks.append(TextBlock("command", shlex.join(record.command), "Command", "Y copies it"))
    return blocks


def _facts(view: ServerView, stack: StackView, now: float) -> TextBlock:
    server = view.server
    state = state_of(view, stack)
    rows = [
        ["url", server.url],
        ["state", f"{state.sign} {state.text}"],
        ["type", " ".join(filter(None, (KINDS.get(server.kind, server.kind), server.implementation)))],
        ["process", str(server.pid) if server.pid else ""],
        ["workers", str(server.workers) if server.workers > 1 else ""],
        ["up", formatting.clock_time(uptime(view, stack, now)) if not view.ended else ""],
        ["started", _moment(stack.record.started)],
    ]
    return TextBlock("facts", table([row for row in rows if row[1]]), "Server")


def _files(view: ServerView, shown_path: Callable[[Path], str]) -> TextBlock:
    """Where its code, its Python and its log are; each below its name, because paths are long."""
    server = view.server
    rows = [
        ("folder", shown_path(Path(server.folder)) if server.folder else ""),
        ("python", shown_path(Path(server.environment)) if server.environment else "the program's own"),
        ("log", shown_path(Path(server.log)) if server.log else "none"),
    ]
    return TextBlock("files", "\n".join(f"{name}\n  {text}" for name, text in rows if text), "Files")


def _health(view: ServerView) -> TextBlock:
    signs = glyphs.current()
    marks = "".join(signs.good if probe.good else signs.failed for probe in view.probes)
    p50, p95 = (formatting.short_time(None if value is None else value / 1000) for value in (view.p50, view.p95))
    lines = [marks, f"p50 {p50}   p95 {p95}"]
    if view.sample is not None and view.sample.error:
        lines.append(view.sample.error)
    return TextBlock("health", "\n".join(lines), "Health", f"last {len(view.probes)} probes")


def _load(view: ServerView) -> TextBlock:
    sample = view.sample
    assert sample is not None
    cpu = glyphs.current().nothing if sample.cpu_percent is None else f"{sample.cpu_percent:.0f}%"
    rows = [
        ["cpu", _series(view.cpu, FULL_LOAD), cpu],
        ["rss", _growth(view.memory), formatting.compact(sample.memory)],
        ["busy", _series(view.in_flight), formatting.compact(sample.in_flight)],
    ]
    lines = [table(rows)]
    if sample.requests is not None:
        lines.append(f"{formatting.count(sample.requests)} requests, {formatting.count(sample.errors)} failed")
        share = error_share(view)
        if share is not None:
            lines.append(f"last minute {formatting.count(view.recent_requests)}, {100 * share:.1f} % failed")
    return TextBlock("load", "\n".join(lines), "Load", "last minute")


def _series(values: Sequence[float | None], least_top: float = 0.0) -> str:
    return sparkline(values, _SERIES_WIDTH, glyphs.is_ascii(), least_top=least_top).rjust(_SERIES_WIDTH)


def _growth(values: Sequence[float | None]) -> str:
    """What is above the least value: the scale is a tenth of that, or growth would not be seen on top of a large number."""
    least = min((value for value in values if value is not None), default=0.0)
    return _series([None if value is None else value - least for value in values], least / 10)


def _steps(view: ServerView, now: float) -> Iterator[list[str]]:
    """The steps of the start with their times; the one in which the server ended is marked, and its time stands still."""
    signs = glyphs.current()
    last = signs.starting if not view.ended else signs.failed if view.failed else signs.stopped
    for step in view.steps:
        if step.name == READY:
            yield [f"{signs.good} {READY}", formatting.short_time(step.began - view.steps[0].began)]
        else:
            seconds = now - step.began if step.seconds is None else step.seconds
            yield [f"{last if step is view.steps[-1] else signs.good} {step.name}", formatting.short_time(seconds)]


def _callers(view: ServerView) -> Iterator[TextBlock]:
    """Links to the servers that this one calls, and that call it."""
    arrow = glyphs.current().arrow
    for name in view.server.uses:
        yield TextBlock((CALLS, name, "to"), head=f"calls {arrow} {name}", kind="tool")
    for name in view.used_by:
        yield TextBlock((CALLS, name, "from"), head=f"called by {arrow} {name}", kind="tool")


def _joined(names: Sequence[str]) -> str:
    return f"{glyphs.current().arrow} {', '.join(names)}"


def _moment(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (ValueError, OverflowError, OSError):  # a number that is no time
        return str(seconds)
