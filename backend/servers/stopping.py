"""The operation behind `gym env stop`: finds stacks by what people call them, and ends them in order."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from backend.errors import GymError, closest
from backend.events import Event
from backend.servers.stack_record import StackRecord
from backend.servers.stacks import is_running, remove_record, running_stacks

STOP_SECONDS = 12.0
"""A run that collects lets its rollouts in flight finish for 5 s, and its servers have 3 s after that."""
_KILL_SECONDS = 3.0
_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class StackStopped(Event):
    """A stack is gone, `seconds` after it was asked to end; `killed` when it did not end by itself."""

    type: ClassVar[str] = "stack.stopped"
    id: str
    name: str
    pid: int
    servers: tuple[str, ...]
    seconds: float
    killed: bool


def choose_stacks(wanted: str | None, *, every: bool = False) -> tuple[StackRecord, ...]:
    """The running stacks that are meant: all, or the one with this name, id, head port, or instance; without a word the only one.

    Raises `GymError` when there is none, or more than one.
    """
    running = running_stacks()
    if every:
        return running
    if not running:
        raise GymError("no stack of servers is running on this machine, as far as is known here")
    if wanted is None:
        return (_the_only(running, "several stacks are running"),)
    for names in (_own_names, _server_names):
        found = [record for record in running if wanted in names(record)]
        if found:
            return (_the_only(found, f"several stacks are called `{wanted}`, or have a server of that name"),)
    near = closest(wanted, [name for record in running for name in (*_own_names(record), *_server_names(record))])
    raise GymError(
        f"no running stack is called `{wanted}`, and none has such a head port or server",
        details=_listed(running),
        hint=f"Did you mean `{near}`?" if near else None,
    )


def stop_stacks(records: Sequence[StackRecord]) -> Iterator[StackStopped]:
    """Interrupt the commands of all stacks at once, as Ctrl-C would, and tell of each when it is gone.

    One that takes longer than 12 s is killed; its servers go with it. A process is signalled only while it is the one that wrote
    the record. Raises `GymError` for a stack that belongs to somebody else, or does not go away.
    """
    began = time.monotonic()
    for record in records:
        _signal(record, signal.SIGINT)
    waiting = list(records)
    killed: set[str] = set()
    while waiting:
        seconds = time.monotonic() - began
        for record in [record for record in waiting if not is_running(record)]:
            waiting.remove(record)
            remove_record(record.id)
            servers = tuple(server.name for server in record.servers)
            yield StackStopped(record.id, record.name, record.pid, servers, seconds, record.id in killed)
        if seconds > STOP_SECONDS + _KILL_SECONDS and waiting:
            raise GymError("some stacks do not end", details=_listed(waiting))
        if seconds > STOP_SECONDS:
            for record in waiting:
                killed.add(record.id)
                _signal(record, signal.SIGKILL)
        if waiting:
            time.sleep(_LOOK_SECONDS)


def _signal(record: StackRecord, number: signal.Signals) -> None:
    if not is_running(record):
        return
    try:
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, number)
    except PermissionError:
        raise GymError(f"the stack `{record.name}` belongs to another user (process {record.pid})") from None


def _the_only(found: Sequence[StackRecord], message: str) -> StackRecord:
    if len(found) > 1:
        raise GymError(message, details=_listed(found), hint="name one by its id, or stop all with `gym env stop --all`")
    return found[0]


def _own_names(record: StackRecord) -> tuple[str, ...]:
    return (record.id, record.name, record.head_url.rpartition(":")[2])


def _server_names(record: StackRecord) -> tuple[str, ...]:
    return tuple(server.name for server in record.servers)


def _listed(records: Sequence[StackRecord]) -> list[str]:
    return [
        f"  {record.id}  {record.name}  head server at {record.head_url}, process {record.pid}"
        + (", serves a run" if record.run else "")
        for record in records
    ]
