"""The folder that tells a run's own story: its record, its events, its logs, and the lock against a second writer."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from backend.errors import GymError, Place
from backend.events import Event
from backend.io.event_log import EventLog
from backend.io.files import make_folder, write_atomically
from backend.io.json_codec import dumps_indented, loads
from backend.io.redact import Redactor
from backend.io.result_paths import ResultPaths
from backend.package_info import GYM_TUI_VERSION, __version__

_CHUNK = 1 << 20


class RunFolder:
    """A run's folder, locked by this process from construction until `close`.

    Nothing of an earlier run is touched before `begin`; events said earlier are kept and written then.
    """

    def __init__(self, paths: ResultPaths, command: Sequence[str], events_copy: Path | None = None) -> None:
        self.paths = paths
        self._command = list(command)
        self._waiting: list[tuple[float, Event]] = []
        self._log: EventLog | None = None
        self._copy = EventLog(events_copy) if events_copy is not None else None
        self._record: dict[str, Any] = {}
        self._redactor = Redactor()
        make_folder(paths.folder)
        make_folder(paths.run_folder)
        self._lock = self._take_lock()

    def said(self, event: Event) -> Event:
        """Record an event, and give it back."""
        now = time.time()
        if self._copy is not None:
            self._copy.append(event, now)
        if self._log is None:
            self._waiting.append((now, event))
        else:
            self._log.append(event, now)
        return event

    def begin(self, config: Mapping[str, Any], redactor: Redactor, facts: Mapping[str, Any]) -> None:
        """Replace what an earlier run left here by this run's record and events; secrets are masked."""
        self._redactor = redactor
        self.paths.events.unlink(missing_ok=True)
        self._record = {
            "state": "running",
            "command": [redactor.text(word) for word in self._command],
            "cwd": str(Path.cwd()),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "started_at": time.time(),
            "ended_at": None,
            "versions": {
                "gym_tui": GYM_TUI_VERSION,
                "nemo_gym": __version__,
                "python": platform.python_version(),
                "platform": sys.platform,
            },
            **facts,
            "config": redactor.tree(config),
        }
        self._write_record()
        self._log = EventLog(self.paths.events)
        for at, event in self._waiting:
            self._log.append(event, at)
        self._waiting.clear()

    def end(self, state: str, facts: Mapping[str, Any]) -> None:
        """Write how the run ended: `done`, `stopped` or `failed`. Does nothing for a run that never began."""
        if self._record:
            self._record.update({"state": state, "ended_at": time.time(), **facts})
            self._write_record()

    def close(self) -> None:
        """Close the files and give the lock back; safe to call twice."""
        for log in (self._log, self._copy):
            if log is not None:
                log.close()
        self._log = self._copy = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _write_record(self) -> None:
        write_atomically(self.paths.run_record, dumps_indented(self._redactor.tree(self._record)) + b"\n")

    def _take_lock(self) -> int:
        path = self.paths.run_folder / "lock"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise GymError(f"cannot write {path}: {error.strerror}", place=Place(str(path))) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = _text(os.read(descriptor, 200))
            os.close(descriptor)
            raise GymError(
                f"another run is writing {self.paths.rollouts}" + (f" ({holder})" if holder else ""),
                hint="wait for it, or choose another --output",
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())
        return descriptor


def read_run_record(folder: Path) -> dict[str, Any]:
    """The record of a run folder. Raises `GymError` when there is none or it cannot be read."""
    path = folder / "run.json"
    try:
        record = loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise GymError(f"cannot read the run record {path}: {error}", place=Place(str(path))) from error
    if not isinstance(record, dict):
        raise GymError(f"the run record {path} is not an object", place=Place(str(path)))
    return record


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_CHUNK):
            digest.update(block)
    return digest.hexdigest()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").strip()
