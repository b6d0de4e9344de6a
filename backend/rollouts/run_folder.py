"""The folder that tells a run's own story: its record, its events, its logs, and the lock against a second writer."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import platform
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from backend.errors import GymError, Place, UsageError
from backend.events import Event
from backend.io.event_log import EventLog
from backend.io.files import make_folder, write_atomically
from backend.io.json_codec import dumps_indented, loads
from backend.io.redact import Redactor
from backend.io.result_paths import ResultPaths
from backend.package_info import GYM_TUI_VERSION, __version__
from backend.rollouts.run_events import RunEnded

_CHUNK = 1 << 20


class RunFolder:
    """A run's folder, locked by this process from construction until `close`.

    Nothing of an earlier run is touched before `begin`; events said before it, or before `announce`, are kept and written then.
    """

    def __init__(self, paths: ResultPaths, command: Sequence[str], redactor: Redactor, events_copy: Path | None = None) -> None:
        self.paths = paths
        self._command = list(command)
        self._redactor = redactor
        self._waiting: list[tuple[float, Event]] = []
        self._log: EventLog | None = None
        self._copy: EventLog | None = None
        self._record: dict[str, Any] = {}
        self._ending: RunEnded | None = None
        self._announced = False
        results = (paths.rollouts, paths.failures, paths.materialized_inputs, paths.aggregate_metrics)
        own = (*results, paths.events, paths.run_record, paths.control, paths.lock)
        if events_copy is not None and events_copy.resolve() in [path.resolve() for path in own]:
            raise UsageError(f"--events {events_copy} is a file that the run itself writes", hint="choose another file")
        make_folder(paths.folder)
        make_folder(paths.run_folder)
        self._lock = self._take_lock()
        try:
            self._copy = EventLog(events_copy, redactor) if events_copy is not None else None
        except GymError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if error is not None:
            stopped = isinstance(error, asyncio.CancelledError | GeneratorExit)
            text = error.message if isinstance(error, GymError) else repr(error)
            self.end("stopped" if stopped else "failed", {"error": None if stopped else text})
        else:
            self.end("done", {})
        self.close()

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

    def earlier_record(self) -> dict[str, Any]:
        """The record that an earlier run left here; empty when there is none that can be read."""
        try:
            record = loads(self.paths.run_record.read_bytes())
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def announce(self, config: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Let others see the run while its servers start. Where an earlier run has results, they stay as they are until `begin`."""
        if not self.paths.rollouts.exists():
            self._announced = True
            self._open(config, facts, earlier=[], keep_events=False)

    def begin(self, config: Mapping[str, Any], facts: Mapping[str, Any], *, resumed: bool = False) -> None:
        """Replace what an earlier run left here by this run's record and events; secrets are masked.

        A resumed run keeps the events, and a list of the sessions before it as `earlier` in its record.
        """
        if self._announced:
            self._record.update({**facts, "config": config})
            self._write_record()
        else:
            self._open(config, facts, _sessions(self.earlier_record()) if resumed else [], keep_events=resumed)

    def _open(self, config: Mapping[str, Any], facts: Mapping[str, Any], earlier: list[Any], *, keep_events: bool) -> None:
        if not keep_events:
            self.paths.events.unlink(missing_ok=True)
        self._record = {
            "state": "running",
            "command": self._command,
            "cwd": str(Path.cwd()),
            "output": str(self.paths.rollouts),
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
            **({"earlier": earlier} if earlier else {}),
            **facts,
            "config": config,
        }
        self._write_record()
        self._log = EventLog(self.paths.events, self._redactor, resumed=keep_events)
        for at, event in self._waiting:
            self._log.append(event, at)
        self._waiting.clear()

    def end(self, state: str, facts: Mapping[str, Any]) -> None:
        """Write how the run ended: `done`, `stopped` or `failed`; what comes after that changes nothing. `close` says it as an event.

        The record of an earlier run stays what it is when this one never began.
        """
        if self._ending is not None:
            return
        self._ending = RunEnded(state, facts.get("error"))
        if self._record:
            self._record.update({"state": state, "ended_at": time.time(), **facts})
            self._write_record()

    def close(self) -> None:
        """Close the files and give the lock back; safe to call twice."""
        if self._ending is not None and (self._log is not None or self._copy is not None):
            with contextlib.suppress(GymError):  # a full disk must not keep the lock
                self.said(self._ending)
        for log in (self._log, self._copy):
            if log is not None:
                log.close()
        self._log = self._copy = None
        if self._lock >= 0:
            if not self._record and not self._knows_an_earlier_run():
                self._lock_path.unlink(missing_ok=True)
                with contextlib.suppress(OSError):  # logs of servers that could not start stay
                    self.paths.run_folder.rmdir()
            os.close(self._lock)
            self._lock = -1

    def _write_record(self) -> None:
        write_atomically(self.paths.run_record, dumps_indented(self._redactor.tree(self._record)) + b"\n")

    @property
    def _lock_path(self) -> Path:
        return self.paths.lock

    def _knows_an_earlier_run(self) -> bool:
        return self.paths.run_record.exists() or self.paths.events.exists()

    def _take_lock(self) -> int:
        path = self._lock_path
        while True:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError as error:
                raise GymError(f"cannot write {path}: {error.strerror}", place=Place(str(path))) from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                holder = os.read(descriptor, 200).decode("utf-8", "replace").strip()
                os.close(descriptor)
                raise self._refusal(error, holder) from None
            if _is_still(descriptor, path):
                break
            os.close(descriptor)  # whoever held it has just removed it
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())
        return descriptor

    def _refusal(self, error: OSError, holder: str) -> GymError:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            return GymError(f"cannot lock {self._lock_path}: {error.strerror}", place=Place(str(self._lock_path)))
        return GymError(
            f"another run is writing {self.paths.rollouts}" + (f" ({holder})" if holder else ""),
            hint="wait for it, or choose another --output",
        )


def _sessions(record: Mapping[str, Any]) -> list[Any]:
    """The sessions of a run up to the one of `record`; one that could not say how it ended has `died`."""
    if not record:
        return []
    earlier = record.get("earlier")
    last = {key: record.get(key) for key in ("started_at", "ended_at", "state", "command")}
    if last["state"] == "running":
        last["state"] = "died"
    return [*(earlier if isinstance(earlier, list) else ()), last]


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_CHUNK):
            digest.update(block)
    return digest.hexdigest()
