"""Which files of a root are components: the rules of each kind, in one place.

A benchmark is any YAML file below `benchmarks/` that itself declares exactly one data set of type `benchmark` (several make a suite, which
can be selected but is not listed). An environment is a direct child of `environments/` with a `config.yaml` and no tombstone. A folder
with a `manifest.yaml` is one workload under the folder's name. Resources servers, models and agents are the configurations below
`<kind>/<component>/configs/`; a resources server's configuration that brings an agent and data is a workload as well.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from backend.catalog.composed import datasets_of, own_servers
from backend.catalog.facts import benchmark_facts, config_facts
from backend.catalog.kinds import AGENT, BENCHMARK, ENVIRONMENT, KINDS, MODEL, RESOURCES_SERVER, ComponentKind
from backend.catalog.scan import Scan
from backend.config.schema import AGENTS, RESOURCES

MANIFEST = "manifest.yaml"
TOMBSTONE = ".nemo_gym_tombstone"
"""In an environment's folder: the environment has another name now."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A component that was found; what is in its files comes later."""

    kind: str
    name: str
    path: str
    """The configuration file; of an agent its folder."""
    root: Path
    server_selector: str | None = None
    """Of a workload in a resources server's tree: what `--resources-server` takes."""
    variants: tuple[str, ...] = ()
    """Of an agent."""


def candidates(scan: Scan, kind: str, root: Path) -> Iterator[Candidate]:
    """The components of one kind in one root, by folder and file; workloads of resources servers are found by `server_workloads`."""
    return _FINDERS[kind](scan, root)


def candidate_at(scan: Scan, kind: str, root: Path, relative: str) -> Candidate | None:
    """The component of that kind whose configuration is the file at a path relative to the root; None when it is none."""
    described = KINDS[kind]
    below = os.path.relpath(relative, described.parent)
    path = os.path.join(root, relative)
    folder = os.path.dirname(path)
    if described.is_workload:
        if os.path.basename(path) == "config.yaml" and os.path.isfile(os.path.join(folder, MANIFEST)):
            return Candidate(kind, os.path.dirname(below), path, root)
        fits = is_benchmark(scan, path) if kind == BENCHMARK else below.count("/") == 1 and _is_environment(folder)
    else:
        fits = kind == MODEL or is_resources_server(scan, path)
    return Candidate(kind, described.name_of(below), path, root) if fits else None


def server_workloads(scan: Scan, root: Path, taken: Container[tuple[str, str]]) -> Iterator[Candidate]:
    """The workloads in a root's resources servers: configurations with a server of that kind, and an agent with data sets.

    One whose selector ends in the name of a workload of the same kind, given as (kind, name) in `taken`, is that workload's twin and is left out.
    """
    for selector, path in _configs(KINDS[RESOURCES_SERVER], root):
        candidate = server_workload(scan, root, selector, path)
        if candidate and (candidate.kind, selector.rpartition("/")[2]) not in taken:
            yield candidate


def server_workload(scan: Scan, root: Path, selector: str, path: str) -> Candidate | None:
    """The workload that one configuration of a resources server is; None when it brings no agent with data."""
    facts = scan.facts(path, config_facts) or {}
    servers = list(own_servers(facts.get("tree", {})))
    datasets = [entry for _, type_, _, block in servers if type_ == AGENTS for entry in datasets_of(block)]
    if not datasets or not any(type_ == RESOURCES for _, type_, _, _ in servers):
        return None
    kind = BENCHMARK if any(entry.get("type") == "benchmark" for entry in datasets) else ENVIRONMENT
    return Candidate(kind, f"{RESOURCES}/{selector}", path, root, server_selector=selector)


def yaml_paths(folder: str) -> list[str]:
    """All `*.yaml` files below a folder, sorted; links to folders are followed once, hidden folders are not entered."""
    pending, seen = [folder], set()
    found = []
    while pending:
        current = pending.pop()
        try:
            status = os.stat(current)
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            entries = list(os.scandir(current))
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith((".", "__")):
                continue
            if _is_folder(entry):
                pending.append(entry.path)
            elif entry.name.endswith(".yaml"):
                found.append(entry.path)
    return sorted(found)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def folders(parent: str) -> list[str]:
    """The names of the folders in a folder, sorted, without hidden and private ones."""
    try:
        return sorted(entry.name for entry in os.scandir(parent) if not entry.name.startswith((".", "_")) and _is_folder(entry))
    except OSError:
        return []


def flavors(folder: str) -> list[str]:
    """The stems of the `*.yaml` files that lie directly in a folder, sorted."""
    try:
        return sorted(
            entry.name.removesuffix(".yaml")
            for entry in os.scandir(folder)
            if entry.name.endswith(".yaml") and os.path.isfile(entry.path)
        )
    except OSError:
        return []


