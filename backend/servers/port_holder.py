"""Who listens on a port, for the message that it is taken."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backend.io.redact import Redactor, mask_command

if TYPE_CHECKING:
    import psutil

_WARM_PARENT = "backend.servers.warm_parent"
_MOST_SHOWN = 80
_ANY_ADDRESS = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class PortHolder:
    """The process that has a port. Of a stack of ours it is the command, and not the server that it started."""

    pid: int
    command: str
    is_stack: bool = False


def holder_of(host: str, port: int) -> PortHolder | None:
    """Whoever listens on `port` of `host`, else of another address; None where the system does not tell."""
    import psutil

    try:
        found = [
            (connection.laddr.ip not in (host, *_ANY_ADDRESS), connection.pid)
            for connection in psutil.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port and connection.pid
        ]
        if not found:
            return None
        process = psutil.Process(min(found)[1])
        lineage = [process, *process.parents()]
        for started, above in reversed(list(itertools.pairwise(lineage))):  # a forked server has the command line of its parent
            if _WARM_PARENT in started.cmdline():
                return PortHolder(above.pid, _shown(above), is_stack=True)
        return PortHolder(process.pid, _shown(process))
    except (psutil.Error, OSError):
        return None


def _shown(process: psutil.Process) -> str:
    return " ".join(mask_command(process.cmdline(), Redactor()))[:_MOST_SHOWN] or process.name()
