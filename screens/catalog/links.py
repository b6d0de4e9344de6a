"""Where one can go from a component: what it is made of, what is made with it, runs that used it, commands that bring what it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.catalog.entries import CatalogEntry, Server
from backend.catalog.kinds import AGENT, MODEL, RESOURCES_SERVER, WORKLOADS
from backend.config.schema import AGENTS, MODELS, RESOURCES
from screens.catalog.arranging import Component, ComponentKey, component_key

_KIND_OF_TYPE = {AGENTS: AGENT, RESOURCES: RESOURCES_SERVER, MODELS: MODEL}


@dataclass(frozen=True, slots=True)
class Jump:
    """To another component."""

    role: str
    """What it is here: makes the part of the document itself."""
    target: ComponentKey


@dataclass(frozen=True, slots=True)
class ShowRun:
    """To the runs, with the cursor on this one."""

    rollouts: Path


@dataclass(frozen=True, slots=True)
class TypeCommand:
    """To the command line, with these words after `gym`."""

    words: tuple[str, ...]


Link = Jump | ShowRun | TypeCommand


@dataclass(frozen=True, slots=True)
class Part:
    """One server of a composition, and the component that it is an instance of, if that is in the catalogue."""

    server: Server
    target: ComponentKey | None


def composition(entry: CatalogEntry, components: Sequence[Component]) -> Iterator[Part]:
    """The servers of a component's configuration, agents first; a component itself is no part of what it is made of."""
    for server in (*entry.agents, *entry.resources_servers, *entry.models):
        target = _component_of(server, components)
        yield Part(server, None if target == component_key(entry) else target)


def users_of(entry: CatalogEntry, components: Sequence[Component]) -> list[CatalogEntry]:
    """The benchmarks and environments whose configuration has a server of this component."""
    if entry.kind in WORKLOADS:
        return []
    return [
        other
        for other in components
        if isinstance(other, CatalogEntry)
        and other.kind in WORKLOADS
        and any(
            _KIND_OF_TYPE.get(server.type) == entry.kind and server.implementation == entry.model_group
            for server in other.servers
        )
    ]


def _component_of(server: Server, components: Sequence[Component]) -> ComponentKey | None:
    """The component with the name of the implementation, else the first of its folder."""
    kind = _KIND_OF_TYPE.get(server.type)
    of_folder = None
    for component in components:
        if component.kind == kind and component.name.partition("/")[0] == server.implementation:
            if component.name == server.implementation:
                return component_key(component)
            of_folder = of_folder or component_key(component)
    return of_folder
