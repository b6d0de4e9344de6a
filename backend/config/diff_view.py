"""Two configurations side by side: which keys one has and the other has not, which differ, and who set them on either side.

A side is a stage of a resolution, or the record that a run left. Values are compared as they are and shown masked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from backend.config.errors import ConfigError
from backend.config.masking import Masker
from backend.config.nodes import PASSING_ON, KeyPath, Node, Origin, Setting, child, format_path, plain, walk
from backend.config.resolution import ResolvedConfig
from backend.config.resolve_view import ResolvedView, Shape, effect_of
from backend.config.stages import VALIDATED
from backend.config.yaml_source import load_source
from backend.errors import GymError, Place
from backend.io.json_codec import loads
from backend.io.redact import MASK, Redactor


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two configurations."""

    title: str
    root: Node
    """Unmasked, for comparing only."""
    masker: Masker
    recorded: bool = False
    """Whether secrets are masked in `root` already, so that nobody can say whether they are equal."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a key holds on one side."""

    shape: Shape
    value: Any
    """Masked; of a list of plain values the list, of other lists and mappings the number of elements."""
    origin: Origin
    """Who wrote it down."""
    passed_on: tuple[Origin, ...] = ()
    """Directives, interpolations and environment variables by which it came from there."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One key that is not the same on both sides."""

    path: KeyPath
    kind: Literal["added", "removed", "changed"]
    left: Held | None
    right: Held | None
    secret: bool
    effect: str
    """What became of a mapping or list: `replaces a list (3 -> 1)`, `clears a mapping`; else empty."""

    @property
    def key(self) -> str:
        """The path as text, `a.b[0].c`."""
        return format_path(self.path)


@dataclass(frozen=True, slots=True)
class Diff:
    """All that two sides do not have in common."""

    left: str
    right: str
    """Titles of the sides."""
    differences: tuple[Difference, ...]
    """In the order of the left side's tree; keys that only the right side has come last within their mapping."""
    incomparable: tuple[str, ...]
    """Keys whose values a run record masks."""
    equal: int
    """Keys with the same value on both sides."""

    def of_kind(self, kind: str) -> tuple[Difference, ...]:
        """The differences of one kind."""
        return tuple(difference for difference in self.differences if difference.kind == kind)


def side_of(view: ResolvedView, title: str, stage: str = VALIDATED) -> Side:
    """A stage of a resolution as one side; without that stage, nothing."""
    return Side(title, view.trees.get(stage, Node({}, ())), view.masker)


def side_of_record(path: Path, title: str) -> Side:
    """The configuration in the `run.json` at `path`, with the lines of that file and, where they are recorded, the origins of the run.

    Raises ConfigError where the file is no run record.
    """
    try:
        record = loads(path.read_bytes())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"cannot read the run record: {reason}", place=Place(str(path))) from None
    config = record.get("config") if isinstance(record, dict) else None
    if not isinstance(config, dict):
        raise ConfigError("this is not the record of a run: it has no `config`", place=Place(str(path)))
    origins = record.get("origins")
    root = _recorded(config, _located(path), str(path), origins if isinstance(origins, dict) else {})
    return Side(title, root, Masker(Redactor()), recorded=True)


def recorded_origins(config: ResolvedConfig) -> dict[str, str]:
    """For a run's record (`origins`): who set each plain value, by dotted key; what defaults filled in is left out."""
    masker = Masker(config.redactor)
    sources = ((path, node.source) for path, node in walk(config.origins.root) if not isinstance(node.value, dict | list))
    return {format_path(path): str(masker.origin(source)) for path, source in sources if source.kind != "default"}


def compare(left: Side, right: Side) -> Diff:
    """What changes from the left side to the right one."""
    comparison = _Comparison(left, right)
    differences = tuple(comparison.differences((), left.root, right.root))
    return Diff(left.title, right.title, differences, tuple(comparison.incomparable), comparison.equal)


