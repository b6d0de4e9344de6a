"""From a name on the command line to a configuration file: `--benchmark gpqa`, `--model-type openai_model`, …"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.config.schema import AGENTS, LEGACY_AGENTS, LEGACY_CONFIG_PATHS, MODELS, RESOURCES
from backend.errors import UsageError, closest


@dataclass(frozen=True, slots=True)
class SelectorKind:
    """How one selector flag finds its files."""

    flag: str
    parent: str
    """Folder below a root."""
    configs: str | None
    """Folder below the component that holds its configurations; None for workloads, whose folder holds them itself."""

    def candidates(self, name: str) -> tuple[str, ...]:
        """Relative paths of the file that `NAME` or `NAME/FLAVOR` stands for, the preferred one first."""
        component, _, flavor = name.partition("/")
        if self.configs is not None:
            return (f"{self.parent}/{component}/{self.configs}/{flavor or component}.yaml",)
        if not flavor:
            return (f"{self.parent}/{component}/config.yaml",)
        return (f"{self.parent}/{name}/config.yaml", f"{self.parent}/{name}.yaml")


SELECTORS: dict[str, SelectorKind] = {
    "benchmark": SelectorKind("--benchmark", "benchmarks", None),
    "environment": SelectorKind("--environment", "environments", None),
    "resources-server": SelectorKind("--resources-server", RESOURCES, "configs"),
    "model-type": SelectorKind("--model-type", MODELS, "configs"),
    "agent-type": SelectorKind("--agent-type", AGENTS, "configs"),
}


@dataclass(frozen=True, slots=True)
class Selection:
    """The file that a name stands for."""

    path: Path
    """Absolute, resolved."""
    warnings: tuple[str, ...] = ()


def select(selector: str, name: str, roots: Sequence[Path]) -> Selection:
    """The configuration that `name` stands for under the selector (a key of `SELECTORS`).

    The first root that has it wins; a warning names the others. Raises UsageError with the implied path, the nearest name and
    the folders searched.
    """
    kind = SELECTORS[selector]
    selection = find_selection(kind, name, roots)
    if selection is None:
        raise _not_found(kind, name, roots)
    return selection


def find_selection(kind: SelectorKind, name: str, roots: Sequence[Path]) -> Selection | None:
    """As `select`, but None where the name stands for nothing."""
    if name and not Path(name).is_absolute() and ".." not in Path(name).parts:
        for relative in kind.candidates(name):
            found = _in_roots(relative, roots)
            if found:
                return _selection(kind, name, found)
        return _moved(kind, name, roots)
    return None


def _in_roots(relative: str, roots: Sequence[Path]) -> list[Path]:
    found: dict[Path, None] = {}
    for root in roots:
        path = root / relative
        if path.is_file():
            found.setdefault(path.resolve())
    return list(found)


def _selection(kind: SelectorKind, name: str, found: Sequence[Path]) -> Selection:
    used, *ignored = found
    warnings: tuple[str, ...] = ()
    if ignored:
        others = ", ".join(map(str, ignored))
        warnings = (f"{kind.flag} {name}: using {used}, ignoring {others}",)
    return Selection(used, warnings)


def _moved(kind: SelectorKind, name: str, roots: Sequence[Path]) -> Selection | None:
    """The present file of a name that is out of use."""
    for relative in kind.candidates(name):
        new = LEGACY_CONFIG_PATHS.get(relative)
        found = _in_roots(new, roots) if new else []
        if found:
            shown = LEGACY_AGENTS.get(name) or str(new)
            selection = _selection(kind, name, found)
            return Selection(selection.path, (f"{kind.flag} {name} is deprecated, use {shown}", *selection.warnings))
    return None


def _not_found(kind: SelectorKind, name: str, roots: Sequence[Path]) -> UsageError:
    implied = kind.candidates(name)[-1]
    return UsageError(
        f"argument {kind.flag}: no configuration {name!r} ({implied})",
        hint=_hint(kind, name, roots),
        details=["searched:", *(f"  {root / kind.parent}" for root in roots)],
    )


def _hint(kind: SelectorKind, name: str, roots: Sequence[Path]) -> str | None:
    component, _, flavor = name.partition("/")
    flavors = _flavors(kind, component, roots)
    if kind.flag == "--benchmark":
        # Reading every benchmark is worth it only for a wrong name.
        from backend.catalog.benchmarks import benchmark_names

        names = benchmark_names(roots)
        below = sorted((known for known in names if known.startswith(f"{name}/")), key=lambda known: (len(known), known))
        near = below[0] if below else closest(name, [*names, *(known.removesuffix("/config") for known in names)])
    elif flavors:
        near = closest(name, [f"{component}/{item}" for item in flavors]) if flavor else None
        if near is None:
            shown = [component if item == component else f"{component}/{item}" for item in flavors]
            return f"{component} has: {', '.join(shown)}"
    else:
        near = closest(name, _folders(kind, roots))
    return f"Did you mean `{near}`?" if near else None


def _flavors(kind: SelectorKind, component: str, roots: Sequence[Path]) -> list[str]:
    """Stems of the configurations of one component over all roots."""
    folder = f"{kind.parent}/{component}" + (f"/{kind.configs}" if kind.configs else "")
    return sorted({path.stem for root in roots for path in _listed(root / folder) if path.suffix == ".yaml"}) if component else []


def _folders(kind: SelectorKind, roots: Sequence[Path]) -> list[str]:
    return sorted({path.name for root in roots for path in _listed(root / kind.parent) if path.is_dir()})


def _listed(folder: Path) -> Iterable[Path]:
    try:
        return [path for path in folder.iterdir() if not path.name.startswith(("_", "."))]
    except OSError:
        return []
