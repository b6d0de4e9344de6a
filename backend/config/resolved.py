"""A resolved configuration, and what is made of a tree on the way to it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.config.findings import Finding
from backend.config.instances import Inventory
from backend.config.interpolation import VARIABLE, is_interpolation
from backend.config.nodes import Node, Origins, find, parse_path, plain, walk
from backend.io.redact import Redactor, collect_secrets, is_secret_key


@dataclass(frozen=True, slots=True)
class ServerInstance:
    """A server to be started."""

    name: str
    kind: str
    """`resources_servers`, `responses_api_agents` or `responses_api_models`."""
    implementation: str
    entrypoint: str
    host: str
    port: int | None
    """None: to be chosen when the server starts."""
    num_workers: int | None
    block: Mapping[str, Any]
    """The implementation block with interpolations resolved."""


@dataclass(frozen=True)
class ResolvedConfig:
    """A configuration as a run uses it."""

    tree: dict[str, Any]
    servers: tuple[ServerInstance, ...]
    """In the order of the configuration."""
    origins: Origins
    roots: tuple[Path, ...]
    env_file: Path | None
    warnings: tuple[str, ...]
    redactor: Redactor
    """Knows the secrets of the tree, of env.yaml and of the command line."""
    hydra: Mapping[str, Any] = field(default_factory=dict)
    """Hydra's own settings from the command line by full key, for instance `hydra.run.dir`."""

    def get(self, dotted: str, default: Any = None) -> Any:
        """The value at a dotted path, `default` where there is none."""
        node = find(self.origins.root, parse_path(dotted))
        return default if node is None else plain(node)

    def server(self, name: str) -> ServerInstance | None:
        """The server instance of that name."""
        return next((server for server in self.servers if server.name == name), None)


def server_instances(inventory: Inventory, tree: Mapping[str, Any]) -> tuple[ServerInstance, ...]:
    """The servers of an inventory, with the values they have in `tree`."""
    return tuple(_instance(inventory, tree, position) for position in range(len(inventory.servers)))


def _instance(inventory: Inventory, tree: Mapping[str, Any], position: int) -> ServerInstance:
    server = inventory.servers[position]
    block = tree[server.name][server.kind][server.implementation]
    workers = block.get("num_workers")
    return ServerInstance(
        name=server.name,
        kind=server.kind,
        implementation=server.implementation,
        entrypoint=str(block["entrypoint"]),
        host=str(block["host"]),
        port=block["port"],
        num_workers=int(workers) if workers is not None else None,
        block=block,
    )


def secrets_of(layers: Sequence[Node]) -> Iterator[str]:
    """Secret values by the names of their keys in every layer, and by the names of environment variables that are read."""
    for layer in layers:
        values = plain(layer)
        yield from collect_secrets(values)
        for _, node in walk(layer):
            if is_interpolation(node.value):
                yield from (
                    os.environ[name] for name in VARIABLE.findall(node.value) if is_secret_key(name) and name in os.environ
                )


def remark_text(finding: Finding) -> str:
    """A remark on one line, with what to do about it."""
    return f"{finding} ({finding.hint})" if finding.hint else str(finding)
