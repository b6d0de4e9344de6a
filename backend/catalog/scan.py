"""What listings need to know of a YAML file, read once and remembered until the file changes.

The cache is one JSON file in this program's cache home, keyed by path, size and modification time. A missing, broken or unwritable
cache costs time and nothing else; two processes may write it at once, the later one wins whole.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from backend.config.schema import AGENTS, RESOURCES, SERVER_TYPES
from backend.errors import GymError
from backend.io import homes
from backend.io.files import write_atomically
from backend.io.json_codec import dumps, loads

FORMAT = 1
"""Raised whenever facts change their meaning, so that an old cache is not read."""

_BENCHMARK_MARK = re.compile(r"""type["']?\s*:\s*["']?benchmark\b""")

Facts = dict[str, Any]
"""What `facts_of` returns: JSON values only."""


class Scan:
    """Facts of YAML files, with a cache behind them. Use as a context manager, so that new facts are saved.

    Each `topic` has a cache of its own; a `complete` scan of it drops what it did not meet from the cache.
    """

    def __init__(self, topic: str, roots: Sequence[Path], *, complete: bool = False, cache: bool = True) -> None:
        folder = homes.usable(homes.cache_home("catalog")) if cache else None
        digest = hashlib.sha256("\0".join(map(str, roots)).encode()).hexdigest()[:16]
        self._file = folder / f"{topic}-{digest}.json" if folder else None
        self._known: dict[str, list[Any]] = self._load()
        self._used: dict[str, list[Any]] = {}
        self._complete = complete
        self._changed = False

    def __enter__(self) -> Scan:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.save()

    def facts(self, path: str, read: Callable[[str, str], Facts]) -> Facts | None:
        """`read(path, text)` for the present content of the file; None when there is no such file."""
        try:
            status = os.stat(path)
        except OSError:
            return None
        stamp = [status.st_size, status.st_mtime_ns]
        known = self._known.get(path)
        too_shallow = known is not None and known[2].get("unparsed") and read is not workload_facts
        if known is None or known[:2] != stamp or too_shallow:
            known = self._known[path] = [*stamp, _read(path, read)]
            self._changed = True
        self._used[path] = known
        facts: Facts = known[2]
        return facts

    def save(self) -> None:
        """Write the cache if anything in it changed."""
        files = self._used if self._complete else self._known
        if self._file is None or not (self._changed or len(files) != len(self._known)):
            return
        try:
            write_atomically(self._file, dumps({"format": FORMAT, "files": files}), mode=0o600)
        except GymError:
            return

    def _load(self) -> dict[str, list[Any]]:
        if self._file is None:
            return {}
        try:
            content = loads(self._file.read_bytes())
            files = content["files"] if content["format"] == FORMAT else {}
            return files if all(_is_record(record) for record in files.values()) else {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}


def yaml_paths(folder: Path) -> Iterator[str]:
    """All `*.yaml` files below `folder`, sorted; links to folders are followed once, hidden folders are not entered."""
    pending, seen = [str(folder)], set()
    found = []
    while pending:
        current = pending.pop()
        try:
            status = os.stat(current)
            entries = list(os.scandir(current))
        except OSError:
            continue
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        for entry in entries:
            if entry.name.startswith((".", "__")):
                continue
            if entry.is_dir():
                pending.append(entry.path)
            elif entry.name.endswith(".yaml"):
                found.append(entry.path)
    yield from sorted(found)


def config_facts(path: str, text: str) -> Facts:
    """Facts of a configuration file.

    `benchmarks` counts the mappings with `type: benchmark` at any depth, `includes` are its `config_paths`, `blocks` its servers in
    file order. A file that is no YAML has `broken` with the reason.
    """
    from backend.config.yaml_source import parse_plain  # PyYAML takes 0.03 s to import, and a warm cache does without

    try:
        tree = parse_plain(text, path)
    except GymError as error:
        place = f"line {error.place.line}: " if error.place and error.place.line else ""
        return {"broken": f"{place}{error.message}"}
    includes = tree.get("config_paths")
    return {
        "benchmarks": sum(1 for item in _mappings(tree) if item.get("type") == "benchmark"),
        "includes": [item for item in includes if isinstance(item, str)] if isinstance(includes, list) else [],
        "blocks": [facts for name, block in tree.items() for facts in _block_facts(name, block)],
    }


def workload_facts(path: str, text: str) -> Facts:
    """As `config_facts`, but a file whose text cannot declare a benchmark is not parsed."""
    if _BENCHMARK_MARK.search(text) is None:
        return {"benchmarks": 0, "unparsed": True}
    return config_facts(path, text)


def with_includes(scan: Scan, path: str, roots: Sequence[Path]) -> Iterator[Facts]:
    """Facts of a file, then of all it includes, those that win in a merge first."""
    from backend.io.roots import resolve_path

    pending, seen = [path], set()
    while pending:
        current = pending.pop(0)
        if current in seen:
            continue
        seen.add(current)
        facts = scan.facts(current, config_facts)
        if facts is not None and not facts.get("broken"):
            yield facts
            included = [str(resolve_path(entry, roots)) for entry in reversed(facts["includes"])]
            pending = [*included, *pending]


def _read(path: str, read: Callable[[str, str], Facts]) -> Facts:
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        return {"broken": "the file is not UTF-8 text"}
    except OSError as error:
        return {"broken": f"cannot read the file: {error.strerror}"}
    return read(path, text)


def _block_facts(name: Any, block: Any) -> Iterator[Facts]:
    """One record per implementation in a top-level block."""
    if not isinstance(block, dict):
        return
    for kind in SERVER_TYPES:
        entries = block.get(kind)
        for implementation, fields in entries.items() if isinstance(entries, dict) else ():
            if isinstance(fields, dict):
                yield _server_facts(str(name), kind, str(implementation), fields)


def _server_facts(name: str, kind: str, implementation: str, fields: Mapping[Any, Any]) -> Facts:
    facts: Facts = {"name": name, "kind": kind, "implementation": implementation}
    for key in ("domain", "description", "value"):
        if isinstance(fields.get(key), str | int | float):
            facts[key] = str(fields[key])
    if kind in (AGENTS, RESOURCES):
        datasets = fields.get("datasets")
        facts["datasets"] = [
            [str(entry.get("name")), str(entry.get("type"))]
            for entry in (datasets if isinstance(datasets, list) else ())
            if isinstance(entry, dict)
        ]
    if kind == AGENTS:
        facts["keys"] = [key for key in ("resources_server", "agent_framework", "anthropic_api_key") if key in fields]
    return facts


def _mappings(value: Any) -> Iterator[Mapping[Any, Any]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _mappings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _mappings(item)


def _is_record(record: Any) -> bool:
    return isinstance(record, list) and len(record) == 3 and isinstance(record[2], dict)
