"""Listening sockets, bound by the supervisor before any server starts.

A socket that is held from the moment its port is chosen cannot lose a race; the server gets the socket itself. So the whole
configuration, ports included, is known before the first server runs.
"""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Container, Mapping, Sequence
from typing import Any

from backend.config.resolution import ServerInstance
from backend.errors import GymError
from backend.servers.port_holder import PortHolder, holder_of

HEAD_SERVER_NAME = "head_server"
DEFAULT_RANGE = (10_001, 20_000)
_RANDOM_TRIES = 200


class PortTaken(GymError):
    """A port that was asked for cannot be bound."""


class HeadPortTaken(PortTaken):
    """Another process has the port of the head server."""

    port: int


def bind_stack(servers: Sequence[ServerInstance], config: dict[str, Any], *, any_head_port: bool) -> dict[str, socket.socket]:
    """A bound socket for the head server and every server, by name; hosts and ports are filled into `config`.

    A head port that is taken is an error, unless `any_head_port`: then another one is used. Raises `HeadPortTaken`, `PortTaken` or `GymError`.
    """
    listeners: dict[str, socket.socket] = {}
    try:
        head = config[HEAD_SERVER_NAME]
        listeners[HEAD_SERVER_NAME] = _bind_head(head, any_head_port)
        head["port"] = listeners[HEAD_SERVER_NAME].getsockname()[1]
        used = [head["port"]]
        fixed = {server.port for server in servers if server.port}
        for server in servers:
            listener = listeners[server.name] = _bind_server(server, config, fixed | set(used))
            block = config[server.name][server.kind][server.implementation]
            block["host"], block["port"] = server.host, listener.getsockname()[1]
            used.append(block["port"])
        config["disallowed_ports"] = used
    except BaseException:
        for listener in listeners.values():
            listener.close()
        raise
    return listeners


def bind_listener(host: str, port: int, *, purpose: str, how_to_change: str) -> socket.socket:
    """A socket bound to `host` and `port`. Raises `PortTaken` naming who holds the port, as far as the system tells."""
    try:
        return _bind(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            holder = holder_of(host, port)
            by = f" by process {holder.pid} ({holder.command})" if holder is not None else ""
            raise PortTaken(f"port {port} for {purpose} is taken{by}", details=_who_ends(holder), hint=how_to_change) from error
        raise GymError(f"cannot listen on {host}:{port} for {purpose}: {error.strerror or error}", hint=how_to_change) from error


def bind_in_range(host: str, low: int, high: int, forbidden: Container[int], *, purpose: str) -> socket.socket:
    """A socket bound to a free port between `low` and `high`, both included, that is not in `forbidden`."""
    if low > high:
        raise GymError(f"port_range_low ({low}) is above port_range_high ({high})", hint="swap the two values")
    width = high - low + 1
    candidates = random.sample(range(low, high + 1), min(width, _RANDOM_TRIES))
    for port in candidates:
        if port in forbidden:
            continue
        try:
            return _bind(host, port)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise GymError(f"cannot listen on {host} for {purpose}: {error.strerror or error}") from error
    raise GymError(
        f"no free port between {low} and {high} for {purpose}",
        hint="widen the range with ++port_range_low=… ++port_range_high=…",
    )


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # SO_REUSEADDR lets two sockets bind one port as long as neither listens; listening makes a clash show now.
        listener.listen(1)
    except OSError:
        listener.close()
        raise
    return listener


def _bind_head(head: Mapping[str, Any], any_port: bool) -> socket.socket:
    try:
        return bind_listener(
            head["host"],
            head["port"],
            purpose="the head server",
            how_to_change="stop the other process, or choose another port with ++head_server.port=…",
        )
    except PortTaken as error:
        if not any_port:
            taken = HeadPortTaken(error.message, hint=error.hint, details=error.details)
            taken.port = head["port"]
            raise taken from error
        return bind_listener(head["host"], 0, purpose="the head server", how_to_change="set ++head_server.host=…")


def _bind_server(server: ServerInstance, config: Mapping[str, Any], forbidden: set[int]) -> socket.socket:
    purpose = f"server `{server.name}`"
    if server.port:
        how = f"choose another port with ++{server.name}.{server.kind}.{server.implementation}.port=…"
        return bind_listener(server.host, server.port, purpose=purpose, how_to_change=how)
    low, high = config.get("port_range_low", DEFAULT_RANGE[0]), config.get("port_range_high", DEFAULT_RANGE[1])
    return bind_in_range(server.host, low, high, forbidden, purpose=purpose)


def _who_ends(holder: PortHolder | None) -> list[str]:
    if holder is None or not holder.is_stack:
        return []
    return [f"that is a stack of servers of this program; Ctrl-C there, or `kill -INT {holder.pid}`, ends it"]
