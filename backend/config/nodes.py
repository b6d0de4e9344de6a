"""Configuration trees in which every key knows who set it, and what that beat.

A tree is made of `Node`s; mappings and lists inside it hold nodes, everything else is a plain scalar. All stages of resolution (merge,
directives, composition, defaults) work on nodes, so that provenance survives moving and copying; `plain` takes the values out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from backend.errors import Place

KeyPath = tuple[Any, ...]
"""Keys from the root, integers for list elements; keys of mappings may be integers or booleans as well."""

PASSING_ON = frozenset({"directive", "composition", "interpolation", "variable"})
"""Kinds of origins that bring a value to a key without being the place where that is written down."""

_MOST_STEPS, _FIRST_STEPS, _LAST_STEPS = 12, 4, 6
_PLAIN_KEY = re.compile(r"[^.\[\]\s]+")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was set."""

    kind: str
    """`file`, `env_file`, `stand_in`, `initial`, `flag`, `override`, `directive`, `composition`, `interpolation`, `variable` or `default`."""
    text: str = ""
    """The flag or override as typed, the directive, the interpolation, the environment variable, the rule that made a default."""
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def place(self, key: str | None = None) -> Place:
        """The same as a place for messages; a flag or override stands where a file would."""
        return Place(self.file or self.text or None, self.line, self.column, key)

    def __str__(self) -> str:
        place = str(Place(self.file, self.line))
        return f"{place} {self.text}".strip() or self.kind


@dataclass(frozen=True, slots=True)
class Setting:
    """One step in the life of a key: somebody set it to something."""

    origin: Origin
    raw: Any
    """The value as in a node; `value` gives it without nodes."""
    left_out: int = 0
    """How many steps it stands for, where a history was shortened."""

    @property
    def value(self) -> Any:
        return plain_value(self.raw)


@dataclass(slots=True)
class Node:
    """A value and everybody who set it, the last of whom won."""

    value: Any
    """A scalar, a `dict[Any, Node]` or a `list[Node]`."""
    history: tuple[Setting, ...]

    @property
    def origin(self) -> Origin:
        """Who set the present value."""
        return self.history[-1].origin

    @property
    def source(self) -> Origin:
        """Where the present value is written down: the last origin that does not only pass a value on."""
        for setting in reversed(self.history):
            if setting.origin.kind not in PASSING_ON:
                return setting.origin
        return self.origin

    @property
    def introduced(self) -> Origin:
        """Where the key was written down first: of a mapping, to which every later layer may have added something."""
        return next((setting.origin for setting in self.history if setting.origin.kind not in PASSING_ON), self.origin)

    def copy(self) -> Node:
        """The same tree in new containers; scalars and histories are shared."""
        return Node(_copied(self.value), self.history)

    def set(self, value: Any, origin: Origin) -> None:
        """Give the key a new value on top of its history; `value` is plain."""
        node = node_of(value, origin)
        self.value, self.history = node.value, (*self.history, *node.history)


def shortened(history: tuple[Setting, ...]) -> tuple[Setting, ...]:
    """A history with one step in the place of those in its middle, where there are too many to read, and to copy from heir to heir."""
    if len(history) <= _MOST_STEPS:
        return history
    middle = history[_FIRST_STEPS : len(history) - _LAST_STEPS]
    count = sum(setting.left_out or 1 for setting in middle)
    gap = Setting(Origin("directive", f"{count} further steps"), middle[-1].raw, count)
    return (*history[:_FIRST_STEPS], gap, *history[-_LAST_STEPS:])


def node_of(value: Any, origin: Origin) -> Node:
    """The tree for a plain value, every key set by `origin`."""
    if isinstance(value, dict):
        value = {key: node_of(item, origin) for key, item in value.items()}
    elif isinstance(value, list | tuple):
        value = [node_of(item, origin) for item in value]
    return Node(value, (Setting(origin, value),))


def plain(node: Node) -> Any:
    """The values of a tree in plain containers."""
    return plain_value(node.value)


def plain_value(value: Any) -> Any:
    """As `plain`, for the value of a node."""
    if isinstance(value, dict):
        return {key: plain_value(item.value) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_value(item.value) for item in value]
    return value


def walk(node: Node, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Node]]:
    """Every node below and including `node` with its path, parents first, in order."""
    yield path, node
    if isinstance(node.value, dict):
        for key, item in node.value.items():
            yield from walk(item, (*path, key))
    elif isinstance(node.value, list):
        for index, item in enumerate(node.value):
            yield from walk(item, (*path, index))


def child_entry(node: Node, key: Any) -> tuple[Any, Node] | None:
    """The entry below `key` with the key as the tree has it; a digit string also finds an integer key or a list element."""
    value = node.value
    if isinstance(value, dict):
        if key in value:
            return key, value[key]
        return next(((name, item) for name, item in value.items() if not isinstance(name, str) and _key_text(name) == key), None)
    if isinstance(value, list) and (isinstance(key, int) or key.isdecimal()):
        index = int(key)
        return (index, value[index]) if 0 <= index < len(value) else None
    return None


def child(node: Node, key: Any) -> Node | None:
    """The node of `child_entry`."""
    entry = child_entry(node, key)
    return entry[1] if entry else None


def find(root: Node, path: KeyPath) -> Node | None:
    """The node at `path`, None where there is none."""
    node: Node | None = root
    for key in path:
        if node is None:
            return None
        node = child(node, key)
    return node


def parse_path(text: str) -> KeyPath:
    """The keys of `a.b[0].c`; every key comes out as a string."""
    return tuple(_PLAIN_KEY.findall(text))


def format_path(path: KeyPath) -> str:
    """`a.b[0].c`; list positions in brackets."""
    text = ""
    for key in path:
        if isinstance(key, int) and not isinstance(key, bool):
            text += f"[{key}]"
        else:
            text += ("." if text else "") + _key_text(key)
    return text


def _key_text(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item.copy() for key, item in value.items()}
    if isinstance(value, list):
        return [item.copy() for item in value]
    return value


class Origins:
    """Who set each key of a resolved configuration, and what that beat."""

    def __init__(self, root: Node) -> None:
        self.root = root

    def chain(self, path: str | KeyPath) -> tuple[Setting, ...]:
        """Everybody who set the key, in order of precedence, the winner last; empty for an unknown key."""
        node = find(self.root, parse_path(path) if isinstance(path, str) else path)
        return node.history if node else ()

    def place(self, path: str | KeyPath) -> Place | None:
        """Where the key's value is written down; the nearest parent's place for a key that nobody wrote."""
        keys = parse_path(path) if isinstance(path, str) else path
        for length in range(len(keys), 0, -1):
            node = find(self.root, keys[:length])
            if node is not None:
                return node.source.place(format_path(keys))
        return None

    def items(self) -> Iterator[tuple[KeyPath, tuple[Setting, ...]]]:
        """Path and chain of every key."""
        for path, node in walk(self.root):
            if path:
                yield path, node.history
