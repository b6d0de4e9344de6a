"""The dialect of configuration files: a YAML loader, and bounds on what a file may hold.

The dialect is OmegaConf's, because existing files are written for it: YAML 1.1, with `1e3` a number, dates plain text, duplicate keys an
error, no tags beyond the standard scalars.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

MAX_NODES = 50_000
"""Aliases are expanded; this bounds what a small file can expand to. The largest configurations have some hundred values."""
MAX_DEPTH = 200
_MOST_BITS = 1 << 13
"""Of an integer; Python refuses to print longer ones."""
_MOST_SHOWN = 40
"""Characters of a wrong value that a message repeats."""

_BASE_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
FLOAT_TAG = "tag:yaml.org,2002:float"
FLOAT_STARTS = list("-+0123456789.")
FLOAT = re.compile(
    r"""^(?:[-+]?[0-9]+(?:_[0-9]+)*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)
           |[-+]?[0-9]+(?:_[0-9]+)*\.[0-9_]*
           |\.[0-9]+(?:_[0-9]+)*(?:[eE][-+][0-9]+)?
           |[-+]?[0-9]+(?:_[0-9]+)*(?::[0-5]?[0-9])+\.[0-9_]*
           |[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$""",
    re.VERBOSE,
)
"""Numbers of this dialect."""
TAG = "tag:yaml.org,2002:"
_INT = f"{TAG}int"


class Loader(_BASE_LOADER):
    """PyYAML's safe loader (in C where it was built) with this dialect."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        self.refuse_duplicates(node)
        return super().construct_mapping(node, deep=deep)

    def refuse_duplicates(self, node: Any) -> None:
        """Raise for a key that is written twice in one mapping."""
        if not isinstance(node, yaml.MappingNode):
            return
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else None
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key.value!r} is there twice", key.start_mark)
            if name is not None and key.tag != f"{TAG}merge":
                seen.add(name)


class _CountingLoader(Loader):
    """Notices too many values while it reads, which takes seconds for some megabytes."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._count = 0

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        self._count += 1
        if self._count > MAX_NODES:
            raise yaml.constructor.ConstructorError(None, None, f"the file has more than {MAX_NODES} values")
        return super().resolve(kind, value, implicit)


def loader_for(text: str) -> Loader:
    """A loader for a text; each value takes two characters at least."""
    return _CountingLoader(text) if len(text) > 2 * MAX_NODES else Loader(text)


def _number(loader: Loader, node: Any) -> int | float:
    construct = loader.construct_yaml_int if node.tag == _INT else loader.construct_yaml_float
    try:
        value: int | float = construct(node)
        if not isinstance(value, int) or value.bit_length() <= _MOST_BITS:
            return value
    except (ValueError, ArithmeticError):
        pass
    text = node.value if len(node.value) <= _MOST_SHOWN else f"{node.value[:_MOST_SHOWN]}…"
    problem = f"`{text}` cannot be read as a number; quote it to keep the text"
    raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


Loader.add_constructor(_INT, _number)
Loader.add_constructor(FLOAT_TAG, _number)
Loader.add_implicit_resolver(FLOAT_TAG, FLOAT, FLOAT_STARTS)
Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (f"{TAG}timestamp", f"{TAG}value")]
    for first, resolvers in Loader.yaml_implicit_resolvers.items()
}


def refuse_bombs(document: yaml.Node) -> None:
    """Raise for a document that is too large or too deep when its aliases are expanded; nothing is expanded to find out."""
    extents: dict[int, tuple[int, int] | None] = {}
    """Values and levels below a collection, by the id of its node; None while they are being counted."""

    def refuse(problem: str, item: yaml.Node) -> None:
        raise yaml.constructor.ConstructorError(None, None, problem, item.start_mark)

    def extent(item: yaml.Node, depth: int) -> tuple[int, int]:
        if isinstance(item, yaml.ScalarNode):
            return 1, 0
        known = extents.get(id(item), (0, 0))
        if known is None:
            refuse("an alias contains itself", item)
        elif known == (0, 0) and depth <= MAX_DEPTH:
            extents[id(item)] = None
            values = item.value if isinstance(item, yaml.SequenceNode) else [value for _, value in item.value]
            below = [extent(value, depth + 1) for value in values]
            known = 1 + sum(size for size, _ in below), 1 + max((levels for _, levels in below), default=0)
            extents[id(item)] = known
        assert known is not None
        if depth + known[1] > MAX_DEPTH:
            refuse(f"nested more than {MAX_DEPTH} levels deep", item)
        if known[0] > MAX_NODES:
            refuse(f"the file expands to more than {MAX_NODES} values", item)
        return known

    extent(document, 0)
