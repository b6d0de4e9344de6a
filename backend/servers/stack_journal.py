"""What a running stack notes about itself: its record, which other commands find, and its events in a file.

Noting is a courtesy to others: where the state folder cannot be written, the stack runs all the same and is not found.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backend.config.resolution import ResolvedConfig, ServerInstance
from backend.config.schema import RESOURCES
from backend.errors import GymError
from backend.events import Event
from backend.io.event_log import EventLog
from backend.io.redact import Redactor, mask_command
from backend.servers.environments.environment import EnvironmentPreparing, EnvironmentReady
from backend.servers.process_identity import boot_clock, process_mark
from backend.servers.server_events import ServerEnded, ServerPhase, ServerReady, ServerStarted, StackReady
from backend.servers.stack_record import StackRecord, StackServer
from backend.servers.stacks import new_stack_folder, process_created, remove_record, write_record

EVENTS_FILE = "events.ndjson"
_WORKLOAD_FOLDERS = ("benchmarks", "environments")


@dataclass(frozen=True, slots=True)
class StackOwner:
    """Who starts a stack: the command as typed, and the folder of the run that the stack serves, if it serves one."""

    command: tuple[str, ...] = ()
    run: Path | None = None


class StackJournal:
    """The record and the event file of one stack, for as long as it runs. `folder` is None where nothing can be noted."""

    def __init__(self, resolved: ResolvedConfig, owner: StackOwner) -> None:
        self.id = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        self.name = stack_name(resolved)
        self.folder = new_stack_folder(self.id)
        self._owner = owner
        self._redactor: Redactor = resolved.redactor
        self._begun = False
        self._record: StackRecord | None = None
        self._log: EventLog | None = None
        if self.folder is not None:
            with self._stopping_where_it_fails():
                self._log = EventLog(self.folder / EVENTS_FILE, self._redactor)

    def begin(self, head_url: str, servers: Sequence[StackServer]) -> None:
        """Write the record for the first time."""
        self._begun = True
        if self.folder is None:
            return
        with self._stopping_where_it_fails():
            self._write(
                StackRecord(
                    id=self.id,
                    pid=os.getpid(),
                    created=process_created(os.getpid()) or 0.0,
                    started=time.time(),
                    command=tuple(mask_command(self._owner.command, self._redactor)),
                    folder=os.getcwd(),
                    head_url=head_url,
                    state="starting",
                    events=str(self.folder / EVENTS_FILE),
                    servers=tuple(servers),
                    run=str(self._owner.run or ""),
                    name=self.name,
                    machine=os.uname().nodename,
                    mark=process_mark(os.getpid()),
                    began=boot_clock(),
                )
            )

    def note(self, event: Event) -> None:
        """Append an event, and bring the record up to date with it."""
        with self._stopping_where_it_fails():
            if self._log is not None:
                self._log.append(event)
            if self._record is not None:
                self._write(record_after(self._record, event, time.time()))

    def stopping(self) -> None:
        """Note that the servers are being stopped."""
        with self._stopping_where_it_fails():
            if self._record is not None:
                self._write(replace(self._record, state="stopping"))

    def close(self) -> None:
        """Remove the record; the folder with events and logs stays, unless nothing was begun. Safe to call twice."""
        if self._log is not None:
            self._log.close()
        self._log = self._record = None
        remove_record(self.id)
        if self.folder is not None and not self._begun:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self, record: StackRecord) -> None:
        if record != self._record:
            write_record(record, self._redactor)
            self._record = record

    @contextlib.contextmanager
    def _stopping_where_it_fails(self) -> Iterator[None]:
        try:
            yield
        except (GymError, OSError):
            if self._log is not None:
                self._log.close()
            self._log = self._record = None


def record_after(record: StackRecord, event: Event, now: float) -> StackRecord:
    """The record of a stack after one of its events."""
    if isinstance(event, StackReady):
        return replace(record, state="ready")
    change = _change(event, now)
    if change is None:
        return record
    concerned, fields = change
    servers = tuple(replace(server, **fields(server)) if server.name in concerned else server for server in record.servers)
    return replace(record, servers=servers)


def _change(event: Event, now: float) -> tuple[tuple[str, ...], Callable[[StackServer], Mapping[str, Any]]] | None:
    """Which servers an event is about, and what it changes in their entries."""
    if isinstance(event, EnvironmentPreparing):
        return event.servers, lambda _: {"state": "preparing", "phase": "preparing", "phase_since": now}
    if isinstance(event, EnvironmentReady):
        return event.servers, lambda _: {"state": "starting", "phase": "", "phase_since": now, "environment": event.folder}
    if isinstance(event, ServerStarted):
        return (event.name,), lambda _: {"state": "starting", "phase": "importing", "phase_since": now, "pid": event.pid}
    if isinstance(event, ServerPhase):
        return (event.name,), lambda server: {} if server.state == "ready" else {"phase": event.phase, "phase_since": now}
    if isinstance(event, ServerReady):
        return (event.name,), lambda _: {"state": "ready", "phase": "ready", "phase_since": now, "seconds": event.seconds}
    if isinstance(event, ServerEnded):
        return (event.name,), lambda _: {"state": "ended", "phase": "", "phase_since": now, "code": event.code}
    return None


def stack_name(resolved: ResolvedConfig) -> str:
    """What people call a stack: its first benchmark or environment, else its first resources server, else its first server."""
    for path in resolved.tree.get("config_paths") or ():
        parts = Path(str(path)).parts
        for folder, name in itertools.pairwise(parts[:-1]):
            if folder in _WORKLOAD_FOLDERS:
                return name
    resources = [server.name for server in resolved.servers if server.kind == RESOURCES]
    return next(iter([*resources, *(server.name for server in resolved.servers)]), "")


def used_servers(instance: ServerInstance, names: Sequence[str]) -> tuple[str, ...]:
    """The servers among `names` to which the configuration of an instance refers, as `{type: …, name: …}`."""
    found = dict.fromkeys(_references(instance.block))
    return tuple(name for name in found if name in names and name != instance.name)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if "type" in value and isinstance(value.get("name"), str):
            yield value["name"]
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _references(item)
