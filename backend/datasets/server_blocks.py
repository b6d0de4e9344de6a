"""The server blocks of a resolved configuration that is only at hand as plain data, for instance from a head server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from backend.config.schema import SERVER_TYPES


@dataclass(frozen=True, slots=True)
class ServerBlock:
    """One server instance."""

    instance: str
    kind: str
    """`resources_servers`, `responses_api_agents` or `responses_api_models`."""
    implementation: str
    fields: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The dotted key of the block."""
        return f"{self.instance}.{self.kind}.{self.implementation}"


def server_blocks(tree: Mapping[str, Any]) -> Iterator[ServerBlock]:
    """Everything in `tree` that has the shape of a server, in its order."""
    for instance, block in tree.items():
        if not isinstance(block, Mapping):
            continue
        for kind in SERVER_TYPES:
            implementations = block.get(kind)
            if isinstance(implementations, Mapping):
                for implementation, fields in implementations.items():
                    if isinstance(fields, Mapping):
                        yield ServerBlock(str(instance), kind, str(implementation), fields)
                        break
                break