class _Comparison:
    def __init__(self, left: Side, right: Side) -> None:
        self.left = left
        self.right = right
        self.incomparable: list[str] = []
        self.equal = 0

    def differences(self, path: KeyPath, left: Node | None, right: Node | None) -> Iterator[Difference]:
        """All differences at and below a path."""
        if left is None or right is None:
            yield from self._one_sided(path, left, right)
        elif isinstance(left.value, dict) and isinstance(right.value, dict):
            for key in (*left.value, *(key for key in right.value if key not in left.value)):
                yield from self.differences((*path, key), left.value.get(key), right.value.get(key))
        elif _is_structured_list(left) and _is_structured_list(right):
            for index in range(max(len(left.value), len(right.value))):
                yield from self.differences((*path, index), child(left, index), child(right, index))
        else:
            yield from self._values(path, left, right)

    def _one_sided(self, path: KeyPath, left: Node | None, right: Node | None) -> Iterator[Difference]:
        node = left if left is not None else right
        assert node is not None
        if node.value and (isinstance(node.value, dict) or _is_structured_list(node)):
            items = node.value.items() if isinstance(node.value, dict) else enumerate(node.value)
            for key, item in items:
                yield from self._one_sided((*path, key), item if left is not None else None, item if right is not None else None)
            return
        secret = self._is_secret(path, left, right)
        kind: Literal["added", "removed"] = "added" if left is None else "removed"
        yield Difference(path, kind, self._held(self.left, left, secret), self._held(self.right, right, secret), secret, "")

    def _values(self, path: KeyPath, left: Node, right: Node) -> Iterator[Difference]:
        one, other = plain(left), plain(right)
        secret = self._is_secret(path, left, right)
        if self.left.recorded or self.right.recorded:
            shown = self.left.masker.value(left.value, secret=secret), self.right.masker.value(right.value, secret=secret)
            if _same(*shown) and MASK in str(shown[0]):
                self.incomparable.append(format_path(path))
                return
        if _same(one, other):
            self.equal += 1
            return
        held = self._held(self.left, left, secret), self._held(self.right, right, secret)
        yield Difference(path, "changed", *held, secret, effect_of(left.value, right.value))

    def _is_secret(self, path: KeyPath, left: Node | None, right: Node | None) -> bool:
        sides = ((self.left.masker, left), (self.right.masker, right))
        return any(masker.is_secret(path, node.history) for masker, node in sides if node is not None)

    @staticmethod
    def _held(side: Side, node: Node | None, secret: bool) -> Held | None:
        if node is None:
            return None
        if isinstance(node.value, dict) or _is_structured_list(node):
            shape: Shape = "mapping" if isinstance(node.value, dict) else "list"
            value: Any = len(node.value)
        else:
            shape = "list" if isinstance(node.value, list) else "value"
            value = side.masker.value(node.value, secret=secret)
        after = itertools.takewhile(lambda setting: setting.origin.kind in PASSING_ON, reversed(node.history))
        passed_on = tuple(side.masker.origin(setting.origin) for setting in reversed(list(after)))
        return Held(shape, value, side.masker.origin(node.source), passed_on)


def _is_structured_list(node: Node) -> bool:
    """A list with mappings or lists in it; lists of plain values are compared as a whole."""
    return isinstance(node.value, list) and any(isinstance(item.value, dict | list) for item in node.value)


def _same(one: Any, other: Any) -> bool:
    """Equal and of one type, so that 1, 1.0 and true differ; a NaN is equal to itself."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return type(one) is type(other) and (one == other or (one != one and other != other))


def _located(path: Path) -> Node | None:
    """The record as nodes that know their lines; None where it holds what YAML does not read."""
    try:
        return child(load_source(path).root, "config")
    except GymError:
        return None


def _recorded(value: Any, located: Node | None, file: str, origins: Mapping[str, Any], path: KeyPath = ()) -> Node:
    place = located.origin if located else Origin("record", file=file)
    told = origins.get(format_path(path))
    origin = Origin("record", f"({told})" if told else "", file, place.line, place.column)
    if isinstance(value, dict):
        below = {
            key: _recorded(item, child(located, key) if located else None, file, origins, (*path, key))
            for key, item in value.items()
        }
        return Node(below, (Setting(origin, below),))
    if isinstance(value, list):
        elements = [
            _recorded(item, child(located, index) if located else None, file, origins, (*path, index))
            for index, item in enumerate(value)
        ]
        return Node(elements, (Setting(origin, elements),))
    return Node(value, (Setting(origin, value),))
