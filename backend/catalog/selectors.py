"""From a name to a configuration file: `--benchmark gpqa`, `--model-type openai_model`, …, and the names of listings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.catalog.discovery import flavors, folders
from backend.catalog.kinds import BENCHMARK, KINDS, ComponentKind
from backend.config.schema import LEGACY_AGENTS, LEGACY_CONFIG_PATHS
from backend.errors import UsageError, closest


@dataclass(frozen=True, slots=True)
class Selection:
    """The file that a name stands for."""

    path: Path
    """Absolute, resolved."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that a name stands for in one root."""

    root: Path
    relative: str
    moved: bool = False
    """Whether the name is out of use and this is the present file."""

    @property
    def path(self) -> Path:
        return self.root / self.relative


def select(selector: str, name: str, roots: Sequence[Path]) -> Selection:
    """The configuration that `name` stands for under a selector: the flag without dashes, for instance `model-type`.

    The first root that has it wins; a warning names the others. Raises UsageError with the implied path, the nearest name and
    the folders searched.
    """
    kind = next(kind for kind in KINDS.values() if kind.flag == f"--{selector}")
    files = files_of(kind, name, roots)
    if not files:
        raise _not_found(kind, name, roots)
    used, *ignored = dict.fromkeys(file.path.resolve() for file in files)
    warnings = []
    if files[0].moved:
        warnings.append(f"{kind.flag} {name} is deprecated, use {LEGACY_AGENTS.get(name) or files[0].relative}")
    if ignored:
        warnings.append(f"{kind.flag} {name}: using {used}, ignoring {', '.join(map(str, ignored))}")
    return Selection(used, tuple(warnings))


def files_of(kind: ComponentKind, name: str, roots: Sequence[Path]) -> list[NamedFile]:
    """The files that `name` stands for, in the order of the roots; the first is the one to use. Empty where it stands for nothing."""
    if not is_name(name):
        return []
    relatives = kind.candidates(name)
    for relative in relatives:
        if found := [NamedFile(root, relative) for root in roots if os.path.isfile(root / relative)]:
            return found
    for relative in relatives:
        new = LEGACY_CONFIG_PATHS.get(relative)
        if new and (found := [NamedFile(root, new, moved=True) for root in roots if os.path.isfile(root / new)]):
            return found
    return []


def _not_found(kind: ComponentKind, name: str, roots: Sequence[Path]) -> UsageError:
    implied = kind.candidates(name)[-1 if "/" in name else 0]
    return UsageError(
        f"argument {kind.flag}: no configuration {name!r} ({implied})",
        hint=_hint(kind, name, roots),
        details=["searched:", *(f"  {root / kind.parent}" for root in roots)],
    )


def _hint(kind: ComponentKind, name: str, roots: Sequence[Path]) -> str | None:
    component, _, flavor = name.partition("/")
    known = flavors_of(kind, component, roots)
    if kind.name == BENCHMARK:
        from backend.catalog.listing import component_names  # reading every benchmark is worth it only for a wrong name

        names = [name for name in component_names([BENCHMARK], roots) if files_of(kind, name, roots)]
        near = nearest_name(name, [*names, *(known.removesuffix("/config") for known in names)])
    elif known:
        near = closest(name, [f"{component}/{item}" for item in known]) if flavor else None
        if near is None:
            shown = [component if item == component else f"{component}/{item}" for item in known]
            return f"{component} has: {', '.join(shown)}"
    else:
        near = closest(name, {folder for root in roots for folder in folders(os.path.join(root, kind.parent))})
    return f"Did you mean `{near}`?" if near else None


def is_name(text: str) -> bool:
    """Whether a text can be the name of a component: it leads nowhere but below the folder of its kind."""
    return bool(text) and "\0" not in text and not any(part in ("", ".", "..") for part in text.split("/"))


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """The shortest of the names below `name` where that is a folder of several, else the one that is most like it."""
    known = list(names)
    below = [other for other in known if name and other.startswith(f"{name}/")]
    return min(below, key=lambda other: (len(other), other)) if below else closest(name, known)


def flavors_of(kind: ComponentKind, component: str, roots: Sequence[Path]) -> list[str]:
    """Stems of the configurations of one component over all roots."""
    if not is_name(component):
        return []
    folder = os.path.join(kind.parent, component, kind.configs or "")
    return sorted({stem for root in roots for stem in flavors(os.path.join(root, folder))})
