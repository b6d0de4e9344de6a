"""What the supervisor knows of one server, and how it explains the end of one."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.config.resolution import ServerInstance
from backend.errors import GymError, name_some
from backend.servers.guard import explain_end
from backend.servers.server_output import OutputSinks, log_name

_LAST_LINES = 20
_LAST_LINES_OF_EACH = 5
"""Where several servers are told of."""


class ServerDied(GymError):
    """A server ended although nobody asked it to."""


class ServersNotReady(GymError):
    """The servers did not answer within the time that the configuration gives them."""


@dataclass(slots=True)
class ServerProcess:
    """One server of a stack, as far as it has come."""

    name: str
    url: str
    instance: ServerInstance | None
    """None for the head server."""
    sinks: OutputSinks
    folder: str = ""
    pid: int = 0
    ready: bool = False
    phase: str = "importing"
    """The step of its start-up that it is in, and since when on the monotonic clock."""
    phase_since: float = field(default_factory=time.monotonic)
    ended: int | None = None
    failure: dict[str, Any] = field(default_factory=dict)
    """`reason`, `hint` and `told`, from a server that could say why it ends."""
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=_LAST_LINES))
    drained: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, line: str) -> None:
        """Keep a line that the server printed, and pass it on."""
        self.last_lines.append(line)
        self.sinks.take(line)

    def enter(self, phase: str) -> None:
        """Note that its start-up has come to `phase`."""
        self.phase, self.phase_since = phase, time.monotonic()

    def step(self) -> str:
        """What it is doing and for how long, in words."""
        return f"`{self.name}`: {self.phase} for {time.monotonic() - self.phase_since:.0f} s"

    def as_instance(self, start_time: float) -> dict[str, Any]:
        """The server as the head server describes it."""
        assert self.instance is not None
        return {
            "config_path": self.name,
            "dir_path": self.folder,
            "entrypoint": self.instance.entrypoint,
            "host": self.instance.host,
            "name": self.instance.implementation,
            "pid": self.pid,
            "port": int(self.url.rpartition(":")[2]),
            "process_name": self.name,
            "server_type": self.instance.kind,
            "start_time": start_time,
            "status": None,
            "uptime_seconds": None,
            "url": self.url,
        }


def waiting_line(process: ServerProcess, log_folder: Path | None) -> str:
    """Of a server that is not ready: what it is doing, and where its output is."""
    log = _log_of(process, log_folder)
    return process.step() + (f"; its output is in {log}" if log else "")


def not_ready_in_time(
    processes: Sequence[ServerProcess], seconds: float, log_folder: Path | None, how_to_change: str
) -> ServersNotReady:
    """The error that names the servers which do not answer after `seconds`, what each is doing, and its last lines."""
    details = []
    for process in processes:
        details.append(waiting_line(process, log_folder))
        details += [f"  {line}" for line in list(process.last_lines)[-_LAST_LINES_OF_EACH:]] or ["  it has printed nothing"]
    names = name_some([f"`{process.name}`" for process in processes])
    are = "is" if len(processes) == 1 else "are"
    return ServersNotReady(f"{names} {are} not ready after {seconds:g} s", details=details, hint=how_to_change)


def _log_of(process: ServerProcess, log_folder: Path | None) -> Path | None:
    return log_folder / log_name(process.name) if log_folder is not None else None


def death_of(process: ServerProcess, code: int, log_folder: Path | None) -> ServerDied:
    """The error that names a server which ended, why as far as it could say, and its last lines."""
    when = "while it ran" if process.ready else "before it was ready"
    reason = process.failure.get("reason") or f"{explain_end(code)}, {when}"
    lines = [] if process.failure.get("told") else [f"  {line}" for line in process.last_lines]
    log = _log_of(process, log_folder)
    return ServerDied(
        f"Process `{process.name}` finished unexpectedly! ({reason})",
        details=["its last lines:", *lines] if lines else [],
        hint=process.failure.get("hint") or (f"its whole output is in {log}" if log else None),
    )


def failed_dry_run(processes: Sequence[ServerProcess]) -> GymError:
    """The error that names the servers which could not be constructed."""
    details = [f"`{process.name}` exited with {process.ended}: {process.failure.get('reason', '')}" for process in processes]
    return GymError("dry run failed", details=[line.rstrip(": ") for line in details])
