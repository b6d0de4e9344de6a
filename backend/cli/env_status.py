"""`gym env status`."""

from __future__ import annotations

from typing import Any

from backend.cli.console import print_json, say, warn
from backend.cli.parser import Parsed
from backend.config.request import ConfigRequest
from backend.errors import ExitCode
from backend.servers.status import EnvironmentStatus, environment_status, head_address


def run(parsed: Parsed) -> int:
    """Show which servers run; 0 whether or not there are any."""
    host, port = head_address(ConfigRequest(overrides=parsed.overrides))
    status = environment_status(host, port)
    if status.problem:
        warn(status.problem)
    if parsed.json:
        print_json(list(status.servers))
    else:
        _show(status)
    return ExitCode.OK


def _show(status: EnvironmentStatus) -> None:
    if not status.servers:
        say("No NeMo Gym servers found running.")
        return
    say()
    say("NeMo Gym Server Status:")
    for number, server in enumerate(status.servers, 1):
        mark = "✓" if server["status"] == "success" else "✗"
        say(f"[{number}] {mark} {server['process_name']} ({server['server_type']}/{server['name']})")
        say("{")
        for key in ("server_type", "name", "port", "pid", "uptime_seconds"):
            value: Any = _uptime(server[key]) if key == "uptime_seconds" else server[key]
            say(f"    '{key}': {value!r},")
        say("}")
    say(f"{len(status.servers)} servers found ({status.healthy} healthy, {len(status.servers) - status.healthy} unhealthy)")


def _uptime(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    days, hours = divmod(hours, 24)
    return f"{days}d {hours}h {minutes}m {rest:.1f}s"
