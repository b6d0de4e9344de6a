"""The benchmarks that exist in the roots: `gym list benchmarks`, and the details of one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.catalog.manifest_facts import manifest_facts
from backend.catalog.scan import Facts, Scan, with_includes, workload_facts, yaml_paths
from backend.catalog.selectors import SELECTORS, find_selection
from backend.config.schema import AGENTS, RESOURCES
from backend.errors import GymError, Place, did_you_mean

KIND = "benchmark"
PARENT = "benchmarks"
TOPIC = "benchmarks"
MANIFEST = "manifest.yaml"
_USUAL_MODEL_TYPES = ("vllm_model", "llama_cpp_model")


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One workload. The first ten fields are the documented ones of listings; None where nothing says."""

    name: str
    kind: str
    status: str
    """`experimental` with a manifest, else `no-manifest`."""
    domain: str | None
    description: str | None
    version: str | None
    integration_profile: str | None
    modality: str | None
    licensing: str | None
    lifecycle: str | None
    path: Path
    """The configuration file, absolute."""
    manifest: Path | None = None
    value: str | None = None
    """What the configuration says the workload is good for."""
    resources_servers: tuple[str, ...] = ()
    """Implementations, in the order of the configuration."""
    agent: str | None = None
    """Implementation of the first agent."""
    datasets: tuple[tuple[str, str], ...] = ()
    """Name and type of every dataset, each once."""
    broken: str | None = None
    """Why the configuration cannot be read."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """All entries, sorted by name without regard to case."""

    entries: tuple[CatalogEntry, ...]
    warnings: tuple[str, ...]


def list_benchmarks(roots: Sequence[Path], *, cache: bool = True) -> Catalog:
    """Every benchmark in the roots; where several have one of the same name, that of the earliest root."""
    found: dict[str, CatalogEntry] = {}
    warnings: list[str] = []
    with Scan(TOPIC, roots, complete=True, cache=cache) as scan:
        for root in roots:
            for name, path in _candidates(scan, root).items():
                if name not in found:
                    found[name] = _entry(scan, name, path, roots, warnings)
                elif found[name].path.resolve() != Path(path).resolve():
                    warnings.append(f"benchmark '{name}' of {root} is hidden by {found[name].path}")
    ordered = sorted(found.values(), key=lambda entry: (entry.name.casefold(), entry.name, entry.kind))
    return Catalog(tuple(ordered), tuple(warnings))


def benchmark_names(roots: Sequence[Path]) -> list[str]:
    """The names of `list_benchmarks`, sorted."""
    with Scan(TOPIC, roots) as scan:
        return sorted({name for root in roots for name in _candidates(scan, root)})


def inspect_benchmark(name: str, roots: Sequence[Path]) -> dict[str, Any]:
    """The details of one benchmark as `list benchmarks NAME --json` prints them. Raises GymError for an unknown name."""
    canonical = benchmark_name(f"{name}.yaml")
    selection = find_selection(SELECTORS[KIND], canonical, roots)
    with Scan(TOPIC, roots) as scan:
        if selection is None or not (_is_benchmark(scan, str(selection.path)) or selection.path.with_name(MANIFEST).is_file()):
            hint = did_you_mean(name, benchmark_names(roots)) or "see `gym list benchmarks`"
            raise GymError(f"Unknown benchmark '{name}'.", hint=hint)
        entry = _entry(scan, canonical, str(selection.path), roots, [])
    if entry.broken:
        raise GymError(f"the configuration of '{name}' cannot be read: {entry.broken}", place=Place(str(entry.path)))
    details = {
        "config": str(entry.path),
        "status": entry.status,
        "manifest": str(entry.manifest or ""),
        "version": entry.version,
        "profile": entry.integration_profile,
        "modality": entry.modality,
        "licensing": entry.licensing,
        "lifecycle": entry.lifecycle,
        "resources servers": ", ".join(entry.resources_servers),
        "agent": entry.agent,
        "datasets": ", ".join(dataset for dataset, _ in entry.datasets),
    }
    lines = [entry.description, f"Value: {entry.value}" if entry.value else None]
    return {
        "name": entry.name,
        "type": KIND,
        "domain": entry.domain,
        "description": "\n".join(line for line in lines if line) or None,
        "details": {key: value for key, value in details.items() if value},
        "usage_example": f"gym env start --benchmark {entry.name} --model-type {_usual_model_type(roots)}",
    }


def _usual_model_type(roots: Sequence[Path]) -> str:
    """A model type that is there, for examples that can be typed as they stand."""
    there = (name for name in _USUAL_MODEL_TYPES if any((root / "responses_api_models" / name).is_dir() for root in roots))
    return next(there, _USUAL_MODEL_TYPES[0])


def benchmark_name(relative: str) -> str:
    """The name of the benchmark in `<benchmarks>/<relative>`: `x/config.yaml` is `x`, anything deeper keeps its stem."""
    stem = relative.removesuffix(".yaml")
    folder, _, last = stem.rpartition("/")
    return folder if last == "config" and folder and "/" not in folder else stem


def _candidates(scan: Scan, root: Path) -> dict[str, str]:
    """Configuration files by benchmark name. A folder with a manifest is one benchmark under the folder's name."""
    tree = root / PARENT
    paths = list(yaml_paths(tree))
    found: dict[str, str] = {}
    for path in paths:
        if os.path.basename(path) != MANIFEST and _is_benchmark(scan, path):
            found[benchmark_name(os.path.relpath(path, tree))] = path
    for path in paths:
        config = os.path.join(os.path.dirname(path), "config.yaml")
        if os.path.basename(path) == MANIFEST and os.path.isfile(config):
            found.pop(benchmark_name(os.path.relpath(config, tree)), None)
            found[os.path.relpath(os.path.dirname(path), tree)] = config
    return found


