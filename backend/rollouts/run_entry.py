"""One run as a list shows it, read from its record and the end of its event file."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backend.errors import GymError
from backend.io.json_codec import loads
from backend.io.redact import MASK
from backend.io.result_paths import ResultPaths
from backend.metrics.descriptive import as_number
from backend.metrics.headline import FRACTION, PERCENT, RAW
from backend.rollouts.run_record import RunRecord, is_alive, paths_of_run_folder, read_run_record, resumed

RUNNING, DONE, STOPPED, FAILED, DIED, NO_RECORD = STATES = ("running", "done", "stopped", "failed", "died", "no record")
"""A run that `died` was killed before it could write how it ended. Results without a run folder have no record."""

_TAIL_BYTES = 1 << 16
_SMALL_METRICS_BYTES = 4 << 20
_KEY_METRICS = re.compile(rb'"key_metrics"\s*:\s*(\{[^{}]*\})')
_AGENT_NAME = re.compile(rb'"agent_ref"\s*:\s*\{[^{}]*?"name"\s*:\s*"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Headline:
    """The score to read first."""

    name: str
    value: float
    scale: str
    """`0-1`, `0-100` or `raw`."""
    low: float | None = None
    high: float | None = None
    """95 % interval, on `scale`, where it is known."""
    final: bool = True
    """False while the run goes on, or when it ended before its summary."""

    @property
    def fraction(self) -> float:
        """The value on the scale from 0 to 1; raw rewards as they are."""
        return self.value / 100 if self.scale == PERCENT else self.value


@dataclass(frozen=True, slots=True)
class RunEntry:
    """What a list shows of a run; None is what is not known. Times are seconds since the epoch."""

    paths: ResultPaths
    name: str
    """The rollouts file without its suffix, relative to the folder that was searched."""
    state: str
    """One of `STATES`."""
    benchmark: str | None = None
    model: str | None = None
    agents: tuple[str, ...] = ()
    headline: Headline | None = None
    scored: int | None = None
    failed: int | None = None
    missing: int | None = None
    planned: int | None = None
    started_at: float | None = None
    ended_at: float | None = None
    last_sign: float | None = None
    """When the run wrote last."""
    silent_for: float | None = None
    """Seconds since then, for a run that is said to be running on another host: nobody here can tell whether it lives."""
    command: tuple[str, ...] = ()
    cwd: str | None = None
    sessions: int = 1
    """How often the run was begun or resumed."""
    error: str | None = None
    host: str | None = None
    pid: int | None = None
    resume_command: tuple[str, ...] | None = None
    """Continues the run from `cwd`; None when there is nothing to continue, or nothing to continue from."""
    resume_needs_secret: bool = False
    """The recorded command has a masked key in it that has to be put in again."""
    problem: str | None = None
    """Why the record could not be read."""

    @property
    def resumable(self) -> bool:
        return self.resume_command is not None

    @property
    def when(self) -> float | None:
        """The time a list is sorted by: the start, else the last sign."""
        return self.started_at if self.started_at is not None else self.last_sign


@dataclass(slots=True)
class _Tail:
    """What the end of an event file tells."""

    scored: int | None = None
    failed: int | None = None
    missing: int | None = None
    planned: int | None = None
    headline: Headline | None = None


def read_entry(folder: Path, name: str, now: float | None = None) -> RunEntry:
    """The entry of the run with this run folder. A record that cannot be read is told in `problem`, never raised."""
    try:
        record = read_run_record(folder / "run.json")
    except GymError as error:
        paths = paths_of_run_folder(folder)
        tail = _read_tail(paths.events)
        return RunEntry(
            paths, name, NO_RECORD, headline=tail.headline, scored=tail.scored, failed=tail.failed, missing=tail.missing,
            planned=tail.planned, last_sign=_modified(paths.events), problem=error.message,
        )  # fmt: skip
    paths = paths_of_run_folder(folder, record)
    tail = _read_tail(paths.events)
    state = record.state if record.state in STATES else NO_RECORD
    scored, failed, missing = record.scored, record.failed, record.missing
    if scored is None and failed is None:
        scored, failed, missing = tail.scored, tail.failed, tail.missing
    planned = record.planned if record.planned is not None else tail.planned
    if missing is None and None not in (planned, scored, failed):
        missing = max(0, planned - scored - failed)  # type: ignore[operator]
    entry = RunEntry(
        paths=paths,
        name=name,
        state=state,
        benchmark=record.benchmark,
        model=record.model,
        agents=tuple(record.agents),
        headline=tail.headline,
        scored=scored,
        failed=failed,
        missing=missing,
        planned=planned,
        started_at=record.started_at,
        ended_at=record.ended_at,
        last_sign=record.ended_at or _modified(paths.events) or _modified(paths.run_record),
        command=record.command,
        cwd=record.cwd,
        sessions=record.sessions,
        error=record.error,
        host=record.host,
        pid=record.pid,
        problem=None if state == record.state else f"the run record has no known state: {record.state}",
    )
    return _at_this_moment(entry, record, now)


def _at_this_moment(entry: RunEntry, record: RunRecord, now: float | None) -> RunEntry:
    """`entry` with its state as it is at this moment: a run that says `running` may have died."""
    silent = None
    state = entry.state
    if record.state == RUNNING:
        alive = is_alive(record, entry.paths.lock)
        state = DIED if alive is False else RUNNING
        if alive is None and entry.last_sign is not None:
            silent = max(0.0, (time.time() if now is None else now) - entry.last_sign)
    command = _resume_command(entry, state)
    return replace(
        entry,
        state=state,
        silent_for=silent,
        resume_command=command,
        resume_needs_secret=command is not None and any(MASK in word for word in command),
    )


def read_run(paths: ResultPaths, now: float | None = None) -> RunEntry:
    """The entry of one run that is known, named by its stem."""
    if paths.run_folder.is_dir():
        return read_entry(paths.run_folder, paths.rollouts.stem, now)
    return read_entry_without_record(paths, paths.rollouts.stem)


def read_entry_without_record(paths: ResultPaths, name: str) -> RunEntry:
    """The entry of results that have no run folder: the reference's, or those of another machine."""
    metrics, agents = _read_aggregate(paths.aggregate_metrics)
    written = _modified(paths.aggregate_metrics)
    return RunEntry(
        paths, name, NO_RECORD, agents=agents, headline=_headline_of_metrics(metrics), ended_at=written, last_sign=written
    )


