"""What a configuration is made of: the shapes of its files merged, with directives applied, by the rules that a run follows.

Nothing is resolved: interpolations stay, and only what `facts` keeps has values.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.catalog.entries import Broken, Dataset, Server, Written
from backend.catalog.facts import Facts, config_facts
from backend.catalog.scan import Scan
from backend.config.schema import (
    AGENTS,
    MISSING,
    POLICY_MODEL,
    RESERVED_KEYS,
    RESOURCES,
    SERVER_TYPES,
    STAND_IN_IMPLEMENTATION,
    STAND_INS,
)
from backend.errors import GymError


@dataclass(frozen=True, slots=True)
class Composed:
    """A configuration as far as the catalogue looks into it."""

    domain: str | None
    description: str | None
    value: str | None
    servers: tuple[Server, ...]
    datasets: tuple[Dataset, ...]
    written: Written
    unset: tuple[str, ...]
    files: tuple[Path, ...]
    broken: Broken | None


def compose(scan: Scan, path: str) -> Composed:
    """The configuration of one file with all it includes.

    Domain and description are those of the file's own blocks, else of all blocks in order; the value is its own. Where something is
    wrong, `broken` has the first problem and the rest is what can still be told.
    """
    own = scan.facts(path, config_facts) or {}
    files, problem = _merge_order(scan, path)
    record = scan.derived(path, files, lambda: _composition(scan, files))
    texts = {key: first_text(own.get("tree", {}), key) or record["texts"].get(key) for key in ("domain", "description", "value")}
    broken = problem or (Broken(**record["broken"]) if record.get("broken") else None)
    return Composed(
        **texts,
        servers=tuple(Server(*server) for server in record["servers"]),
        datasets=tuple(_dataset(scan, dataset) for dataset in record["datasets"]),
        written=_written(own.get("tree", {})),
        unset=tuple(record["unset"]),
        files=tuple(map(Path, files)),
        broken=broken,
    )


def own_servers(tree: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Instance, type, implementation and block of all servers in the shape of a configuration."""
    for instance, block in tree.items():
        if not isinstance(block, dict) or instance in RESERVED_KEYS:
            continue
        for server_type in SERVER_TYPES:
            implementations = block.get(server_type)
            for implementation, fields in implementations.items() if isinstance(implementations, dict) else ():
                if isinstance(fields, dict):
                    yield instance, server_type, implementation, fields


