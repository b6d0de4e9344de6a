"""The words and marks that a server's configuration carries for listings; importable as `nemo_gym.server_metadata`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from backend.config.schema import AGENTS, RESOURCES

__all__ = ["ServerMetadata", "visit_agent_server", "visit_resources_server"]


class ServerMetadata(BaseModel):
    """What is said of a server; None is what its configuration does not say."""

    domain: str | None = None
    description: str | None = None
    verified: bool | None = None
    verified_url: str | None = None
    value: str | None = None


def visit_resources_server(config: Mapping[str, Any]) -> ServerMetadata:
    """The metadata of the first resources server in a configuration; all None where there is none."""
    return _first(config, RESOURCES)


def visit_agent_server(config: Mapping[str, Any]) -> ServerMetadata:
    """The metadata of the first agent in a configuration; all None where there is none."""
    return _first(config, AGENTS)


def _first(config: Mapping[str, Any], kind: str) -> ServerMetadata:
    for instance in config.values():
        implementations = instance.get(kind) if isinstance(instance, Mapping) else None
        for block in implementations.values() if isinstance(implementations, Mapping) else ():
            if isinstance(block, Mapping):
                return ServerMetadata.model_validate({name: block.get(name) for name in ServerMetadata.model_fields})
    return ServerMetadata()