def _is_benchmark(scan: Scan, path: str) -> bool:
    """Whether a file declares one benchmark dataset (several make a suite, which is not listed), or cannot be read."""
    facts = scan.facts(path, workload_facts) or {}
    return bool(facts.get("broken")) or facts.get("benchmarks") == 1


def _entry(scan: Scan, name: str, path: str, roots: Sequence[Path], warnings: list[str]) -> CatalogEntry:
    facts = scan.facts(path, workload_facts) or {}
    broken = facts.get("broken")
    layers = [] if broken else [included["blocks"] for included in with_includes(scan, path, roots)]
    blocks: list[Facts] = [block for layer in layers for block in layer]
    # Lists replace lists in a merge: the datasets are those of the uppermost file that has any.
    own: list[Facts] = next((layer for layer in layers if any(block.get("datasets") for block in layer)), [])
    manifest_path = os.path.join(os.path.dirname(path), MANIFEST)
    manifest = scan.facts(manifest_path, manifest_facts) if os.path.basename(path) == "config.yaml" else None
    if manifest is not None:
        problem = manifest.get("broken") or _manifest_mismatch(manifest, name)
        if problem:
            warnings.append(f"{manifest_path}: {problem}; the manifest is ignored")
            manifest = None
    stated = manifest or {}
    agents = [block for block in blocks if block["kind"] == AGENTS]
    return CatalogEntry(
        name=name,
        kind=KIND,
        status="experimental" if manifest is not None else "no-manifest",
        domain=stated.get("domain") or _first(blocks, "domain"),
        description=stated.get("description") or _first(blocks, "description"),
        version=stated.get("version"),
        integration_profile=stated.get("integration_profile"),
        modality=stated.get("modality"),
        licensing=stated.get("licensing"),
        lifecycle=stated.get("lifecycle"),
        path=Path(path),
        manifest=Path(manifest_path) if manifest is not None else None,
        value=_first(blocks, "value"),
        resources_servers=_unique(block["implementation"] for block in blocks if block["kind"] == RESOURCES),
        agent=agents[0]["implementation"] if agents else None,
        datasets=_unique((dataset, kind) for block in own for dataset, kind in block.get("datasets", ())),
        broken=broken,
    )


def _manifest_mismatch(manifest: Facts, name: str) -> str | None:
    if manifest.get("kind") != KIND:
        return f"its kind is {manifest.get('kind')!r}, but it is below {PARENT}/"
    return f"its name is {manifest.get('name')!r}, but its folder makes it {name!r}" if manifest.get("name") != name else None


def _first(blocks: Sequence[Facts], key: str) -> str | None:
    return next((block[key] for block in blocks if block.get(key)), None)


def _unique(items: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(items))