def datasets_of(block: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The data sets that a server block declares."""
    datasets = block.get("datasets")
    return [entry for entry in datasets if isinstance(entry, dict)] if isinstance(datasets, list) else []


def _written(tree: Mapping[str, Any]) -> Written:
    servers = list(own_servers(tree))
    of_type = {type_: [name for _, each, name, _ in servers if each == type_] for type_ in (RESOURCES, AGENTS)}
    datasets = [str(entry.get("name")) for _, _, _, block in servers for entry in datasets_of(block)]
    return Written(*(tuple(dict.fromkeys(names)) for names in (of_type[RESOURCES], of_type[AGENTS], datasets)))


def _merge_order(scan: Scan, path: str) -> tuple[list[str], Broken | None]:
    """The files of a configuration in the order in which they merge, and what is wrong with the first that is wrong.

    Found breadth first, each entry once; an includer comes after what it includes.
    """
    children: dict[str, list[str]] = {path: []}
    waiting, seen = deque([path]), {path}
    problem: Broken | None = None
    while waiting:
        current = waiting.popleft()
        facts = scan.facts(current, config_facts) or {"broken": {"message": "this is no file"}}
        if facts.get("broken"):
            problem = problem or Broken(**facts["broken"], file=current)
            continue
        for entry in facts["includes"]:
            if entry in seen or "${" in entry:  # where an interpolation leads is known only when a run is configured
                continue
            seen.add(entry)
            found = scan.find(entry)
            if found is None:
                found, missing = _moved(scan, entry)
                problem = problem or (Broken(missing, current) if missing else None)
            if found is not None and found not in children:
                children[current].append(found)
                children[found] = []
                waiting.append(found)
    return list(_post_order(children, path)), problem


def _moved(scan: Scan, entry: str) -> tuple[str | None, str | None]:
    """The present file of an entry that no root has, or the sentence that says so."""
    from backend.config.findings import Findings  # with PyYAML, as late as in `facts`
    from backend.config.includes import locate
    from backend.config.nodes import Origin

    try:
        return str(locate(entry, scan.roots, Origin("file"), Findings())), None
    except GymError as error:
        return None, error.message


def _post_order(children: Mapping[str, list[str]], path: str) -> Iterator[str]:
    for child in children[path]:
        yield from _post_order(children, child)
    yield path


def _composition(scan: Scan, files: list[str]) -> Facts:
    trees = {file: facts["tree"] for file in files if (facts := scan.facts(file, config_facts)) and "tree" in facts}
    tree, problem = _merged(trees)
    servers = [server for server in own_servers(tree) if server[2] != STAND_IN_IMPLEMENTATION]
    return {
        "texts": {key: first_text(tree, key) for key in ("domain", "description")},
        "servers": [
            [instance, type_, implementation, _reference(block, "resources_server"), _reference(block, "model_server")]
            for instance, type_, implementation, block in servers
        ],
        "datasets": [
            {"declared_by": instance, "declared_by_type": type_, **_dataset_facts(entry)}
            for instance, type_, _, block in servers
            for entry in datasets_of(block)
        ],
        "unset": list(_unset(tree, tree, "")),
        "broken": {"message": problem.message, "file": (problem.place and problem.place.file) or files[-1]} if problem else None,
    }


def _merged(trees: Mapping[str, dict[str, Any]]) -> tuple[dict[str, Any], GymError | None]:
    """The shapes of some files, by path, as one, and the first thing that is wrong with that."""
    if len(trees) == 1 and not any(map(_has_directives, trees.values())):
        return next(iter(trees.values())), None
    from backend.config.directives import apply_directives  # these take 0.03 s to import, and a warm cache does without
    from backend.config.findings import Findings
    from backend.config.merge import merge_into
    from backend.config.nodes import Origin, node_of, plain

    findings = Findings()
    stand_in = not any(POLICY_MODEL in tree for tree in trees.values())
    root = node_of({POLICY_MODEL: STAND_INS[POLICY_MODEL]} if stand_in else {}, Origin("stand_in"))
    for file, tree in trees.items():
        merge_into(root, node_of(tree, Origin("file", file=file)), report=lambda error, *_place: findings.error(error))
    merged: dict[str, Any] = plain(apply_directives(root, findings))
    if stand_in:
        merged.pop(POLICY_MODEL, None)
    return merged, findings.errors[0] if findings.errors else None


def _has_directives(value: Any) -> bool:
    if isinstance(value, dict):
        return any(key.startswith("_") or _has_directives(item) for key, item in value.items())
    if isinstance(value, list):
        return any(map(_has_directives, value))
    return isinstance(value, str) and value.startswith(("${inherit_from:", "${copy:"))


def first_text(tree: Mapping[str, Any], key: str) -> str | None:
    """The first `domain`, `description` or `value` in the server blocks of a configuration."""
    for _, _, _, block in own_servers(tree):
        value = block.get(key)
        if isinstance(value, str | int | float) and value != MISSING and str(value).strip():
            return str(value)
    return None


def _reference(block: Mapping[str, Any], field: str) -> str | None:
    reference = block.get(field)
    name = reference.get("name") if isinstance(reference, dict) else None
    return name if isinstance(name, str) and name != MISSING else None


def _dataset_facts(entry: Mapping[str, Any]) -> Facts:
    texts = {
        key: _text(entry.get(field)) for key, field in (("path", "jsonl_fpath"), ("prepare_script",) * 2, ("prompt_config",) * 2)
    }
    repeats = entry.get("num_repeats")
    return {
        "name": str(entry.get("name")),
        "type": str(entry.get("type")),
        **texts,
        "license": _text(entry.get("license")),
        "num_repeats": repeats if isinstance(repeats, int) else None,
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value != MISSING else None


def _dataset(scan: Scan, facts: Facts) -> Dataset:
    found = scan.find(facts["path"]) if facts["path"] else None
    return Dataset(**facts, file=Path(found) if found else None)


def _unset(tree: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    """Dotted keys with `???`, and keys at the top that interpolations name but nobody sets."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _unset(tree, item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unset(tree, item, f"{path}[{index}]")
    elif value == MISSING:
        yield path
    elif isinstance(value, str) and value.startswith("${") and ":" not in value:
        key = value[2:-1].split(".")[0]
        if key and key not in tree:
            yield key
