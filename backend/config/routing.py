"""Which agent runs the rows of a dataset: one rule for listing, preparation, manifest checks and dispatch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backend.config.errors import ConfigError
from backend.config.resolution import ResolvedConfig, ServerInstance
from backend.config.schema import AGENTS, MISSING, MODELS, RESOURCES
from backend.errors import did_you_mean


@dataclass(frozen=True, slots=True)
class DatasetRoute:
    """A dataset and the agent that runs its rows."""

    declared_by: str
    """The server instance whose `datasets` lists it."""
    agent: str
    """The agent instance."""
    dataset: Mapping[str, Any]
    """The entry as configured."""


def agents_by_resources_server(config: ResolvedConfig) -> dict[str, tuple[str, ...]]:
    """Agent instances by the name of the resources server they use, in the order of the configuration."""
    found: dict[str, list[str]] = {}
    for server in config.servers:
        if server.kind == AGENTS and (name := used_resources_server(server)):
            found.setdefault(name, []).append(server.name)
    return {name: tuple(agents) for name, agents in found.items()}


def used_resources_server(agent: ServerInstance) -> str | None:
    """The resources server that an agent uses; None for a self-contained agent."""
    reference = agent.block.get("resources_server")
    name = reference.get("name") if isinstance(reference, Mapping) else None
    return name if isinstance(name, str) and name != MISSING else None


def agent_routes(config: ResolvedConfig) -> tuple[DatasetRoute, ...]:
    """The agent of every configured dataset.

    A dataset on an agent belongs to that agent. One on a resources server belongs to the agent that its `agent` key or `agent_map`
    names, else to the only agent that uses the server. Raises ConfigError where that leaves none or several.
    """
    routes = []
    users = agents_by_resources_server(config)
    for server in config.servers:
        for index, dataset in enumerate(server.block.get("datasets") or ()):
            place = f"{server.name}.{server.kind}.{server.implementation}.datasets[{index}]"
            routes.append(DatasetRoute(server.name, _agent_for(config, server, dataset, users, place), dataset))
    return tuple(routes)


def _agent_for(
    config: ResolvedConfig, server: ServerInstance, dataset: Mapping[str, Any], users: Mapping[str, tuple[str, ...]], path: str
) -> str:
    place, name, pin = config.origins.place(path), dataset.get("name"), dataset.get("agent")
    if server.kind == MODELS:
        raise ConfigError(f"dataset '{name}' is declared on the model server '{server.name}'", place=place)
    if server.kind == AGENTS:
        if pin is not None and pin != server.name:
            raise ConfigError(f"dataset '{name}' of agent '{server.name}' is pinned to another agent, '{pin}'", place=place)
        return server.name
    candidates = users.get(server.name, ())
    if pin is None and len(candidates) > 1:
        mapped = config.get("agent_map") or {}
        pin = mapped.get(server.name) if isinstance(mapped, Mapping) else None
    shown = ", ".join(candidates) or "(none)"
    if pin is not None:
        if pin not in candidates:
            raise ConfigError(
                f"dataset '{name}' is pinned to agent '{pin}', which does not use the {RESOURCES} '{server.name}'",
                place=place,
                details=[f"agents that use it: {shown}"],
                hint=did_you_mean(str(pin), candidates),
            )
        return str(pin)
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise ConfigError(
            f"no agent uses the {RESOURCES} '{server.name}' that declares dataset '{name}'",
            place=place,
            hint=f"point an agent's resources_server at '{server.name}', for instance with --agent-type",
        )
    raise ConfigError(
        f"several agents use the {RESOURCES} '{server.name}' that declares dataset '{name}': {shown}",
        place=place,
        hint=f"choose one with `agent:` in the dataset, or +agent_map={{{server.name}: {candidates[0]}}}",
    )
