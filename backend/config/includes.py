"""`config_paths`: which files a configuration is made of, and in which order they merge.

Entries are looked up in the roots, never beside the including file. Files are discovered breadth first, each entry once; they merge
in post-order, so that an includer beats what it includes and a later sibling with all it includes beats an earlier one.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.config.errors import ConfigError, ConfigPathNotFoundError, MalformedConfigPathsError
from backend.config.findings import Findings
from backend.config.interpolation import is_interpolation, resolve_text
from backend.config.nodes import Node, Origin
from backend.config.schema import LEGACY_CONFIG_PATHS
from backend.config.yaml_source import Source, load_source
from backend.errors import GymError, Place, closest, name_some
from backend.io.redact import Redactor
from backend.io.roots import resolve_path

CONFIG_PATHS = "config_paths"


@dataclass(slots=True)
class _File:
    entry: str
    parent: _File | None
    source: Source | None = None
    error: GymError | None = None
    children: list[_File] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """One entry of `config_paths`."""

    entry: str
    source: Source | None
    """None where the file could not be read."""
    included_by: str | None
    """The entry of the file that names this one; None for what was asked for directly."""
    error: GymError | None


@dataclass(frozen=True, slots=True)
class LoadedFiles:
    """The files of a configuration."""

    files: tuple[LoadedFile, ...]
    """In the order in which they merge, those that cannot be read among them."""
    entries: Mapping[str, Origin]
    """All entries in the order of discovery, with the place that names each first."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """What could be read, in the order in which it merges."""
        return tuple(file.source for file in self.files if file.source is not None)


def load_files(entries: Sequence[tuple[str, Origin]], roots: Sequence[Path], findings: Findings) -> LoadedFiles:
    """Read the files that `entries` name and all that these include.

    Entries that do not exist and files that cannot be read are errors in `findings`; the others are read all the same.
    """
    found: dict[str, Origin] = {}
    tops: list[_File] = []
    waiting: deque[tuple[str, Origin, _File | None]] = deque((entry, origin, None) for entry, origin in entries)
    while waiting:
        entry, origin, parent = waiting.popleft()
        if entry in found:
            _remark_on_repeat(entry, origin, parent, findings)
            continue
        found[entry] = origin
        file = _File(entry, parent)
        (parent.children if parent else tops).append(file)
        try:
            file.source = _read(entry, roots, origin, findings)
            nested = config_path_entries(file.source.root)
        except ConfigError as error:
            file.error = error
            findings.broken(error)
            continue
        waiting.extend((text, place, file) for text, place in nested)
        for message, spot in file.source.remarks:
            findings.warn(message, spot)
    return LoadedFiles(tuple(file for top in tops for file in _post_order(top)), found)


def _read(entry: str, roots: Sequence[Path], origin: Origin, findings: Findings) -> Source:
    """The file, or what comes through the pipe or device, that an entry names. Only who types the command can mean one of these."""
    if origin.kind in ("flag", "override") and _is_special(path := resolve_path(entry, roots)):
        from backend.config.piped import load_piped

        source = load_piped(path)
        if source is not None:
            return source
    return load_source(locate(entry, roots, origin, findings))


def _is_special(path: Path) -> bool:
    """Whether something that is neither a file nor a folder is at `path`."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def locate(entry: str, roots: Sequence[Path], origin: Origin, findings: Findings) -> Path:
    """The file of one entry; a path that moved is followed with a remark. Raises ConfigPathNotFoundError."""
    path = resolve_path(entry, roots)
    if os.path.isfile(path):
        return path
    moved = LEGACY_CONFIG_PATHS.get(entry)
    if moved is not None and os.path.isfile(new := resolve_path(moved, roots)):
        findings.warn(f"config path '{entry}' is deprecated", origin.place(), f"use '{moved}'")
        return new
    raise _not_found(entry, path, roots, origin)


