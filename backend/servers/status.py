"""The operation behind `gym env status`: which stacks run on this machine, or behind a head server that was named, and how they do."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from backend.config.request import ConfigRequest
from backend.config.schema import DEFAULT_HEAD_PORT
from backend.io.roots import search_roots
from backend.servers.addresses import server_url
from backend.servers.head_client import fetch_json
from backend.servers.process_identity import boot_clock
from backend.servers.stack_record import StackRecord, StackServer
from backend.servers.stack_watch import ServerSample, sample_stacks
from backend.servers.stacks import running_stacks

_HEAD_SERVER_KIND = "head_server"
_NEEDED = {"process_name", "server_type", "name", "port", "pid", "url"}


@dataclass(frozen=True, slots=True)
class StackStatus:
    """One stack. `servers` are the head server's objects with `status` and `uptime_seconds` filled in, and beyond the documented keys:

    `health` (`http_status`, `latency_ms`, `phase` of the start-up), `memory` (resident bytes with its tools), `cpu` (percent of one core
    since it began), `in_flight` (requests being answered), `stack` (`id`, `name`, `head_url`; null when it left no record here). What is
    not known is null. `problem` says why there are none.
    """

    head_url: str
    servers: tuple[dict[str, Any], ...]
    problem: str | None = None
    name: str = ""
    id: str = ""

    @property
    def healthy(self) -> int:
        return sum(server["status"] == "success" for server in self.servers)


def environment_status(request: ConfigRequest) -> tuple[StackStatus, ...]:
    """The stack whose head server env.yaml or an override names; without such a name all stacks of this machine.

    When none has left a record here, the default address is asked. A head server that does not answer is no error: there is nothing
    running there. Every server is probed for up to 2 s, all at once.
    """
    named = named_head(request)
    records = running_stacks()
    if named is not None:
        url = server_url(*named)
        records = tuple(record for record in records if record.head_url == url)
    if records:
        return tuple(
            _status(
                sample.record,
                sample.servers,
                {"id": sample.record.id, "name": sample.record.name, "head_url": sample.record.head_url},
            )
            for sample in sample_stacks(records)
        )
    return (_status_by_asking(*(named or ("127.0.0.1", DEFAULT_HEAD_PORT))),)


def named_head(request: ConfigRequest) -> tuple[str, int] | None:
    """Host and port of the head server, where env.yaml or an override gives one of them; without these nothing is resolved."""
    has_env_file = any((root / "env.yaml").is_file() for root in search_roots(request.search_dirs, request.cwd))
    if not has_env_file and not request.overrides and not request.flag_values:
        return None
    from backend.config.nodes import find
    from backend.config.resolution import resolve_config

    resolved = resolve_config(request)
    nodes = [find(resolved.origins.root, ("head_server", key)) for key in ("host", "port")]
    if all(node is None or node.source.kind == "default" for node in nodes):
        return None
    head = resolved.tree["head_server"]
    return head["host"], head["port"]


def _status_by_asking(host: str, port: int) -> StackStatus:
    """The servers that the head server at `host` and `port` tells of."""
    head_url = server_url(host, port)
    try:
        instances = fetch_json(host, port, "/server_instances")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return StackStatus(head_url, (), f"no head server answers at {head_url} ({reason})")
    if not isinstance(instances, list) or not all(
        isinstance(instance, dict) and instance.keys() >= _NEEDED for instance in instances
    ):
        return StackStatus(head_url, (), f"what answers at {head_url} is not a head server")
    is_here = host in ("localhost", "::1") or host.startswith("127.")
    servers = tuple(_server_of(instance, is_here) for instance in instances)
    started = next((told for instance in instances if isinstance(told := instance.get("start_time"), int | float)), 0.0)
    record = StackRecord("", 0, 0.0, started, (), "", head_url, "ready", "", servers)
    (sample,) = sample_stacks([record])
    return _status(record, sample.servers, None)


def _server_of(instance: Mapping[str, Any], is_here: bool) -> StackServer:
    pid = instance["pid"]
    return StackServer(
        name=str(instance["process_name"]),
        kind=str(instance["server_type"]),
        implementation=str(instance["name"]),
        url=str(instance["url"]),
        entrypoint=str(instance.get("entrypoint") or ""),
        pid=pid if is_here and isinstance(pid, int) else 0,
        state="ready",
    )


def _status(record: StackRecord, samples: tuple[ServerSample, ...], stack: dict[str, str] | None) -> StackStatus:
    uptime = _uptime(record)
    servers = tuple(
        _as_instance(server, sample, uptime) | {"stack": stack}
        for server, sample in zip(record.servers, samples, strict=True)
        if server.kind != _HEAD_SERVER_KIND
    )
    return StackStatus(record.head_url, servers, name=record.name, id=record.id)


def _uptime(record: StackRecord) -> float | None:
    """Seconds since the stack's start; by the wall clock, which somebody may have set since, only where the record has nothing better."""
    if record.began:
        return boot_clock() - record.began
    return max(0.0, time.time() - record.started) if record.started else None


def _as_instance(server: StackServer, sample: ServerSample, uptime: float | None) -> dict[str, Any]:
    place = urlsplit(server.url)
    return {
        "config_path": None,
        "dir_path": None,
        "entrypoint": server.entrypoint,
        "host": place.hostname,
        "name": server.implementation,
        "pid": server.pid or None,
        "port": place.port,
        "process_name": server.name,
        "server_type": server.kind,
        "start_time": None,
        "status": sample.health,
        "uptime_seconds": uptime,
        "url": server.url,
        "health": {"http_status": sample.http_status, "latency_ms": sample.latency_ms, "phase": server.phase or server.state},
        "memory": sample.memory,
        "cpu": sample.cpu_percent,
        "in_flight": sample.in_flight,
    }
