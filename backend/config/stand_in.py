"""The stand-in for a model that a command does not need, and how it gives way to a configured one."""

from __future__ import annotations

from backend.config.merge import merged
from backend.config.nodes import Node, Origin, node_of
from backend.config.schema import SERVER_TYPES, STAND_IN_IMPLEMENTATION, STAND_INS


def stand_in_layer() -> Node:
    """The layer that blanks the policy settings and defines a `policy_model`."""
    return node_of(STAND_INS, Origin("stand_in", "(no model)"))


def remove_covered_stand_ins(root: Node) -> None:
    """Where a block has the stand-in beside a real implementation, fold the stand-in's fields under that one."""
    for block in root.value.values():
        if not isinstance(block.value, dict):
            continue
        for kind in SERVER_TYPES:
            below = block.value.get(kind)
            if below is None or not isinstance(below.value, dict) or STAND_IN_IMPLEMENTATION not in below.value:
                continue
            real = next((name for name in below.value if name != STAND_IN_IMPLEMENTATION), None)
            if real is None or not isinstance(below.value[real].value, dict):
                continue
            stand_in = below.value.pop(STAND_IN_IMPLEMENTATION)
            below.value[real] = _under(stand_in, below.value[real])


def _under(stand_in: Node, real: Node) -> Node:
    combined = merged(stand_in, real)
    order = [*real.value, *(key for key in combined.value if key not in real.value)]
    return Node({key: combined.value[key] for key in order}, real.history)
