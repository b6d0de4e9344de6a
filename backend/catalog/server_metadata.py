"""The words and marks that a server's configuration carries for listings; importable as `nemo_gym.server_metadata`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from backend.config.schema import AGENTS, RESOURCES

__all__ = ["ServerMetadata", "visit_agent_server", "visit_resources_server"]


@dataclass
class ServerMetadata:
    """What is said of a server; None is what its configuration does not say."""

    domain: str | None = None
    description: str | None = None
    verified: bool = False
    verified_url: str | None = None
    value: str | None = None

    def to_dict(self) -> dict[str, str | bool | None]:
        """The fields by their names."""
        return asdict(self)


def visit_resources_server(data: Mapping[str, Any], level: int = 1) -> ServerMetadata:
    """The metadata of the first resources server in `data`; an empty one where there is none.

    `level` says what `data` is: a configuration (1), the block of an instance (2), what that holds below `resources_servers` (3), or the
    block of an implementation (4).
    """
    return _first(data, RESOURCES, level)


def visit_agent_server(data: Mapping[str, Any], level: int = 1) -> ServerMetadata:
    """The metadata of the first agent in `data`; `level` as in `visit_resources_server`."""
    return _first(data, AGENTS, level)


def _first(data: Mapping[str, Any], kind: str, level: int) -> ServerMetadata:
    block = next(_blocks(data, kind, level), {})
    known = {entry.name: block.get(entry.name) for entry in fields(ServerMetadata)}
    return ServerMetadata(**{name: value for name, value in known.items() if value is not None})


def _blocks(data: Any, kind: str, level: int) -> Iterator[Mapping[str, Any]]:
    """The implementation blocks in `data`, in order."""
    if not isinstance(data, Mapping) or level < 1:
        return
    if level >= 4:
        yield data
    elif level == 2:
        yield from _blocks(data.get(kind), kind, 3)
    else:
        for value in data.values():
            yield from _blocks(value, kind, level + 1)