def _not_found(entry: str, path: Path, roots: Sequence[Path], origin: Origin) -> ConfigPathNotFoundError:
    candidates = [path] if Path(entry).is_absolute() else [root / entry for root in roots]
    near = closest(Path(entry).stem, {Path(name).stem for spot in candidates for name in _yaml_files(spot.parent)})
    suggestion = f"{Path(entry).with_name(near)}.yaml" if near else None
    problem, details, hint = "was not found", ["Looked in:", *map(_looked_at, candidates)], None
    if os.path.isdir(path):
        problem, details, inside = "is a folder, not a configuration file", [], sorted(_yaml_files(path))
        chosen = "config.yaml" if "config.yaml" in inside else inside[0] if len(inside) == 1 else None
        suggestion = str(Path(entry, chosen)) if chosen else None
        hint = f"name one of its files: {name_some(inside)}" if inside and not chosen else None
    elif os.path.lexists(path):
        problem, details = "is no file that can be read:", [_looked_at(path)]
    return ConfigPathNotFoundError(
        f"config_paths entry '{entry}' {problem}",
        place=origin.place(CONFIG_PATHS if origin.file else None),
        details=details,
        nearest=suggestion,
        fix=(f"--config {suggestion}" if origin.kind == "flag" else f"{CONFIG_PATHS}: [{suggestion}]") if suggestion else None,
        hint=hint,
    )


def _looked_at(path: Path) -> str:
    """A path as a line of its own, with the reason where it is not simply absent."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        absent = isinstance(error, FileNotFoundError | NotADirectoryError) and not os.path.islink(path)
        return f"  {path}" if absent else f"  {path} ({'a broken link: ' if os.path.islink(path) else ''}{reason})"
    return f"  {path} (a folder)" if stat.S_ISDIR(mode) else f"  {path} (a pipe or device)"


def config_path_entries(root: Node) -> list[tuple[str, Origin]]:
    """The entries of `config_paths` in one layer, with the place of each; interpolations see this layer only.

    Raises MalformedConfigPathsError unless the value is a list of texts or absent.
    """
    node = root.value.get(CONFIG_PATHS)
    if node is None or node.value is None:
        return []
    value = resolve_text(root, node.value) if is_interpolation(node.value) else node.value
    if not isinstance(value, list):
        raise malformed(value, node.source.place(CONFIG_PATHS))
    entries: list[tuple[str, Origin]] = []
    for item in value:
        raw, origin = (item.value, item.source) if isinstance(item, Node) else (item, node.source)
        text = resolve_text(root, raw) if is_interpolation(raw) else raw
        if not isinstance(text, str):
            raise malformed([text], origin.place(CONFIG_PATHS))
        entries.append((text, origin))
    return entries


def malformed(value: Any, place: Place) -> MalformedConfigPathsError:
    """The error for a `config_paths` that is no list of paths."""
    shown = dict.fromkeys(value, "…") if isinstance(value, dict) else Redactor().tree(value)
    return MalformedConfigPathsError(
        f"'{CONFIG_PATHS}' must be a list of paths. Got: {shown!r}",
        place=place,
        hint=f"write `{CONFIG_PATHS}: [a.yaml, b.yaml]`",
        fix=f"{CONFIG_PATHS}: [{value}]" if isinstance(value, str) else None,
    )


def _post_order(file: _File) -> Iterator[LoadedFile]:
    for included in file.children:
        yield from _post_order(included)
    yield LoadedFile(file.entry, file.source, file.parent.entry if file.parent else None, file.error)


def _remark_on_repeat(entry: str, origin: Origin, parent: _File | None, findings: Findings) -> None:
    ancestor = parent
    while ancestor is not None and ancestor.entry != entry:
        ancestor = ancestor.parent
    if ancestor is None:
        findings.warn(f"config_paths names '{entry}' more than once; it is read once", origin.place())
    elif parent is not None and ancestor is not parent:
        findings.warn(
            f"config_paths form a circle: '{parent.entry}' includes '{entry}', which includes it; each is read once",
            origin.place(),
        )
    else:
        findings.warn(f"'{entry}' includes itself; it is read once", origin.place())


def _yaml_files(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith((".yaml", ".yml"))]
    except (OSError, ValueError):
        return []
