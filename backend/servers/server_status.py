"""Who runs, as objects for other programs; importable as `nemo_gym.server_status`."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

from backend.config.global_config import DEFAULT_HEAD_SERVER_PORT, HEAD_SERVER_KEY_NAME, maybe_get_global_config_dict
from backend.servers.addresses import server_url
from backend.servers.head_client import fetch_json
from backend.servers.server_settings import ServerInstanceDisplayConfig, ServerStatus
from backend.servers.stack_record import StackRecord, StackServer
from backend.servers.stack_watch import sample_stacks

__all__ = ["StatusCommand", "server_health"]

logger = logging.getLogger(__name__)


def server_health(url: str) -> ServerStatus:
    """Whether the server at `url` answers `GET /` within 2 s, whatever the answer."""
    server = StackServer(name="", kind="", implementation="", url=url, state="ready")
    record = StackRecord(
        id="", pid=0, created=0.0, started=0.0, command=(), folder="", head_url="", state="ready", events="", servers=(server,)
    )
    (sample,) = sample_stacks([record])
    return sample.servers[0].health  # type: ignore[return-value]


class StatusCommand:
    """Asks the head server which servers there are, and each of them whether it answers."""

    def check_health(self, server: ServerInstanceDisplayConfig) -> ServerStatus:
        """Whether the server answers within 2 s."""
        return server_health(server.url or "")

    def discover_servers(self, host: str | None = None, port: int | None = None) -> list[ServerInstanceDisplayConfig]:
        """The servers of the head server at the address (that of this process' configuration, else the default), with status.

        Empty where no head server answers within 5 s.
        """
        config: Any = maybe_get_global_config_dict() or {}
        head = config.get(HEAD_SERVER_KEY_NAME) or {}
        place = (host or head.get("host") or "127.0.0.1", int(port or head.get("port") or DEFAULT_HEAD_SERVER_PORT))
        try:
            found = [ServerInstanceDisplayConfig.model_validate(entry) for entry in fetch_json(*place, "/server_instances")]
        except (OSError, ValueError, TypeError) as error:
            logger.warning("no head server answers at %s: %s", server_url(*place), error)
            return []
        now = time.time()
        return [
            server.model_copy(
                update={
                    "status": self.check_health(server),
                    "uptime_seconds": None if server.start_time is None else max(0.0, now - server.start_time),
                }
            )
            for server in found
        ]

    def display_status(self, servers: Sequence[ServerInstanceDisplayConfig], file: TextIO | None = None) -> None:
        """Write one line per server, and how many are healthy, to `file` (standard output)."""
        out = file or sys.stdout
        for server in servers:
            mark = "✓" if server.status == "success" else "✗"
            out.write(f"{mark} {server.process_name} ({server.server_type}/{server.name}) {server.url}: {server.status}\n")
        healthy = sum(server.status == "success" for server in servers)
        out.write(f"{len(servers)} servers found ({healthy} healthy, {len(servers) - healthy} unhealthy)\n")
