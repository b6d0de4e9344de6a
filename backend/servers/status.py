"""The operation behind `gym env status`: who runs, by asking the head server and then every server at once."""

from __future__ import annotations

import http.client
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from backend.config.request import ConfigRequest
from backend.config.schema import DEFAULT_HEAD_PORT
from backend.io.roots import search_roots
from backend.servers.addresses import server_url
from backend.servers.head_client import fetch_json

SERVER_TIMEOUT_SECONDS = 2.0
_MAX_PROBES_AT_ONCE = 32
_SHOWN = {"process_name", "server_type", "name", "port", "pid", "url"}


@dataclass(frozen=True, slots=True)
class EnvironmentStatus:
    """`servers` are the head server's objects with `status` and `uptime_seconds` filled in; `problem` says why there are none."""

    head_url: str
    servers: tuple[dict[str, Any], ...]
    problem: str | None = None

    @property
    def healthy(self) -> int:
        return sum(server["status"] == "success" for server in self.servers)


def head_address(request: ConfigRequest) -> tuple[str, int]:
    """Host and port at which a head server would be, by env.yaml and overrides; the defaults cost no resolution."""
    has_env_file = any((root / "env.yaml").is_file() for root in search_roots(request.search_dirs, request.cwd))
    if not has_env_file and not request.overrides and not request.flag_values:
        return "127.0.0.1", DEFAULT_HEAD_PORT
    from backend.config.resolution import resolve_config

    head = resolve_config(request).tree["head_server"]
    return head["host"], head["port"]


def environment_status(host: str, port: int) -> EnvironmentStatus:
    """The servers that the head server at `host` and `port` knows, each probed for up to 2 s, all at once.

    A head server that does not answer is no error: there is nothing running there.
    """
    head_url = server_url(host, port)
    try:
        instances = fetch_json(host, port, "/server_instances")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return EnvironmentStatus(head_url, (), f"no head server answers at {head_url} ({reason})")
    if not isinstance(instances, list) or not all(
        isinstance(instance, dict) and instance.keys() >= _SHOWN for instance in instances
    ):
        return EnvironmentStatus(head_url, (), f"what answers at {head_url} is not a head server")
    with ThreadPoolExecutor(max_workers=min(_MAX_PROBES_AT_ONCE, max(1, len(instances)))) as pool:
        servers = tuple(pool.map(_with_status, instances))
    return EnvironmentStatus(head_url, servers)


def _with_status(instance: Mapping[str, Any]) -> dict[str, Any]:
    started = instance.get("start_time")
    return {
        **instance,
        "config_path": None,
        "dir_path": None,
        "start_time": None,
        "status": _probe(str(instance.get("url"))),
        "uptime_seconds": max(0.0, time.time() - started) if isinstance(started, int | float) else None,
    }


def _probe(url: str) -> str:
    place = urlsplit(url)
    if not place.hostname:
        return "unknown_error"
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=SERVER_TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
    except TimeoutError:
        return "timeout"
    except OSError:
        return "connection_error"
    except http.client.HTTPException:
        return "unknown_error"
    finally:
        connection.close()
    return "success"
