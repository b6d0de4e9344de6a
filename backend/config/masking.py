"""What may be shown of a configuration tree: secrets masked by key name, by value, and where a value is taken from a secret."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from backend.config.interpolation import is_interpolation
from backend.config.nodes import KeyPath, Node, Origin, Setting, find, parse_path, plain_value, walk
from backend.io.redact import Redactor, hides_items, is_secret_path, paired_value

_SECRET = "api_key"
"""Any name that stands for a secret: the redactor masks by name."""
_REFERENCE = re.compile(r"\$\{(?!\s*(?:copy|inherit_from):)(?P<inside>[^{}$]*)")
"""What stands inside an interpolation; a directive in that form is known by the origin of what it brought."""
_NAME = re.compile(r"""[A-Za-z_][\w-]*(?:[.\[\]'"]+[\w-]+)*""")
_PART = re.compile(r"[\w-]+")
_ALL_VALUES = re.compile(r"\$\{oc\.dict\.values:\s*(?P<key>[^\s{},]+)")


class Masker:
    """Masks trees, single values and the texts of origins with one redactor."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self._taken: set[KeyPath] = set()
        """Where the trees seen by `keys` hold secrets under names that do not tell."""

    def is_secret(self, path: KeyPath, history: Sequence[Setting] = ()) -> bool:
        """Whether the key at `path`, or whatever its value was taken from, has the name of a secret."""
        return (
            is_secret_path(path, history[-1].raw if history else None)
            or _is_taken(history)
            or any(path[:length] in self._taken for length in range(1, len(path) + 1) if self._taken)
        )

    def value(self, raw: Any, *, secret: bool) -> Any:
        """A plain value as it may be shown; null, booleans and empty texts hide nothing."""
        value = plain_value(raw)
        return self.redactor.tree({_SECRET: value})[_SECRET] if secret else self.redactor.tree(value)

    def tree(self, node: Node, path: KeyPath = ()) -> Any:
        """The plain values below a node as they may be shown."""
        if isinstance(node.value, dict):
            shown = self.redactor.keys(node.value)
            return {name: self.tree(item, (*path, key)) for name, (key, item) in zip(shown, node.value.items(), strict=True)}
        if isinstance(node.value, list):
            return [self.tree(item, (*path, index)) for index, item in enumerate(node.value)]
        return self.value(node.value, secret=self.is_secret(path, node.history))

    def keys(self, node: Node) -> Node:
        """The tree with its values as they are, and its keys as they may be shown; what secrets are in it is remembered by path."""
        renamed = self._renamed(node)
        self._remember(renamed, (), renamed, frozenset())
        return renamed

    def _renamed(self, node: Node) -> Node:
        value = node.value
        if isinstance(value, dict):
            value = dict(zip(self.redactor.keys(value), map(self._renamed, value.values()), strict=True))
        elif isinstance(value, list):
            value = [self._renamed(item) for item in value]
        return Node(value, node.history)

    def origin(self, origin: Origin) -> Origin:
        """An origin whose text may be shown."""
        return replace(origin, text=self.redactor.text(origin.text)) if origin.text else origin

    def _remember(self, node: Node, path: KeyPath, root: Node, known: frozenset[Origin]) -> None:
        """Note the places at and below `path` that hold secrets; `known` are the directives that have brought the whole around it."""
        brought = {setting.origin for setting in node.history if setting.origin.kind == "directive"}
        sources = (parse_path(origin.text.partition(": ")[2]) for origin in brought - known)
        value = node.value
        if any(is_secret_path(source, value) for source in sources) or _is_taken(node.history) or _is_all_of_secrets(node, root):
            self._taken.add(path)
            return
        if isinstance(value, dict):
            paired = paired_value({key: item.value for key, item in value.items()})
            if paired is not None:
                self._taken.add((*path, paired))
            for key, item in value.items():
                self._remember(item, (*path, key), root, known | brought)
        elif isinstance(value, list):
            hiding = hides_items([item.value for item in value])
            self._taken.update((*path, index) for index, hides in enumerate(hiding) if hides)
            for index, item in enumerate(value):
                self._remember(item, (*path, index), root, known | brought)


def _is_taken(history: Sequence[Setting]) -> bool:
    """Whether a value comes from an interpolation that names a secret."""
    return any(is_interpolation(setting.raw) and _names_secret(setting.raw) for setting in history)


def _is_all_of_secrets(node: Node, root: Node) -> bool:
    """Whether a value was made of all values of a mapping with a secret among them."""
    raws = (setting.raw for setting in node.history if is_interpolation(setting.raw))
    for source in (parse_path(match["key"]) for raw in raws for match in _ALL_VALUES.finditer(raw)):
        target = find(root, source)
        if target is not None and any(is_secret_path((*source, *below), item.value) for below, item in walk(target)):
            return True
    return False


def _names_secret(text: str) -> bool:
    names = (name for match in _REFERENCE.finditer(text) for name in _NAME.findall(match["inside"]))
    return any(is_secret_path(_PART.findall(name)) for name in names)
