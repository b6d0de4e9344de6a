"""Putting another agent in the place of the loaded ones: `--agent-type`, or a standalone agent configuration.

Standalone configurations leave `resources_server.name` at `???`. Such an *unbound* agent replaces every other agent that has a
resources server, and takes over what ties that one to its environment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from backend.config.errors import (
    AgentCompositionError,
    ConfigError,
    UnsupportedAgentOverrideError,
    UnsupportedAgentPairingError,
)
from backend.config.findings import Findings
from backend.config.interpolation import resolve_text
from backend.config.merge import merge_into
from backend.config.nodes import Node, Origin, Setting, format_path, node_of, plain, walk
from backend.config.schema import AGENTS, MISSING, RESERVED_KEYS, RESOURCES
from backend.errors import Place, closest

ALLOW_PAIRING_VARIABLE = "NEMO_GYM_ALLOW_UNSUPPORTED_PAIRING"
_CARRIED_OVER = ("resources_server", "model_server", "datasets")


@dataclass(frozen=True, slots=True)
class _Agent:
    instance: str
    implementation: str
    node: Node
    """The implementation block."""
    resources_server: str | None
    """Name of its resources server, `???` for an unbound agent, None for a self-contained one."""


def hold_back_overrides(below: Node, overrides: Node) -> dict[str, Node]:
    """Take out of the override layer the blocks for agents that only composition will create.

    `below` is the merge of everything under the overrides. Only blocks that nothing below defines and that are no complete
    agents themselves are held back, and only where an unbound agent is loaded.
    """
    if not any(agent.resources_server == MISSING for agent in _agents(below)):
        return {}
    held = {}
    for name, block in list(overrides.value.items()):
        if name in below.value or not isinstance(block.value, dict) or AGENTS not in block.value:
            continue
        entries = block.value[AGENTS].value
        complete = isinstance(entries, dict) and any(
            isinstance(node.value, dict) and "entrypoint" in node.value for node in entries.values()
        )
        if not complete:
            held[name] = overrides.value.pop(name)
    return held


def compose_agents(root: Node, held: dict[str, Node], findings: Findings) -> None:
    """Replace agents by the unbound one, in place. Raises AgentCompositionError and its relatives."""
    agents = list(_agents(root))
    unbound = [agent for agent in agents if agent.resources_server == MISSING]
    if not unbound:
        merge_into(root, Node(held, root.history))
        return
    if len(unbound) > 1:
        names = ", ".join(f"'{agent.instance}'" for agent in unbound)
        raise AgentCompositionError(
            f"{len(unbound)} agents have no resources server: {names}",
            place=unbound[1].node.source.place(unbound[1].instance),
            hint="load one agent configuration, or set resources_server.name of the others",
        )
    new, targets = unbound[0], [agent for agent in agents if agent.resources_server not in (None, MISSING)]
    if not targets:
        raise AgentCompositionError(
            f"agent '{new.instance}' has no resources server, and no loaded agent has one that it could take over",
            place=new.node.source.place(new.instance),
            hint="add --benchmark, --environment or --resources-server, or set"
            f" ++{new.instance}.{AGENTS}.{new.implementation}.resources_server.name=<instance>",
        )
    _check_pairing(root, new, targets)
    renamed = _new_names(root, new, targets)
    _check_old_names_unused(root, renamed)
    _replace(root, new, targets, renamed, findings)
    _apply_held(root, held, set(renamed.values()))
    add_to_agent_map(root, renamed, Origin("composition", f"agents replaced by {new.implementation}"))


def add_to_agent_map(root: Node, names: dict[str, str], origin: Origin) -> None:
    """Extend `agent_map` by entries that the user has not made."""
    present = root.value.get("agent_map")
    if present is None or not isinstance(present.value, dict):
        if present is not None and present.value is not None:
            raise ConfigError("'agent_map' must be a mapping from agent to agent", place=present.source.place("agent_map"))
        root.value["agent_map"] = node_of(dict(names), origin)
        return
    for old, new in names.items():
        present.value.setdefault(old, node_of(new, origin))


def pairing_allowed(tree: dict[Any, Any]) -> bool:
    """Whether agents may be paired with resources servers that do not list them."""
    if tree.get("allow_unsupported_pairing") is True:
        return True
    return os.environ.get(ALLOW_PAIRING_VARIABLE, "").lower() not in ("", "0", "false")


def allowed_agents(block: dict[Any, Any], instance: str, place: Place | None = None) -> list[str] | None:
    """The agent implementations that a resources server's block allows; None for all. A bare name counts as a list of one."""
    value = block.get("allowed_agents")
    if value is None:
        return None
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"'allowed_agents' of '{instance}' must be a list of agent names", place=place)
    return names


def _agents(root: Node) -> Iterator[_Agent]:
    for name, block in root.value.items():
        if name in RESERVED_KEYS or not isinstance(block.value, dict) or AGENTS not in block.value:
            continue
        entries = block.value[AGENTS].value
        if not isinstance(entries, dict):
            continue
        for implementation, node in entries.items():
            if isinstance(node.value, dict) and isinstance(name, str) and isinstance(implementation, str):
                yield _Agent(name, implementation, node, _resources_server(root, node))
            break


