"""`_inherit_from`, `_copy`, `${inherit_from:…}`, `${copy:…}` and `_delete_key`, applied once to the merged tree.

A source is read as it was before any directive ran, but with its own directives applied, so that chains work in whatever order they are
written. `_inherit_from` moves (the source disappears), `_copy` leaves it. Local keys beat inherited ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from backend.config.errors import ConfigError, ConfigMergeError, InheritPathNotFoundError
from backend.config.findings import Findings
from backend.config.interpolation import is_interpolation, resolve_text
from backend.config.merge import merge_into
from backend.config.nodes import (
    KeyPath,
    Node,
    Origin,
    Setting,
    child,
    child_entry,
    find,
    format_path,
    parse_path,
    shortened,
    walk,
)
from backend.config.schema import COPY, DELETE_KEY, DIRECTIVES, INHERIT_FROM, MISSING
from backend.errors import closest

_TEXT_DIRECTIVE = re.compile(r"^\$\{(inherit_from|copy):([^${}]+)\}$")


@dataclass(frozen=True, slots=True)
class _Directive:
    keyword: str
    source: KeyPath
    moves: bool
    place: Origin


@dataclass(slots=True)
class _Applier:
    """The recursion over one tree; `tree` is the snapshot and is never changed."""

    tree: Node
    findings: Findings
    done: dict[KeyPath, Node] = field(default_factory=dict)
    running: list[KeyPath] = field(default_factory=list)
    moved: list[KeyPath] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)
    """Top-level keys that directives take values from."""
    pending_deletes: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """By id of a finished mapping: names that `_delete_key` gives and that only an inherited value can have."""

    def apply(self, node: Node, path: KeyPath) -> Node:
        """`node` with all directives in it applied, as a new tree."""
        if path in self.done:
            return self.done[path]
        if not isinstance(node.value, dict | list) and not _text_directive(node):
            return node.copy()
        if path in self.running:
            raise self._circle(path, node)
        self.running.append(path)
        try:
            result = self._applied(node, path)
        finally:
            self.running.pop()
        self.done[path] = result
        return result

    def _applied(self, node: Node, path: KeyPath) -> Node:
        if isinstance(node.value, list):
            return Node([self.apply(item, (*path, index)) for index, item in enumerate(node.value)], node.history)
        local = None
        if isinstance(node.value, dict):
            local = Node(
                {key: self.apply(item, (*path, key)) for key, item in node.value.items() if key not in DIRECTIVES},
                node.history,
            )
        try:
            directive = self._directive(node, path)
            unmatched = self._delete_local(node, local, path) if local is not None else ()
            if directive is not None:
                return self._inherited(directive, local, path, unmatched)
        except ConfigError as error:
            self.findings.broken(error, *map(str, path[:1]))
            return local if local is not None else Node(None, node.history)
        assert local is not None
        self.pending_deletes[id(local)] = unmatched
        return local

    def _inherited(self, directive: _Directive, local: Node | None, path: KeyPath, deletes: tuple[str, ...]) -> Node:
        source = self._source(directive, path)
        if directive.moves:
            self.moved.append(directive.source)
        note = Origin("directive", f"{directive.keyword}: {format_path(directive.source)}", *_where(directive.place))
        result = _stamped(source, note)
        if _is_missing(source):
            return result
        if local is not None and local.value:
            if not isinstance(result.value, dict):
                raise ConfigMergeError(
                    f"'{format_path(path)}' has keys of its own, but {format_path(directive.source)} is not a mapping",
                    place=directive.place.place(format_path(path)),
                    hint=f"use ${{{directive.keyword.lstrip('_')}:{format_path(directive.source)}}} as the whole value",
                )
            self._delete_inherited(result, local)
            merge_into(result, local, within=self.tree)
        for name in deletes:
            if not isinstance(result.value, dict) or name not in result.value:
                near = closest(name, [str(key) for key in result.value] if isinstance(result.value, dict) else [])
                raise ConfigError(
                    f"{DELETE_KEY} names '{name}', which '{format_path(path)}' does not have",
                    place=directive.place.place(format_path(path)),
                    nearest=near,
                    fix=f"{DELETE_KEY}: {near}" if near else None,
                )
            del result.value[name]
        return result

    def _source(self, directive: _Directive, path: KeyPath) -> Node:
        """The value of a directive's source, its own directives applied."""
        current, place = self.tree, KeyPath()
        for key in directive.source:
            if _is_missing(current):
                return current
            entry = child_entry(current, key)
            unfinished = place not in self.running and (entry is None or _is_heir(current))
            if unfinished:
                current = self.apply(current, place)
                entry = child_entry(current, key)
            if entry is None:
                raise self._not_found(directive, path, current, key, place)
            place, current = (*place, entry[0]), entry[1]
        return self.apply(current, place) if find(self.tree, place) is current else current

    def _directive(self, node: Node, path: KeyPath) -> _Directive | None:
        if isinstance(node.value, str):
            match = _text_directive(node)
            assert match
            return self._parsed(match[1], match[2].strip(), match[1] == "inherit_from", node.source, path)
        if not isinstance(node.value, dict):
            return None
        copy, inherit = node.value.get(COPY), node.value.get(INHERIT_FROM)
        if copy is not None and inherit is not None:
            self.findings.warn(
                f"'{format_path(path)}' has both {COPY} and {INHERIT_FROM}; the path of {COPY} is moved, the other is ignored",
                copy.source.place(format_path(path)),
                "keep one of them",
            )
        chosen = copy if copy is not None else inherit
        if chosen is None:
            return None
        keyword = COPY if copy is not None else INHERIT_FROM
        return self._parsed(keyword, chosen.value, inherit is not None, chosen.source, path)

    def _parsed(self, keyword: str, value: Any, moves: bool, place: Origin, path: KeyPath) -> _Directive:
        source = resolve_text(self.tree, value) if is_interpolation(value) else value
        if not isinstance(source, str) or not parse_path(source):
            raise InheritPathNotFoundError(
                f"{keyword} in '{format_path(path)}' must be the dotted path of a key, not {source!r}",
                place=place.place(format_path(path)),
            )
        keys = parse_path(source)
        self.sources.add(keys[0])
        return _Directive(keyword, keys, moves, place)

    def _delete_local(self, node: Node, local: Node, path: KeyPath) -> tuple[str, ...]:
        """Drop what `_delete_key` names among the local keys; returns the names that are none of them."""
        directive = node.value.get(DELETE_KEY)
        if directive is None or directive.value is None:
            return ()
        unmatched = []
        for name in _names(directive, path):
            key = next((key for key in local.value if key == name or str(key) == name), None)
            if key is None:
                unmatched.append(name)
            else:
                del local.value[key]
        return tuple(unmatched)

    def _delete_inherited(self, inherited: Node, local: Node) -> None:
        """Let a `_delete_key` nested in the local keys act on the inherited value of the same path."""
        for name in self.pending_deletes.get(id(local), ()):
            inherited.value.pop(name, None)
        for key, item in local.value.items():
            target = child(inherited, key)
            if target is not None and isinstance(item.value, dict) and isinstance(target.value, dict):
                self._delete_inherited(target, item)

    def _not_found(self, directive: _Directive, path: KeyPath, parent: Node, key: str, place: KeyPath) -> ConfigError:
        prefix = f"{format_path(place)}." if place else ""
        names = [f"{prefix}{name}" for name in parent.value] if isinstance(parent.value, dict) else []
        near = closest(f"{prefix}{key}", names)
        return InheritPathNotFoundError(
            f"'{format_path(path)}' takes its value from '{format_path(directive.source)}' ({directive.keyword}),"
            " which does not exist in the merged config",
            place=directive.place.place(format_path(path)),
            nearest=near,
            fix=f"{directive.keyword}: {near}" if near and directive.keyword in DIRECTIVES else None,
        )

    def _circle(self, path: KeyPath, node: Node) -> ConfigError:
        names = [format_path(step) or "(top level)" for step in [*self.running[self.running.index(path) :], path]]
        return InheritPathNotFoundError(
            f"directives depend on each other in a circle: {' -> '.join(names)}", place=node.source.place(format_path(path))
        )


