"""Which agents may run which rows, decided from the resolved configuration of the servers that are up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from backend.config.composition import allowed_agents, pairing_allowed
from backend.config.errors import UnsupportedAgentPairingError
from backend.config.schema import AGENTS, MODELS, RESOURCES
from backend.datasets.server_blocks import ServerBlock, server_blocks
from backend.errors import GymError, did_you_mean


class AgentRoutingError(GymError, ValueError):
    """Rows cannot be brought to an agent of the running configuration."""


def resolve_sources(sources: Iterable[str], tree: Mapping[str, Any]) -> dict[str, str]:
    """The agent instance for each `task_source`.

    An agent instance stands for itself; a resources server for the agent that its datasets pin, else for the only agent that uses
    it. Raises `AgentRoutingError` with one line for every source that this does not settle.
    """
    servers = {server.instance: server for server in server_blocks(tree)}
    resolved: dict[str, str] = {}
    problems: list[str] = []
    for source in dict.fromkeys(sources):
        try:
            resolved[source] = _agent_for(source, servers)
        except AgentRoutingError as error:
            problems.append(f"task_source '{source}': {error.message}" + (f" ({error.hint})" if error.hint else ""))
    if problems:
        raise AgentRoutingError(
            f"{len(problems)} task_source(s) lead to no agent",
            details=problems,
            hint="choose the agent for all rows with --agent, or for one source with +agent_map={source: agent}",
        )
    return resolved


def check_agents(agents: Iterable[str], tree: Mapping[str, Any]) -> None:
    """Raise `AgentRoutingError` unless all are agent instances of the configuration, with one line for each that is not."""
    servers = {server.instance: server for server in server_blocks(tree)}
    known = [name for name, server in servers.items() if server.kind == AGENTS]
    problems = []
    for name in dict.fromkeys(agents):
        if name not in servers:
            problems.append(f"'{name}' is not in the running configuration. {did_you_mean(name, known) or ''}".rstrip())
        elif servers[name].kind != AGENTS:
            problems.append(f"'{name}' exists but is not an agent: it is one of {servers[name].kind}")
    if problems:
        raise AgentRoutingError(
            f"{len(problems)} of the agents that rows need are not running",
            details=problems,
            hint=f"agents: {', '.join(known) or '(none)'}",
        )


def check_pairings(pairs: Iterable[tuple[str, str | None]], tree: Mapping[str, Any]) -> None:
    """Raise `UnsupportedAgentPairingError` for (agent, task_source) pairs that a resources server does not allow.

    Both the server of the rows' `task_source` and the one that the agent is bound to have a say, through `allowed_agents`. Nothing is
    checked where the configuration or the environment variable allows unsupported pairings.
    """
    if pairing_allowed(dict(tree)):
        return
    servers = {server.instance: server for server in server_blocks(tree)}
    problems: dict[str, None] = {}
    for agent, source in pairs:
        server = servers[agent]
        for name in dict.fromkeys((source, _resources_server_of(server))):
            resources = servers.get(name) if name else None
            if resources is None or resources.kind != RESOURCES:
                continue
            allowed = allowed_agents(dict(resources.fields), resources.instance)
            if allowed is not None and server.implementation not in allowed:
                problems[f"'{agent}' ({server.implementation}) on '{name}', which allows {', '.join(allowed) or '(none)'}"] = None
    if problems:
        raise UnsupportedAgentPairingError(
            f"{len(problems)} pairing(s) of agent and resources server are not supported",
            details=list(problems),
            hint="choose an agent that is allowed, or pass --allow-unsupported-pairing",
        )


def _agent_for(source: str, servers: Mapping[str, ServerBlock]) -> str:
    server = servers.get(source)
    if server is None:
        raise AgentRoutingError("no server instance has this name", hint=did_you_mean(source, servers))
    if server.kind == AGENTS:
        return source
    if server.kind == MODELS:
        raise AgentRoutingError("it is a model server; rows come from resources servers and agents")
    users = [name for name, other in servers.items() if other.kind == AGENTS and _resources_server_of(other) == source]
    entries = server.fields.get("datasets") or ()
    pins = list(dict.fromkeys(str(entry["agent"]) for entry in entries if isinstance(entry, Mapping) and entry.get("agent")))
    if len(pins) > 1:
        raise AgentRoutingError(f"its datasets pin different agents: {', '.join(pins)}")
    if pins:
        if pins[0] not in users:
            raise AgentRoutingError(
                f"its datasets pin '{pins[0]}', which is no agent that uses it (these do: {', '.join(users) or 'none'})",
                hint=did_you_mean(pins[0], users),
            )
        return pins[0]
    if len(users) != 1:
        raise AgentRoutingError(f"several agents use it: {', '.join(users)}" if users else "no agent uses it")
    return users[0]


def _resources_server_of(agent: ServerBlock) -> str | None:
    reference = agent.fields.get("resources_server")
    name = reference.get("name") if isinstance(reference, Mapping) else None
    return name if isinstance(name, str) else None
