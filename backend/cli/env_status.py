"""`gym env status`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from backend.cli.console import print_json, say, warn
from backend.cli.parser import Parsed
from backend.config.request import ConfigRequest
from backend.errors import ExitCode
from backend.servers.status import StackStatus, environment_status


def run(parsed: Parsed) -> int:
    """Show which servers run; 0 whether or not there are any."""
    stacks = environment_status(ConfigRequest(overrides=parsed.overrides))
    for stack in stacks:
        if stack.problem:
            warn(stack.problem)
    if parsed.json:
        print_json([server for stack in stacks for server in stack.servers])
    else:
        _show(stacks)
    return ExitCode.OK


def _show(stacks: Sequence[StackStatus]) -> None:
    servers = [server for stack in stacks for server in stack.servers]
    if not servers:
        say("No NeMo Gym servers found running.")
        return
    say()
    say("NeMo Gym Server Status:")
    number = 0
    for stack in stacks:
        if len(stacks) > 1:
            say(f"Stack `{stack.name}` ({stack.id}), head server at {stack.head_url}:")
        for server in stack.servers:
            number += 1
            _show_server(number, server)
    healthy = sum(stack.healthy for stack in stacks)
    say(f"{len(servers)} servers found ({healthy} healthy, {len(servers) - healthy} unhealthy)")


def _show_server(number: int, server: dict[str, Any]) -> None:
    mark = "✓" if server["status"] == "success" else "✗"
    say(f"[{number}] {mark} {server['process_name']} ({server['server_type']}/{server['name']})")
    say("{")
    for key in ("server_type", "name", "port", "pid", "uptime_seconds"):
        value: Any = _uptime(server[key]) if key == "uptime_seconds" else server[key]
        say(f"    '{key}': {value!r},")
    say("}")


def _uptime(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    days, hours = divmod(hours, 24)
    return f"{days}d {hours}h {minutes}m {rest:.1f}s"
