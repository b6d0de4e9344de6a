"""The stacks of servers that run on this machine, as their commands note them in the state folder: finding them, and their folders.

`<state home>/stacks/<id>.json` is a stack's record, there only while its command runs; `<id>/` holds its log files and its events, and
outlives it. Another command that reads a record whose command is gone removes it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from backend.errors import GymError
from backend.io.files import write_atomically
from backend.io.homes import state_home, usable
from backend.io.json_codec import dumps_indented, loads
from backend.io.redact import Redactor
from backend.servers.process_identity import process_mark
from backend.servers.stack_record import StackRecord, StackServer

KEPT_FOLDERS = 20
_SAME_PROCESS_SECONDS = 2.0
"""How far two readings of a process's creation time may be apart: the system derives it from a boot time that it adjusts."""


def running_stacks() -> tuple[StackRecord, ...]:
    """The stacks of this machine whose command runs, the oldest first. Records of those that are gone are removed."""
    found = []
    for path in sorted(_folder().glob("*.json")):
        record = _read(path)
        if record is None or record.machine != os.uname().nodename:
            continue
        if is_running(record):
            found.append(record)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
    return tuple(sorted(found, key=lambda record: (record.started, record.id)))


def is_running(record: StackRecord) -> bool:
    """Whether the very process that wrote the record runs; another one that has its number since does not count.

    Creation times are compared only where there is nothing better: they change when somebody sets the clock.
    """
    mark = process_mark(record.pid) if record.mark else ""
    if mark:
        return mark == record.mark
    created = process_created(record.pid)
    return created is not None and abs(created - record.created) < _SAME_PROCESS_SECONDS


def process_created(pid: int) -> float | None:
    """Unix time at which a process began; None when there is none, or only its corpse."""
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except (psutil.Error, ValueError):
        return None


def write_record(record: StackRecord, redactor: Redactor) -> None:
    """Note the state of a stack, secrets masked, readable by its owner only. Raises `GymError` when that is not possible."""
    write_atomically(_record_path(record.id), dumps_indented(redactor.tree(asdict(record))), mode=0o600)


def remove_record(stack_id: str) -> None:
    """Forget a stack that has ended; its folder stays."""
    with contextlib.suppress(OSError):
        _record_path(stack_id).unlink()


def new_stack_folder(stack_id: str) -> Path | None:
    """The folder for the logs and events of a new stack; None where the state folder cannot be written.

    Folders of older stacks are removed, but for the newest 20 and those of stacks that run, on whichever machine that shares this home.
    """
    if usable(_folder()) is None:
        return None
    running_stacks()  # takes away the records of those that have ended here
    ended = sorted(path for path in _folder().iterdir() if path.is_dir() and not _record_path(path.name).exists())
    for path in ended[: max(0, len(ended) - KEPT_FOLDERS + 1)]:
        shutil.rmtree(path, ignore_errors=True)
    return usable(_folder() / stack_id)


def _folder() -> Path:
    return state_home("stacks")


def _record_path(stack_id: str) -> Path:
    return _folder() / f"{stack_id}.json"


def _read(path: Path) -> StackRecord | None:
    """The record in a file; None for what is none, or was written by another version."""
    try:
        value = loads(path.read_bytes())
        servers = tuple(_server(server) for server in value["servers"])
        known = _known(StackRecord, value)
        return StackRecord(**{**known, "command": tuple(value["command"]), "servers": servers})
    except (OSError, ValueError, TypeError, KeyError, AttributeError, GymError):
        return None


def _server(value: Mapping[str, Any]) -> StackServer:
    return StackServer(**{**_known(StackServer, value), "uses": tuple(value.get("uses") or ())})


def _known(record_class: type[StackRecord] | type[StackServer], value: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(record_class)}
    return {name: value[name] for name in names if name in value}