def _resources_server(root: Node, agent: Node) -> str | None:
    reference = agent.value.get("resources_server")
    if reference is None or not isinstance(reference.value, dict) or "name" not in reference.value:
        return None
    name = reference.value["name"].value
    return str(resolve_text(root, name)) if isinstance(name, str) else None


def _check_pairing(root: Node, new: _Agent, targets: Sequence[_Agent]) -> None:
    tree = {key: node.value for key, node in root.value.items() if not isinstance(node.value, dict | list)}
    if pairing_allowed(tree):
        return
    rejected: dict[str, list[str]] = {}
    place = None
    for target in targets:
        block = root.value.get(target.resources_server)
        entries = block.value.get(RESOURCES) if block is not None and isinstance(block.value, dict) else None
        for name, node in entries.value.items() if entries is not None and isinstance(entries.value, dict) else ():
            field = node.value.get("allowed_agents") if isinstance(node.value, dict) else None
            if field is None:
                continue
            place = field.source.place(format_path((target.resources_server, RESOURCES, name, "allowed_agents")))
            allowed = allowed_agents({"allowed_agents": plain(field)}, str(target.resources_server), place)
            if allowed is not None and new.implementation not in allowed:
                rejected[str(target.resources_server)] = allowed
    if rejected:
        common = [name for name in next(iter(rejected.values())) if all(name in names for names in rejected.values())]
        raise UnsupportedAgentPairingError(
            f"agent '{new.implementation}' is not allowed by {', '.join(repr(name) for name in rejected)}",
            place=place,
            nearest=closest(new.implementation, common),
            hint=f"Select one of: {', '.join(common) or '(none suits all)'}; or pass --allow-unsupported-pairing",
            fix=f"--agent-type {common[0]}" if common else "--allow-unsupported-pairing",
        )


def _new_names(root: Node, new: _Agent, targets: Sequence[_Agent]) -> dict[str, str]:
    renamed: dict[str, str] = {}
    for target in targets:
        old, base = target.instance, target.instance
        for suffix in (f"_{target.implementation}", target.implementation, "_agent"):
            if old.endswith(suffix):
                base = old.removesuffix(suffix)
                break
        name = f"{base}_{new.implementation}" if base else new.implementation
        taken = name in renamed.values() or (
            name in root.value and name != new.instance and name not in (agent.instance for agent in targets)
        )
        if taken:
            raise AgentCompositionError(
                f"agent '{old}' would become '{name}', but that name is taken", place=target.node.source.place(old)
            )
        renamed[old] = name
    return renamed


def _check_old_names_unused(root: Node, renamed: dict[str, str]) -> None:
    uses: list[tuple[str, str, Origin]] = []
    for key in ("agent_name", "fan_out"):
        for path, node in walk(root.value[key], (key,)) if key in root.value else ():
            uses.append((format_path(path), str(node.value), node.source))
    agent_map = root.value.get("agent_map")
    for name, node in agent_map.value.items() if agent_map is not None and isinstance(agent_map.value, dict) else ():
        uses.append((f"agent_map.{name}", str(node.value), node.source))
    stale = [(key, value, origin) for key, value, origin in uses if value in renamed and renamed[value] != value]
    if stale:
        key, _, origin = stale[0]
        raise AgentCompositionError(
            "settings name agents that are replaced",
            place=origin.place(key),
            details=[f"  - {key}: '{value}' is now '{renamed[value]}'" for key, value, _ in stale],
            hint="use the new names",
        )


def _replace(root: Node, new: _Agent, targets: Sequence[_Agent], renamed: dict[str, str], findings: Findings) -> None:
    by_name = {target.instance: target for target in targets}
    block = root.value[new.instance]
    result: dict[str, Node] = {}
    created: dict[str, Node] = {}
    for name, node in root.value.items():
        if name == new.instance:
            continue
        target = by_name.get(name)
        if target is None:
            result[name] = node
            continue
        _remark_on_lost_overrides(target, renamed[name], findings)
        origin = Origin("composition", f"replaces agent '{name}'", node.source.file, node.source.line, node.source.column)
        composed = block.copy()
        composed.history = (*composed.history, Setting(origin, composed.value))
        fields = composed.value[AGENTS].value[new.implementation].value
        for field in _CARRIED_OVER:
            if field in target.node.value:
                fields[field] = target.node.value[field].copy()
        created[renamed[name]] = composed
    root.value = {**result, **created}


def _remark_on_lost_overrides(target: _Agent, new_name: str, findings: Findings) -> None:
    for key, node in target.node.value.items():
        lost = [item for _, item in walk(node) if item.source.kind in ("override", "flag")]
        if key not in _CARRIED_OVER and lost:
            findings.warn(
                f"agent '{target.instance}' is replaced by '{new_name}'; its setting {lost[0].source} has no effect",
                hint=f"set it on '{new_name}'",
            )


def _apply_held(root: Node, held: dict[str, Node], created: set[str]) -> None:
    for name, node in held.items():
        if name not in created:
            raise UnsupportedAgentOverrideError(
                f"no agent '{name}' comes out of the composition; it creates {', '.join(repr(item) for item in sorted(created))}",
                place=node.source.place(name),
                nearest=(near := closest(name, created)),
                fix=node.source.text.replace(name, near, 1) if near else None,
            )
        merge_into(root.value[name], node, within=root)