def apply_directives(root: Node, findings: Findings, sources: set[str] | None = None) -> Node:
    """The tree with all directives applied. A mapping whose directive is wrong keeps its own keys; the error goes to `findings`.

    The top-level keys that directives take values from are added to `sources`.
    """
    if not any(_concerns(node) for _, node in walk(root)):
        return root
    applier = _Applier(root, findings)
    result = applier.apply(root, ())
    if sources is not None:
        sources.update(applier.sources)
    for path in sorted(set(applier.moved), key=lambda path: [(len(str(key)), str(key)) for key in path], reverse=True):
        _remove(result, path)
    return result


def _concerns(node: Node) -> bool:
    if isinstance(node.value, dict):
        return any(key in node.value for key in DIRECTIVES)
    return bool(_text_directive(node))


def _is_heir(node: Node) -> bool:
    if isinstance(node.value, dict):
        return COPY in node.value or INHERIT_FROM in node.value
    return bool(_text_directive(node))


def _text_directive(node: Node) -> re.Match[str] | None:
    return _TEXT_DIRECTIVE.match(node.value) if isinstance(node.value, str) and node.value.startswith("${") else None


def _is_missing(node: Node) -> bool:
    return isinstance(node.value, str) and node.value == MISSING


def _where(origin: Origin) -> tuple[str | None, int | None, int | None]:
    return origin.file, origin.line, origin.column


def _stamped(node: Node, note: Origin) -> Node:
    """A copy of an inherited tree; every key in it tells which directive brought it. Chains of heirs do not make histories endless."""
    value = node.value
    if isinstance(value, dict):
        value = {key: _stamped(item, note) for key, item in value.items()}
    elif isinstance(value, list):
        value = [_stamped(item, note) for item in value]
    return Node(value, (*shortened(node.history), Setting(note, value)))


def _names(directive: Node, path: KeyPath) -> list[str]:
    value = directive.value
    if isinstance(value, list):
        return [str(item.value).strip() for item in value]
    if isinstance(value, str):
        return [name.strip() for name in value.split(",") if name.strip()]
    raise ConfigError(
        f"{DELETE_KEY} in '{format_path(path)}' must be names separated by commas, or a list of names",
        place=directive.source.place(format_path((*path, DELETE_KEY))),
    )


def _remove(root: Node, path: KeyPath) -> None:
    parent = find(root, path[:-1])
    entry = child_entry(parent, path[-1]) if parent is not None else None
    if parent is not None and entry is not None:
        del parent.value[entry[0]]
