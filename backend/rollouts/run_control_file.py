"""Requests to a running run: whoever wants something appends a line to its control file, the run looks at it twice a second.

A line is `{"action": "drain" | "cancel", "by": "user@host pid", "t": seconds since the epoch}`. A file, because it also works from
another machine with a shared disk, and for a run that nobody is attached to.
"""

from __future__ import annotations

import asyncio
import fcntl
import getpass
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.errors import GymError
from backend.io.event_stream import EventStream
from backend.io.json_codec import loads
from backend.io.jsonl import JsonlWriter
from backend.io.result_paths import ResultPaths
from backend.rollouts.run_events import RunControlled
from backend.rollouts.run_record import is_alive, read_run_record

POLL_SECONDS = 0.5
ACKNOWLEDGE_SECONDS = 3.0
_LOOK_SECONDS = 0.05
_LONGEST_TEXT = 200


@dataclass(frozen=True, slots=True)
class ControlOutcome:
    """What became of a request. `acknowledged`: the run has said so in its events. `ended`: it does not run any more."""

    rollouts: Path
    action: str
    by: str
    acknowledged: bool
    ended: bool


def steer_run(paths: ResultPaths, action: str, *, wait_seconds: float = ACKNOWLEDGE_SECONDS) -> ControlOutcome:
    """Ask the run at `paths` for `action`, and wait until it acknowledges or ends, at most `wait_seconds`.

    Raises `GymError` when the run is not running or its control file cannot be written.
    """
    _refuse_unless_running(paths)
    by = _who()
    events = _Tail(paths.events)
    with JsonlWriter(paths.control) as writer:
        writer.write({"action": action, "by": by, "t": time.time()})
    deadline = time.monotonic() + wait_seconds
    while True:
        # Asked first, so that what it said before its end is not missed.
        ended = not _is_running(paths)
        told = (RunControlled.type, action, by)
        acknowledged = any((event.get("type"), event.get("action"), event.get("by")) == told for event in events.read())
        if acknowledged or ended or time.monotonic() > deadline:
            return ControlOutcome(paths.rollouts, action, by, acknowledged, ended)
        time.sleep(_LOOK_SECONDS)


@asynccontextmanager
async def following_requests(path: Path, act: Callable[[str, str], None]) -> AsyncIterator[None]:
    """Inside, `act` is called with action and author of every request that comes; the file is removed before and after."""
    _remove(path)
    task = asyncio.create_task(_follow(path, act))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        _remove(path)


def _remove(path: Path) -> None:
    with suppress(OSError):  # missing, or something that only looks like a control file
        path.unlink()


async def _follow(path: Path, act: Callable[[str, str], None]) -> None:
    with EventStream(path) as stream:
        while True:
            with suppress(GymError):  # a control file that cannot be read must not end a run
                for request in stream.read():
                    act(_short(request.get("action")), _short(request.get("by") or "somebody"))
            await asyncio.sleep(POLL_SECONDS)


def _short(value: Any) -> str:
    return str(value)[:_LONGEST_TEXT]


def _who() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without an entry in the list of users
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()} {os.getpid()}"


def _is_running(paths: ResultPaths) -> bool:
    """Whether a process writes these results: it holds their lock, or its record says so and nothing here speaks against it."""
    if _is_locked(paths.lock):
        return True
    try:
        record = read_run_record(paths.run_record)
    except GymError:
        return False
    return record.state == "running" and is_alive(record, paths.lock) is not False


def _refuse_unless_running(paths: ResultPaths) -> None:
    if _is_running(paths):
        return
    if not paths.run_record.exists():
        raise GymError(
            f"no run is writing {paths.rollouts}", hint="give the rollouts file or the run folder of a run that is going on"
        )
    record = read_run_record(paths.run_record)
    if record.state == "running":
        raise GymError(
            f"the run of {paths.rollouts} is not running: its process {record.pid} is gone",
            hint="go on with it by its own command and --resume",
        )
    raise GymError(f"the run of {paths.rollouts} is not running: it is {record.state}")


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


class _Tail:
    """What is appended to an events file from now on; of a file that takes its place, everything."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file, self._offset = self._identity()

    def read(self) -> Iterator[dict[str, Any]]:
        """All complete new events, each time anew."""
        if self._identity()[0] != self._file:
            self._file, self._offset = self._identity()[0], 0
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                lines = file.read().splitlines()
        except OSError:
            return
        for line in lines:
            with suppress(ValueError):
                event = loads(line)
                if isinstance(event, dict):
                    yield event

    def _identity(self) -> tuple[int | None, int]:
        try:
            status = os.stat(self._path)
        except OSError:
            return None, 0
        return status.st_ino, status.st_size
