"""Listening sockets, bound by the supervisor before any server starts.

A socket that is held from the moment its port is chosen cannot lose a race; the server gets the socket itself. So the whole
configuration, ports included, is known before the first server runs.
"""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Container

from backend.errors import GymError

_RANDOM_TRIES = 200


class PortTaken(GymError):
    """A port that was asked for cannot be bound."""


def bind_listener(host: str, port: int, *, purpose: str, how_to_change: str) -> socket.socket:
    """A socket bound to `host` and `port`. Raises `PortTaken` naming who holds the port, as far as the system tells."""
    try:
        return _bind(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(f"port {port} for {purpose} is taken{_holder_of(port)}", hint=how_to_change) from error
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


def _holder_of(port: int) -> str:
    """` by …` for whoever listens on `port`, or nothing where the system does not tell."""
    import psutil

    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port and connection.pid:
                process = psutil.Process(connection.pid)
                command = " ".join(process.cmdline())[:80] or process.name()
                return f" by process {connection.pid} ({command})"
    except (psutil.Error, OSError):
        return ""
    return ""
