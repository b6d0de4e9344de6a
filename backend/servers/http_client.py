"""One aiohttp session per process, and the rule by which a request is sent again.

aiohttp, because httpx walks its whole pool on every request: 12 times the CPU at 64 requests in flight, 95 times at 1,000.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from backend.io.json_codec import dumps
from backend.servers.loopback import LoopbackPool

logger = logging.getLogger(__name__)

CLIENT_KEEPALIVE_SECONDS = 15
"""Below the servers' 30 s, so that a pooled connection is never closed under a request."""
CONNECT_TIMEOUT_SECONDS = 10
_DESCRIPTORS_FOR_OTHERS = 200
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Limits and keepalive probes of the process-wide session (config keys `global_aiohttp_*`)."""

    connector_limit: int = 102_400
    connector_limit_per_host: int = 1024
    keepalive_idle_seconds: int = 60
    keepalive_interval_seconds: int = 10
    keepalive_probes: int = 3
    request_debug: bool = False
    """Log what was sent and answered when an answer is an error."""


def client_settings(config: Mapping[str, Any], processes: int = 1) -> ClientSettings:
    """The settings that a configuration asks for; `processes` that serve together share the limits."""
    defaults = ClientSettings()
    limit = int(config.get("global_aiohttp_connector_limit") or defaults.connector_limit)
    limit_per_host = int(config.get("global_aiohttp_connector_limit_per_host") or defaults.connector_limit_per_host)
    return ClientSettings(
        connector_limit=max(1, limit // processes),
        connector_limit_per_host=max(1, limit_per_host // processes),
        keepalive_idle_seconds=int(config.get("global_aiohttp_tcp_keepalive_idle_seconds") or defaults.keepalive_idle_seconds),
        keepalive_interval_seconds=int(
            config.get("global_aiohttp_tcp_keepalive_interval_seconds") or defaults.keepalive_interval_seconds
        ),
        keepalive_probes=int(config.get("global_aiohttp_tcp_keepalive_probes") or defaults.keepalive_probes),
        request_debug=bool(config.get("global_aiohttp_client_request_debug")),
    )


class _SessionHolder:
    """The process-wide session; each event loop gets its own, because aiohttp binds a session to its loop."""

    def __init__(self) -> None:
        self.settings = ClientSettings()
        self.sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
        self.pools: dict[asyncio.AbstractEventLoop, LoopbackPool] = {}


_holder = _SessionHolder()


def configure_http_client(settings: ClientSettings) -> None:
    """Use `settings` for sessions that are opened from now on."""
    _holder.settings = settings


def debugs_requests() -> bool:
    """Whether failed exchanges are logged with their contents."""
    return _holder.settings.request_debug


def has_http_session() -> bool:
    """Whether the session of the running event loop is open; outside of any loop, whether one is open in some loop."""
    try:
        session = _holder.sessions.get(asyncio.get_running_loop())
    except RuntimeError:
        return any(not session.closed for session in _holder.sessions.values())
    return session is not None and not session.closed


def http_session() -> aiohttp.ClientSession:
    """The session of the running event loop, opened on first use."""
    loop = asyncio.get_running_loop()
    session = _holder.sessions.get(loop)
    if session is None or session.closed:
        for other in [known for known in _holder.sessions if known.is_closed()]:
            del _holder.sessions[other]
        session = _holder.sessions[loop] = _open_session(_holder.settings)
    return session


def _loopback_pool() -> LoopbackPool:
    loop = asyncio.get_running_loop()
    pool = _holder.pools.get(loop)
    if pool is None:
        for other in [known for known in _holder.pools if known.is_closed()]:
            del _holder.pools[other]
        limit = min(_holder.settings.connector_limit_per_host, _holder.settings.connector_limit, connection_limit())
        pool = _holder.pools[loop] = LoopbackPool(limit, CLIENT_KEEPALIVE_SECONDS, CONNECT_TIMEOUT_SECONDS)
    return pool


async def close_http_session() -> None:
    """Close the session and the connections of the running event loop, if there are any."""
    pool = _holder.pools.pop(asyncio.get_running_loop(), None)
    if pool is not None:
        pool.close()
    session = _holder.sessions.pop(asyncio.get_running_loop(), None)
    if session is not None:
        await session.close()


def raise_descriptor_limit(wanted: int = 65_535) -> int:
    """Raise the soft limit of open files as far as `wanted` and the hard limit allow; returns the limit in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
            soft = target
    return wanted if soft == resource.RLIM_INFINITY else soft


