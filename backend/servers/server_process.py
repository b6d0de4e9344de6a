"""What the supervisor knows of one server, and how it explains the end of one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.config.resolution import ServerInstance
from backend.errors import GymError
from backend.servers.guard import explain_end
from backend.servers.server_output import OutputSinks, log_name

_LAST_LINES = 20


class ServerDied(GymError):
    """A server ended although nobody asked it to."""


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
    ended: int | None = None
    failure: dict[str, Any] = field(default_factory=dict)
    """`reason`, `hint` and `told`, from a server that could say why it ends."""
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=_LAST_LINES))
    drained: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, line: str) -> None:
        """Keep a line that the server printed, and pass it on."""
        self.last_lines.append(line)
        self.sinks.take(line)

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


def death_of(process: ServerProcess, code: int, log_folder: Path | None) -> ServerDied:
    """The error that names a server which ended, why as far as it could say, and its last lines."""
    when = "while it ran" if process.ready else "before it was ready"
    reason = process.failure.get("reason") or f"{explain_end(code)}, {when}"
    lines = [] if process.failure.get("told") else [f"  {line}" for line in process.last_lines]
    log = log_folder / log_name(process.name) if log_folder is not None else None
    return ServerDied(
        f"Process `{process.name}` finished unexpectedly! ({reason})",
        details=["its last lines:", *lines] if lines else [],
        hint=process.failure.get("hint") or (f"its whole output is in {log}" if log else None),
    )


def failed_dry_run(processes: Sequence[ServerProcess]) -> GymError:
    """The error that names the servers which could not be constructed."""
    details = [f"`{process.name}` exited with {process.ended}: {process.failure.get('reason', '')}" for process in processes]
    return GymError("dry run failed", details=[line.rstrip(": ") for line in details])