def _resume_command(entry: RunEntry, state: str) -> tuple[str, ...] | None:
    left = bool(entry.missing or entry.failed) or entry.missing is None
    if state not in (DONE, STOPPED, FAILED, DIED) or not left or ("eval", "run") not in itertools.pairwise(entry.command):
        return None
    if not entry.paths.materialized_inputs.exists():
        return None
    return resumed(entry.command)


def _read_tail(path: Path) -> _Tail:
    """Reads the events from the last one back, until counts and score are known or the session's beginning is reached."""
    tail = _Tail()
    finished, failed = 0, 0
    for event in events_backwards(path):
        kind = event.get("type")
        if kind == "run.summary":
            tail.scored, tail.failed, tail.missing = (_count(event, key) for key in ("scored", "failed", "missing"))
            tail.planned = _count(event, "total")
            tail.headline = _headline_of_summary(event)
            return tail
        if kind == "collection.ended" and tail.scored is None:
            tail.scored, tail.failed, tail.missing = (_count(event, key) for key in ("scored", "failed", "missing"))
        elif kind == "rollout.finished":
            finished += 1
            failed += event.get("failure") is not None
        elif kind == "collection.progress":
            _add_progress(tail, event, finished, failed)
            return tail
        elif kind == "collection.started":
            tail.planned = _count(event, "total")
            if tail.scored is None:
                tail.scored = finished - failed + (_count(event, "scored_before") or 0)
                tail.failed = failed + (_count(event, "failed_before") or 0)
            return tail
        elif kind == "run.planned":
            tail.planned = _count(event, "rollouts")
            return tail
    return tail


