"""The merge of layers: OmegaConf's rules on nodes, so that each key keeps the chain of who set it.

Mappings merge deeply; a list replaces a list; null and scalars replace anything; `???` never replaces a value; a mapping merged
onto an interpolation of a mapping merges onto a copy of what it stands for; mapping against list is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from backend.config.errors import ConfigMergeError
from backend.config.interpolation import dereference, is_interpolation
from backend.config.nodes import KeyPath, Node, find, format_path
from backend.config.schema import MISSING

Report = Callable[[ConfigMergeError, KeyPath], None]


def merge_into(target: Node, layer: Node, *, within: Node | None = None, report: Report | None = None) -> None:
    """Merge `layer` onto the mapping `target`, in place; `layer` is left as it is.

    Interpolations see the tree `within`, which is `target` itself unless that is only a part of a tree. A key that cannot be merged
    keeps its value and is told to `report`; without it, ConfigMergeError is raised.
    """
    _merge_mapping(target if within is None else within, (), target, layer, report)


def merged(earlier: Node, later: Node) -> Node:
    """A new tree with `later` merged onto `earlier`, where both stand for themselves."""
    wrapper = Node({"value": earlier.copy()}, earlier.history)
    merge_into(wrapper, Node({"value": later}, later.history))
    result: Node = wrapper.value["value"]
    return result


def _merge_mapping(root: Node, path: KeyPath, earlier: Node, later: Node, report: Report | None) -> None:
    for key, node in later.value.items():
        place = (*path, key)
        present = earlier.value.get(key)
        if present is None:
            earlier.value[key] = node.copy()
        else:
            earlier.value[key] = _merge_value(root, place, present, node, report)
    earlier.history = (*earlier.history, *later.history)


def _merge_value(root: Node, path: KeyPath, present: Node, node: Node, report: Report | None) -> Node:
    if isinstance(node.value, str) and node.value == MISSING:
        return present
    if isinstance(node.value, dict | list) and is_interpolation(present.value):
        target = dereference(root, path, present)
        # What contains the key itself has no value that it could be merged onto.
        if target is not None and not any(find(root, path[:length]) is target for length in range(len(path))):
            present = Node(target.copy().value, (*target.history, *present.history))
    if isinstance(present.value, dict) and isinstance(node.value, dict):
        _merge_mapping(root, path, present, node, report)
        return present
    if isinstance(present.value, dict | list) and isinstance(node.value, dict | list) and _differ(present.value, node.value):
        error = ConfigMergeError(
            f"'{format_path(path)}' is {_kind(node.value)} here, but {_kind(present.value)} in {present.source}",
            place=node.source.place(format_path(path)),
            hint="give both layers the same kind of value",
        )
        if report is None:
            raise error
        report(error, path)
        return present
    replaced = node.copy()
    replaced.history = (*present.history, *node.history)
    return replaced


def _differ(left: Any, right: Any) -> bool:
    return isinstance(left, dict) != isinstance(right, dict)


def _kind(value: Any) -> str:
    return "a mapping" if isinstance(value, dict) else "a list"
