"""From a resolved configuration to what its stack needs before a process starts: orders, bound ports, the entries of its record."""

from __future__ import annotations

import copy
import socket
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from backend.config.nodes import find
from backend.config.resolution import ResolvedConfig
from backend.errors import GymError
from backend.events import Notice
from backend.servers.child import HEAD_SERVER_KIND, ServerOrder
from backend.servers.environments.environment import EnvironmentRequest, ServerEnvironment
from backend.servers.folders import server_folder
from backend.servers.ports import HeadPortTaken, bind_stack
from backend.servers.server_output import log_name
from backend.servers.server_process import ServerProcess
from backend.servers.stack_journal import used_servers
from backend.servers.stack_record import StackRecord, StackServer
from backend.servers.stacks import running_stacks
from backend.servers.worker_processes import require_worker_branch


def make_orders(resolved: ResolvedConfig) -> dict[str, ServerOrder]:
    """What each server's process will be asked to be, by name. Raises `GymError` for a folder or an entry point that is not there."""
    if not resolved.servers:
        raise GymError(
            "the configuration has no server to start",
            hint="select servers with --benchmark, --resources-server, --model-type or --config",
        )
    orders = {}
    for instance in resolved.servers:
        folder = server_folder(instance, resolved.roots)
        require_worker_branch(instance, folder)
        orders[instance.name] = ServerOrder(
            instance.name,
            instance.kind,
            instance.implementation,
            str(folder),
            instance.entrypoint,
            workers=instance.num_workers or 1,
        )
    return orders


def bind_ports(
    resolved: ResolvedConfig, *, any_head_port: bool
) -> tuple[dict[str, Any], dict[str, socket.socket], Notice | None]:
    """The configuration with all ports, the sockets bound to them, and a notice when the head server had to take another port.

    It moves when `any_head_port`, or when another stack of ours has a port that nobody asked for. Raises `PortTaken`, `GymError`.
    """
    config = copy.deepcopy(dict(resolved.tree))
    try:
        return config, bind_stack(resolved.servers, config, any_head_port=any_head_port), None
    except HeadPortTaken as error:
        other = next((stack for stack in running_stacks() if stack.head_url.endswith(f":{error.port}")), None)
        if other is not None and _head_port_is_asked_for(resolved):
            error.details = (f"it is the head server of the stack `{other.name}`, which `gym env stop {other.id}` stops",)
        elif other is not None:
            config = copy.deepcopy(dict(resolved.tree))
            listeners = bind_stack(resolved.servers, config, any_head_port=True)
            return config, listeners, _notice_of_move(other, config["head_server"]["port"], error.port)
        raise


def _head_port_is_asked_for(resolved: ResolvedConfig) -> bool:
    port = find(resolved.origins.root, ("head_server", "port"))
    return port is not None and port.source.kind != "default"


def _notice_of_move(other: StackRecord, port: int, wanted: int) -> Notice:
    return Notice(
        f"Port {wanted} belongs to the head server of the stack `{other.name}` (process {other.pid}); this stack's head server takes "
        f"port {port}. `gym env status` finds both; other commands find this one with ++head_server.port={port}."
    )


def environment_requests(orders: Mapping[str, ServerOrder]) -> list[EnvironmentRequest]:
    """One request per server folder, with the names of all servers that run there."""
    names: dict[str, list[str]] = {}
    for order in orders.values():
        names.setdefault(order.folder, []).append(order.name)
    return [_environment_request(orders[sharing[0]], tuple(sharing)) for sharing in names.values()]


def _environment_request(order: ServerOrder, names: tuple[str, ...]) -> EnvironmentRequest:
    return EnvironmentRequest(names, order.kind, order.implementation, Path(order.folder), order.entrypoint)


def in_environment(order: ServerOrder, environments: Mapping[str, ServerEnvironment]) -> ServerOrder:
    """The order with the interpreter of its folder's environment."""
    environment = environments[order.folder]
    if environment.python is None:
        return order
    return replace(
        order,
        python=str(environment.python),
        layer=str(environment.folder) if environment.layered else "",
        import_path=environment.import_path,
        fallback_path=environment.fallback_path,
    )


def noted_servers(
    processes: Iterable[ServerProcess], orders: Mapping[str, ServerOrder], log_folder: Path | None
) -> list[StackServer]:
    """The entries of a stack's record before anything runs."""
    noted = []
    for process in processes:
        server = StackServer(process.name, HEAD_SERVER_KIND, "", process.url)
        if log_folder is not None:
            server = replace(server, log=str(log_folder / log_name(process.name)))
        if (instance := process.instance) is not None:
            server = replace(
                server,
                kind=instance.kind,
                implementation=instance.implementation,
                folder=process.folder,
                uses=used_servers(instance, tuple(orders)),
                entrypoint=instance.entrypoint,
                workers=orders[process.name].workers,
            )
        noted.append(server)
    return noted