def _add_progress(tail: _Tail, event: Mapping[str, Any], finished: int, failed: int) -> None:
    counted, failed_until = _count(event, "finished"), _count(event, "failed") or 0
    tail.planned = _count(event, "total")
    if tail.scored is None and counted is not None:
        tail.scored = counted - failed_until + finished - failed
        tail.failed = failed_until + failed
    tail.headline = _headline_of_progress(event)


def events_backwards(path: Path) -> Iterator[dict[str, Any]]:
    """The events in the last 64 KB of a file, newest first; nothing from a file that cannot be read."""
    try:
        with open(path, "rb") as file:
            begin = max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES)
            file.seek(begin)
            lines = file.read().split(b"\n")
    except OSError:
        return
    for line in reversed(lines[1:] if begin else lines):
        try:
            value = loads(line) if line else None
        except ValueError:  # a torn line
            continue
        if isinstance(value, dict):
            yield value


def _headline_of_summary(event: Mapping[str, Any]) -> Headline | None:
    scores = event.get("scores")
    for row in scores if isinstance(scores, list) else ():
        value = as_number(row.get("value")) if isinstance(row, dict) else None
        if value is not None:
            interval = row.get("interval")
            bounds = interval if isinstance(interval, dict) else {}
            return Headline(
                str(row.get("name")), value, str(row.get("scale")), as_number(bounds.get("low")), as_number(bounds.get("high"))
            )
    return None


def _headline_of_progress(event: Mapping[str, Any]) -> Headline | None:
    averages, counts = event.get("averages"), event.get("counts")
    if not isinstance(averages, dict) or not isinstance(counts, dict):
        return None
    total, weight = 0.0, 0
    for agent, fields in averages.items():
        reward = as_number(fields.get("reward")) if isinstance(fields, dict) else None
        count = _count(counts, agent)
        if reward is not None and count:
            total += reward * count
            weight += count
    return _reward_headline("reward/mean", total / weight, final=False) if weight else None


def _headline_of_metrics(metrics: Mapping[str, Any]) -> Headline | None:
    reward = as_number(metrics.get("mean/reward"))
    if reward is not None:
        return _reward_headline("mean/reward", reward)
    for name, value in metrics.items():
        number = as_number(value)
        if number is not None:
            return Headline(name, number, PERCENT if name.startswith(("pass@", "majority@")) else RAW)
    return None


def _reward_headline(name: str, reward: float, *, final: bool = True) -> Headline:
    return Headline(name, reward, FRACTION if 0 <= reward <= 1 else RAW, final=final)


def _read_aggregate(path: Path) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Key metrics of the first agent, and the agents' names. A big file lists every task: only its two ends are read then."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            if size <= _SMALL_METRICS_BYTES:
                return _metrics_of_entries(loads(file.read()))
            head = file.read(_TAIL_BYTES)
            file.seek(size - _TAIL_BYTES)
            end = file.read()
        names = tuple(loads(b'"' + match[1] + b'"') for match in itertools.islice(_AGENT_NAME.finditer(head), 1))
        found = _KEY_METRICS.findall(end)
        return (loads(found[-1]) if found else {}), names
    except (OSError, ValueError):
        return {}, ()


def _metrics_of_entries(entries: Any) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    known = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    refs = [entry.get("agent_ref") for entry in known]
    names = tuple(str(ref.get("name")) for ref in refs if isinstance(ref, dict))
    metrics: Mapping[str, Any] = next((entry["key_metrics"] for entry in known if isinstance(entry.get("key_metrics"), dict)), {})
    return metrics, names


def _modified(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _count(event: Mapping[str, Any], key: str) -> int | None:
    value = event.get(key)
    return value if type(value) is int and value >= 0 else None