def likely(kind: str, root: Path) -> Iterator[tuple[str, str]]:
    """Names and paths that folders alone make likely, without reading a file."""
    described = KINDS[kind]
    parent = os.path.join(root, described.parent)
    if not described.is_workload:
        if kind == AGENT:
            yield from ((name, os.path.join(parent, name)) for name in folders(parent))
        else:
            yield from _configs(described, root)
        return
    for name in folders(parent):
        path = os.path.join(parent, name, "config.yaml")
        if os.path.isfile(path):
            yield name, path


def _benchmarks(scan: Scan, root: Path) -> Iterator[Candidate]:
    kind = KINDS[BENCHMARK]
    tree = os.path.join(root, kind.parent)
    paths = yaml_paths(tree)
    found = {}
    for path in paths:
        if os.path.basename(path) != MANIFEST and is_benchmark(scan, path):
            found[kind.name_of(os.path.relpath(path, tree))] = path
    yield from _with_manifests(kind, root, paths, found)


def _environments(scan: Scan, root: Path) -> Iterator[Candidate]:
    kind = KINDS[ENVIRONMENT]
    tree = os.path.join(root, kind.parent)
    found = {}
    for name in folders(tree):
        if _is_environment(os.path.join(tree, name)):
            found[name] = os.path.join(tree, name, "config.yaml")
    yield from _with_manifests(kind, root, yaml_paths(tree), found)


def _is_environment(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, "config.yaml")) and not os.path.exists(os.path.join(folder, TOMBSTONE))


def _with_manifests(kind: ComponentKind, root: Path, paths: Iterable[str], found: dict[str, str]) -> Iterator[Candidate]:
    tree = os.path.join(root, kind.parent)
    for path in paths:
        config = os.path.join(os.path.dirname(path), "config.yaml")
        if os.path.basename(path) == MANIFEST and os.path.isfile(config):
            found.pop(kind.name_of(os.path.relpath(config, tree)), None)
            found[os.path.relpath(os.path.dirname(path), tree)] = config
    yield from (Candidate(kind.name, name, path, root) for name, path in found.items())


def is_benchmark(scan: Scan, path: str) -> bool:
    """Whether a file declares one benchmark data set, or may do so and cannot be read."""
    facts = scan.facts(path, benchmark_facts) or {}
    return bool(facts.get("broken")) or facts.get("benchmarks") == 1


def _resources_servers(scan: Scan, root: Path) -> Iterator[Candidate]:
    for name, path in _configs(KINDS[RESOURCES_SERVER], root):
        if is_resources_server(scan, path):
            yield Candidate(RESOURCES_SERVER, name, path, root)


def is_resources_server(scan: Scan, path: str) -> bool:
    """Whether a file has a block of a resources server, or may have one and cannot be read."""
    facts = scan.facts(path, config_facts) or {}
    return bool(facts.get("broken")) or any(type_ == RESOURCES for _, type_, _, _ in own_servers(facts.get("tree", {})))


def _models(_scan: Scan, root: Path) -> Iterator[Candidate]:
    for name, path in _configs(KINDS[MODEL], root):
        yield Candidate(MODEL, name, path, root)


def _agents(scan: Scan, root: Path) -> Iterator[Candidate]:
    kind = KINDS[AGENT]
    for name in folders(os.path.join(root, kind.parent)):
        if agent := agent_at(scan, root, name):
            yield agent


def agent_at(scan: Scan, root: Path, name: str) -> Candidate | None:
    """The agent in a folder of that name; None when there is none."""
    folder = os.path.join(root, AGENTS, name)
    variants = tuple(stem for stem in flavors(os.path.join(folder, str(KINDS[AGENT].configs))) if _has_agent(scan, folder, stem))
    is_agent = bool(variants) or os.path.isfile(os.path.join(folder, "app.py"))
    return Candidate(AGENT, name, folder, root, variants=variants) if is_agent else None


def _has_agent(scan: Scan, folder: str, stem: str) -> bool:
    facts = scan.facts(os.path.join(folder, str(KINDS[AGENT].configs), f"{stem}.yaml"), config_facts) or {}
    return bool(facts.get("broken")) or any(type_ == AGENTS for _, type_, _, _ in own_servers(facts.get("tree", {})))


def _configs(kind: ComponentKind, root: Path) -> Iterator[tuple[str, str]]:
    """Name and path of every configuration that lies directly in a component's folder of configurations."""
    parent = os.path.join(root, kind.parent)
    for component in folders(parent):
        folder = os.path.join(parent, component, str(kind.configs))
        for stem in flavors(folder):
            yield kind.name_of(f"{component}/{kind.configs}/{stem}.yaml"), os.path.join(folder, f"{stem}.yaml")


_FINDERS = {
    BENCHMARK: _benchmarks,
    ENVIRONMENT: _environments,
    AGENT: _agents,
    MODEL: _models,
    RESOURCES_SERVER: _resources_servers,
}
