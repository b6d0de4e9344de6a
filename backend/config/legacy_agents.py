"""Agents that once had another name: rows, settings and habits that still use it lead to the present one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from backend.config.composition import add_to_agent_map
from backend.config.errors import ConfigInterpolationError
from backend.config.interpolation import resolve_text
from backend.config.nodes import Node, Origin
from backend.config.schema import LEGACY_AGENTS

_PRESENT_NAME = Origin("composition", "the agent's present name")


def follow_legacy_agent_names(root: Node) -> None:
    """Map old agent names to the agents that are here, and let settings that choose agents name these; in place.

    Entries of `agent_map` that the user has made stay. Raises ConfigError where that is no mapping.
    """
    present = _present_names(root)
    if not present:
        return
    add_to_agent_map(root, present, Origin("default", "legacy agent names"))
    for node in _choices(root):
        name = _text(root, node)
        if name in present:
            node.set(present[name], _PRESENT_NAME)


def _present_names(root: Node) -> dict[str, str]:
    """Old name to present instance, of those agents only whose old name nobody has now.

    Where `agent_map` sends the canonical name elsewhere, as composition makes it do, the old one goes there too.
    """
    agent_map = root.value.get("agent_map")
    mapped = agent_map.value if agent_map is not None and isinstance(agent_map.value, dict) else {}
    names = {}
    for old, new in ((f"{old}_agent", f"{new}_agent") for old, new in LEGACY_AGENTS.items()):
        target = _text(root, mapped[new]) if new in mapped else new
        if isinstance(target, str) and target in root.value and old not in root.value:
            names[old] = target
    return names


def _choices(root: Node) -> Iterator[Node]:
    """The nodes that name agents to run."""
    if "agent_name" in root.value:
        yield root.value["agent_name"]
    agent_map, fan_out = (root.value.get(key) for key in ("agent_map", "fan_out"))
    if agent_map is not None and isinstance(agent_map.value, dict):
        yield from agent_map.value.values()
    for node in fan_out.value.values() if fan_out is not None and isinstance(fan_out.value, dict) else ():
        if isinstance(node.value, list):
            yield from node.value


def _text(root: Node, node: Node) -> Any:
    """The value of a node where that is a text; None for anything else, and for what cannot be evaluated."""
    if not isinstance(node.value, str):
        return None
    try:
        value = resolve_text(root, node.value)
    except ConfigInterpolationError:  # is reported with all the others
        return None
    return value if isinstance(value, str) else None