def connection_limit() -> int:
    """How many connections this process may hold without running out of descriptors."""
    return max(64, (raise_descriptor_limit() - _DESCRIPTORS_FOR_OTHERS) // 2)


@dataclass(frozen=True, slots=True)
class RetryRule:
    """When a failed exchange is tried again. No HTTP status is retried here: whatever answered, answered."""

    connect_budget_seconds: float = 15.0
    """For how long connecting is tried again; nothing has been sent, so this is always safe."""
    connect_retries: int | None = None
    """Upper bound of connection retries; None leaves it to the budget."""
    resend_tries: int = 1
    """Tries in all when the exchange broke after the request may have been received. 1 means never send again."""
    internal: bool = False
    """Whether the other side is a server of ours: then a plain POST on this machine takes the short way."""


async def send(method: str, url: str, rule: RetryRule, **kwargs: Any) -> aiohttp.ClientResponse:
    """Send a request under a retry rule. A `json=` value is encoded here. The first retry is logged at once.

    Raises the last `aiohttp.ClientError` when the rule is used up.
    """
    if kwargs.get("json"):
        kwargs["data"] = dumps(kwargs.pop("json"))
        kwargs["headers"] = {**(kwargs.get("headers") or {}), "Content-Type": "application/json"}
    began = time.monotonic()
    connect_failures = 0
    broken = 0
    while True:
        try:
            if rule.internal and method == "POST" and (answer := await _loopback_pool().post(url, kwargs)) is not None:
                return answer
            return await http_session().request(method, url, **kwargs)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            connect_failures += 1
            elapsed = time.monotonic() - began
            exhausted = rule.connect_retries is not None and connect_failures > rule.connect_retries
            if exhausted or elapsed >= rule.connect_budget_seconds:
                raise
            _log_retry(url, error, connect_failures, elapsed)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            broken += 1
            if broken >= rule.resend_tries:
                raise
            _log_retry(url, error, broken, time.monotonic() - began)
        await asyncio.sleep(min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** (connect_failures + broken - 1)))


def _log_retry(url: str, error: Exception, retry: int, elapsed: float) -> None:
    if retry & (retry - 1) == 0:  # 1, 2, 4, 8, …: the first at once, then ever fewer
        place = urlsplit(url)
        shown = f"{place.scheme}://{place.hostname}:{place.port}{place.path}"
        logger.warning("[request_retry url=%s error=%r retry=%d elapsed_s=%.1f]", shown, error, retry, elapsed)


def _open_session(settings: ClientSettings) -> aiohttp.ClientSession:
    def open_socket(address: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, _ = address
        connection = socket.socket(family, kind, protocol)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (
            ("TCP_KEEPIDLE", settings.keepalive_idle_seconds),
            ("TCP_KEEPINTVL", settings.keepalive_interval_seconds),
            ("TCP_KEEPCNT", settings.keepalive_probes),
        ):
            if hasattr(socket, option):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        return connection

    limit = connection_limit()
    connector = aiohttp.TCPConnector(
        limit=min(settings.connector_limit, limit),
        limit_per_host=min(settings.connector_limit_per_host, limit),
        keepalive_timeout=CLIENT_KEEPALIVE_SECONDS,
        socket_factory=open_socket,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_SECONDS),
    )
