"""What may be shown of a configuration tree: secrets masked by key name, by value, and where a value is taken from a secret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from backend.config.interpolation import VARIABLE, is_interpolation
from backend.config.nodes import KeyPath, Node, Origin, Setting, plain_value
from backend.config.reach import REFERENCE
from backend.io.redact import Redactor, is_secret_key, is_secret_path

_SECRET = "api_key"
"""Any name that stands for a secret: the redactor masks by name."""


class Masker:
    """Masks trees, single values and the texts of origins with one redactor."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor

    def is_secret(self, path: KeyPath, history: Sequence[Setting] = ()) -> bool:
        """Whether the key at `path`, or whatever its value was taken from, has the name of a secret."""
        return is_secret_path(path, history[-1].raw if history else None) or any(
            is_interpolation(setting.raw) and _names_secret(setting.raw) for setting in history
        )

    def value(self, raw: Any, *, secret: bool) -> Any:
        """A plain value as it may be shown; null, booleans and empty texts hide nothing."""
        value = plain_value(raw)
        return self.redactor.tree({_SECRET: value})[_SECRET] if secret else self.redactor.tree(value)

    def tree(self, node: Node, path: KeyPath = ()) -> Any:
        """The plain values below a node as they may be shown."""
        if isinstance(node.value, dict):
            return {self.redactor.key(key): self.tree(item, (*path, key)) for key, item in node.value.items()}
        if isinstance(node.value, list):
            return [self.tree(item, (*path, index)) for index, item in enumerate(node.value)]
        return self.value(node.value, secret=self.is_secret(path, node.history))

    def keys(self, node: Node) -> Node:
        """The tree with its values as they are, and its keys as they may be shown."""
        value = node.value
        if isinstance(value, dict):
            value = {self.redactor.key(key): self.keys(item) for key, item in value.items()}
        elif isinstance(value, list):
            value = [self.keys(item) for item in value]
        return Node(value, node.history)

    def origin(self, origin: Origin) -> Origin:
        """An origin whose text may be shown."""
        return replace(origin, text=self.redactor.text(origin.text)) if origin.text else origin


def _names_secret(text: str) -> bool:
    keys = (part for key in REFERENCE.findall(text) for part in key.split("."))
    return any(map(is_secret_key, keys)) or any(map(is_secret_key, VARIABLE.findall(text)))
