"""How far interpolations lead, counted before any of them is evaluated.

OmegaConf evaluates a key again for everything that refers to it, so that a dozen lines which each name the one before ten times would
keep it busy for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from backend.config.nodes import KeyPath, Node, find, parse_path

MOST_EVALUATIONS = 300
"""For one value; OmegaConf takes up to 3 ms for each."""
MOST_LINKS = 100
"""One key after the other until there is a value."""

REFERENCE = re.compile(r"\$\{(?:oc\.select:)?\s*([A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*[,}]")
"""A key that a text refers to."""
_RELATIVE = re.compile(r"\$\{(?:oc\.select:)?\s*(?P<dots>\.+)(?P<key>[A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*[,}]")


@dataclass(slots=True)
class Reach:
    """Counts on one tree, which must not change meanwhile."""

    root: Node
    _known: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Evaluations and links by the id of a node."""

    def is_too_far(self, path: KeyPath, node: Node) -> bool:
        """Whether the value of the node at `path` takes more evaluations or links than anybody means."""
        evaluations, links = self.of(path, node)
        return evaluations > MOST_EVALUATIONS or links > MOST_LINKS

    def of(self, path: KeyPath, node: Node) -> tuple[int, int]:
        """How many interpolations are evaluated for the node at `path`, and how many in a row. A circle counts once."""
        opened: set[int] = set()
        waiting = [(path, node)]
        while waiting:
            here, item = waiting[-1]
            below = list(self._below(here, item))
            if id(item) not in opened:
                opened.add(id(item))
                fresh = [entry for entry in below if id(entry[1]) not in self._known and id(entry[1]) not in opened]
                waiting.extend(fresh)
                if fresh:
                    continue
            waiting.pop()
            counts = [self._known.get(id(target), (0, 0)) for _, target in below]
            own = item.value.count("${") if isinstance(item.value, str) else 0
            evaluations = own + sum(count for count, _ in counts)
            self._known[id(item)] = evaluations, min(own, 1) + max((links for _, links in counts), default=0)
        return self._known[id(node)]

    def _below(self, path: KeyPath, node: Node) -> Iterator[tuple[KeyPath, Node]]:
        """What is evaluated for a node: what a text refers to, what is in a mapping or list."""
        value = node.value
        if isinstance(value, dict):
            yield from (((*path, key), item) for key, item in value.items())
        elif isinstance(value, list):
            yield from (((*path, index), item) for index, item in enumerate(value))
        elif isinstance(value, str) and "${" in value:
            keys = [parse_path(name) for name in REFERENCE.findall(value)]
            for match in _RELATIVE.finditer(value):
                keys.append((*path[: max(len(path) - len(match["dots"]), 0)], *parse_path(match["key"])))
            yield from ((target, found) for target in keys if (found := find(self.root, target)) is not None)
