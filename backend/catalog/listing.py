"""The catalogue: all components of the search roots, or one of them by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from backend.catalog import discovery, selectors
from backend.catalog.composed import Composed, compose, own_servers
from backend.catalog.discovery import MANIFEST, Candidate
from backend.catalog.entries import Catalog, CatalogEntry, EntryName, Manifest, Written
from backend.catalog.facts import config_facts
from backend.catalog.kinds import AGENT, KINDS, RESOURCES_SERVER, WORKLOADS
from backend.catalog.manifests import manifest_facts, mismatch
from backend.catalog.scan import Scan
from backend.config.schema import AGENTS, RESOURCES

_README = "README.md"


def list_components(kinds: Iterable[str], roots: Sequence[Path], *, server_workloads: bool = True, cache: bool = True) -> Catalog:
    """Every component of some kinds; where several roots have one of the same name, that of the earliest.

    Workloads come first, sorted by name without regard to case; the others by kind, root, folder and file. Without `server_workloads`,
    configurations of resources servers that bring an agent and data are left out, as `gym list resources-servers` has them too.
    A component that cannot be read is an entry with `broken`.
    """
    warnings: list[str] = []
    with Scan(roots, cache=cache) as scan:
        found = _candidates(scan, set(kinds), server_workloads=server_workloads)
        entries = [_entry(scan, first, rest, warnings) for first, *rest in _by_name(found)]
    order = {kind: position for position, kind in enumerate(KINDS)}
    workload_entries = sorted(
        (entry for entry in entries if entry.kind in WORKLOADS),
        key=lambda entry: (entry.name.casefold(), entry.name, order[entry.kind]),
    )
    return Catalog((*workload_entries, *(entry for entry in entries if entry.kind not in WORKLOADS)), tuple(warnings))


def whole_catalog(roots: Sequence[Path], *, cache: bool = True) -> Catalog:
    """Every component once, by kind: what a screen shows."""
    return list_components(KINDS, roots, server_workloads=False, cache=cache)


def component_names(kinds: Iterable[str], roots: Sequence[Path]) -> list[str]:
    """The names of `list_components`, sorted."""
    with Scan(roots) as scan:
        return sorted({candidate.name for candidate in _candidates(scan, set(kinds), server_workloads=True)})


def likely_names(kinds: Iterable[str], roots: Sequence[Path]) -> list[EntryName]:
    """What the folders alone let expect, without reading a file: in the order of kinds, then by name.

    Flavors of workloads are missing, and some of these names will turn out to be none.
    """
    found: dict[tuple[str, str], EntryName] = {}
    for kind in kinds:
        for root in roots:
            for name, path in discovery.likely(kind, root):
                found.setdefault((kind, name), EntryName(kind, name, Path(path)))
    order = {kind: position for position, kind in enumerate(KINDS)}
    return sorted(found.values(), key=lambda entry: (order[entry.kind], entry.name.casefold(), entry.name))


def find_component(kind: str, name: str, roots: Sequence[Path], *, cache: bool = True) -> CatalogEntry | None:
    """The component that a name stands for, flavors and names out of use included; None where it stands for none of that kind.

    Reads the files of this one component only.
    """
    with Scan(roots, cache=cache) as scan:
        found = _located(scan, kind, name)
        return _entry(scan, found[0], found[1:], []) if found else None


def _candidates(scan: Scan, kinds: AbstractSet[str], *, server_workloads: bool) -> list[Candidate]:
    """All candidates of some kinds, by kind and root; workloads of resources servers come last."""
    with_servers = server_workloads and not kinds.isdisjoint(WORKLOADS)
    looked_for = [kind for kind in KINDS if kind in kinds or (with_servers and kind in WORKLOADS)]
    found = [candidate for kind in looked_for for root in scan.roots for candidate in discovery.candidates(scan, kind, root)]
    if with_servers:
        taken = {(candidate.kind, candidate.name) for candidate in found}
        found += [candidate for root in scan.roots for candidate in discovery.server_workloads(scan, root, taken)]
    return [candidate for candidate in found if candidate.kind in kinds]


def _by_name(found: Iterable[Candidate]) -> Iterator[list[Candidate]]:
    """The candidates of each name in the order of the roots."""
    grouped: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in found:
        grouped.setdefault((candidate.kind, candidate.name), []).append(candidate)
    yield from grouped.values()


def _located(scan: Scan, kind: str, name: str) -> list[Candidate]:
    """The candidates of one name in the order of the roots."""
    described = KINDS[kind]
    if not selectors.is_name(name):
        return []
    if kind == AGENT:
        found = [discovery.agent_at(scan, root, name) for root in scan.roots if "/" not in name]
    elif described.is_workload and name.startswith(f"{RESOURCES}/"):
        selector = name.removeprefix(f"{RESOURCES}/")
        files = selectors.files_of(KINDS[RESOURCES_SERVER], selector, scan.roots)
        workloads = [discovery.server_workload(scan, file.root, selector, str(file.path)) for file in files]
        found = [workload for workload in workloads if workload and workload.kind == kind]
    else:
        files = selectors.files_of(described, name, scan.roots)
        found = [discovery.candidate_at(scan, kind, file.root, file.relative) for file in files]
    return [candidate for candidate in found if candidate]


def _entry(scan: Scan, candidate: Candidate, hidden: Sequence[Candidate], warnings: list[str]) -> CatalogEntry:
    shadowed = _shadowed(candidate, hidden)
    if candidate.kind == AGENT:
        return _agent_entry(scan, candidate, shadowed)
    composed = compose(scan, candidate.path)
    manifest, texts = _manifest(scan, candidate, warnings)
    in_server_tree = candidate.server_selector is not None
    folder = _folder(candidate)
    return CatalogEntry(
        kind=candidate.kind,
        name=candidate.name,
        path=Path(candidate.path),
        root=candidate.root,
        folder=folder,
        flag=KINDS[RESOURCES_SERVER if in_server_tree else candidate.kind].flag,
        selector=candidate.server_selector or candidate.name,
        domain=texts.get("domain") or composed.domain,
        description=texts.get("description") or composed.description,
        value=composed.value,
        manifest=manifest,
        servers=composed.servers,
        datasets=composed.datasets,
        written=composed.written,
        configs=composed.files,
        unset=composed.unset,
        readme=_readme(Path(candidate.path).parent, folder),
        shadowed=shadowed,
        broken=composed.broken,
    )


def _agent_entry(scan: Scan, candidate: Candidate, shadowed: tuple[Path, ...]) -> CatalogEntry:
    folder = Path(candidate.path)
    files = [str(folder / str(KINDS[AGENT].configs) / f"{variant}.yaml") for variant in candidate.variants]
    variants = [compose(scan, file) for file in files]
    usual = candidate.variants.index(candidate.name) if candidate.name in candidate.variants else 0
    shown = variants[usual] if variants else Composed(None, None, None, (), (), Written(), (), (), None)
    selector = (
        candidate.name if candidate.name in candidate.variants or not variants else f"{candidate.name}/{candidate.variants[0]}"
    )
    return CatalogEntry(
        kind=AGENT,
        name=candidate.name,
        path=folder,
        root=candidate.root,
        folder=folder,
        flag=KINDS[AGENT].flag if variants else None,
        selector=selector,
        description=next((variant.description for variant in variants if variant.description), None),
        value=next((variant.value for variant in variants if variant.value), None),
        variants=candidate.variants,
        self_contained=bool(files) and not _is_composable(scan, files),
        servers=shown.servers,
        datasets=shown.datasets,
        configs=shown.files,
        unset=shown.unset,
        readme=_readme(folder),
        shadowed=shadowed,
        broken=next((variant.broken for variant in variants if variant.broken), None),
    )


def _is_composable(scan: Scan, files: Iterable[str]) -> bool:
    """Whether an agent leaves the judging to a resources server: some configuration refers to one, and none brings a harness of its own."""
    blocks = [
        block
        for file in files
        for _, type_, _, block in own_servers((scan.facts(file, config_facts) or {}).get("tree", {}))
        if type_ == AGENTS
    ]
    own_harness = any("agent_framework" in block or "anthropic_api_key" in block for block in blocks)
    return any("resources_server" in block for block in blocks) and not own_harness


def _manifest(scan: Scan, candidate: Candidate, warnings: list[str]) -> tuple[Manifest | None, dict[str, str]]:
    """The manifest beside a workload's `config.yaml`, and the texts in it; one that is wrong is ignored with a warning."""
    kind = KINDS[candidate.kind]
    if not kind.is_workload or os.path.basename(candidate.path) != "config.yaml":
        return None, {}
    path = os.path.join(os.path.dirname(candidate.path), MANIFEST)
    facts = scan.facts(path, manifest_facts)
    if facts is None:
        return None, {}
    if problem := mismatch(facts, kind.name, kind.parent, candidate.name):
        warnings.append(f"{path}: {problem}; the manifest is ignored")
        return None, {}
    fields = ("version", "integration_profile", "modality", "licensing", "lifecycle")
    return Manifest(Path(path), **{key: facts[key] for key in fields}), facts


def _shadowed(candidate: Candidate, hidden: Sequence[Candidate]) -> tuple[Path, ...]:
    if not hidden:
        return ()
    used = os.path.realpath(candidate.path)
    others = {os.path.realpath(other.path): Path(other.path) for other in hidden}
    return tuple(path for real, path in others.items() if real != used)


def _folder(candidate: Candidate) -> Path:
    """The component's own folder: the first one below its kind's."""
    kind = KINDS[RESOURCES_SERVER if candidate.server_selector is not None else candidate.kind]
    parent = candidate.root / kind.parent
    relative = Path(candidate.path).relative_to(parent)
    return parent / relative.parts[0] if len(relative.parts) > 1 else parent


def _readme(*places: Path) -> Path | None:
    return next((path for folder in places if os.path.isfile(path := folder / _README)), None)
