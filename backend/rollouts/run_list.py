"""Which runs there are below a folder, and which run a path means."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from backend.errors import GymError, Place, did_you_mean, name_some
from backend.io.result_paths import RUN_FOLDER_SUFFIX, ResultPaths
from backend.rollouts.run_entry import RunEntry, read_entry, read_entry_without_record
from backend.rollouts.run_record import paths_of_run_folder

DEFAULT_DEPTH = 6
MOST_ENTRIES = 50_000
"""Entries of one folder that are looked at: more are no folder of results."""

_PASSED_OVER = frozenset({"node_modules", "__pycache__", "site-packages", "model_calls", "logs", "venv"})
_RECORD, _EVENTS = "run.json", "events.ndjson"
_METRICS = "_aggregate_metrics.json"
_SIDE_FILES = ("_failures.jsonl", "_materialized_inputs.jsonl", _METRICS)


def locate_run(path: str | Path) -> ResultPaths:
    """The files of the run that `path` means: its rollouts file, one of the files beside it, its run folder, or a file in that.

    The rollouts file itself may be missing. Raises `GymError` that says what to name instead.
    """
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    if _is_run_folder(folder):
        return paths_of_run_folder(folder)
    if path.is_dir():
        raise _not_a_run(path)
    for suffix in _SIDE_FILES:
        stem = path.name.removesuffix(suffix)
        if stem != path.name and stem:
            paths = paths_of_run_folder(path.with_name(stem + RUN_FOLDER_SUFFIX))
            if paths.rollouts.exists() or _is_run_folder(paths.run_folder):
                return paths
    paths = ResultPaths(path)
    if _is_run_folder(paths.run_folder) or (path.is_file() and path.suffix in (".jsonl", ".ndjson", ".json")):
        return paths
    known = _runs_in(path.parent)
    raise GymError(
        f"{path} is no rollouts file of a run" if path.exists() else f"there is no run {path}",
        hint=did_you_mean(path.name, [run.rollouts.name for run in known]) or _name_one(path.parent, known),
        place=Place(str(path)),
    )


@dataclass(slots=True)
class RunCache:
    """Entries of an earlier search by their files' size and time, so that a new one reads only what has changed."""

    entries: dict[str, tuple[tuple[object, ...], RunEntry]] = field(default_factory=dict)


def find_runs(
    folder: str | Path,
    *,
    limit_depth: int = DEFAULT_DEPTH,
    cache: RunCache | None = None,
    now: float | None = None,
    go_on: Callable[[], bool] | None = None,
) -> Iterator[RunEntry]:
    """The runs below `folder`, near ones first, each as soon as it is read; a run that cannot be read has a `problem`.

    Folders are searched `limit_depth` levels down; hidden ones, environments, captures and logs are passed over, and no folder is
    entered twice, whatever links there are. `go_on` is asked before each of them; the search ends when it says no. Raises `GymError` when
    `folder` itself cannot be searched.
    """
    root = Path(folder)
    cache = RunCache() if cache is None else cache
    try:
        os.scandir(root).close()
        seen = {_identity(root)} | {_identity(parent) for parent in root.resolve().parents}
    except OSError as error:
        raise GymError(f"cannot search {root} for runs: {error.strerror}", place=Place(str(root))) from error
    waiting = deque([(root, "", 0)])
    while waiting:
        place, prefix, depth = waiting.popleft()
        if go_on is not None and not go_on():
            return
        found = _scan(place)
        for name in found.run_folders:
            entry = _cached_entry(place / name, prefix, cache, now)
            if entry is not None:
                yield entry
            else:
                found.folders.append(name)
        for stem in found.results:
            yield _cached_results(ResultPaths(place / f"{stem}.jsonl"), prefix + stem, cache)
        if depth < limit_depth:
            for name in sorted(found.folders):
                identity = _try_identity(place / name)
                if identity is not None and identity not in seen:
                    seen.add(identity)
                    waiting.append((place / name, f"{prefix}{name}/", depth + 1))


@dataclass(slots=True)
class _Found:
    run_folders: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    """Stems of results that have aggregate metrics and no run folder."""
    folders: list[str] = field(default_factory=list)


def _scan(folder: Path) -> _Found:
    """What is in one folder; an unreadable one is empty."""
    found = _Found()
    stems, rollouts = [], set()
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number >= MOST_ENTRIES:
                    break
                name = entry.name
                if name.endswith(_METRICS):
                    stems.append(name.removesuffix(_METRICS))
                elif name.endswith(".jsonl"):
                    rollouts.add(name.removesuffix(".jsonl"))
                elif name == "pyvenv.cfg":
                    return _Found()
                elif not name.startswith(".") and name not in _PASSED_OVER and _is_folder(entry):
                    (found.run_folders if name.endswith(RUN_FOLDER_SUFFIX) else found.folders).append(name)
    except OSError:
        return found
    found.run_folders.sort()
    with_folder = {name.removesuffix(RUN_FOLDER_SUFFIX) for name in found.run_folders}
    found.results = sorted(stem for stem in stems if stem in rollouts and stem not in with_folder)
    return found


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _cached_entry(folder: Path, prefix: str, cache: RunCache, now: float | None) -> RunEntry | None:
    """The entry of a run folder; None when it is no run folder after all."""
    record, events = _stamp(folder / _RECORD), _stamp(folder / _EVENTS)
    if record is None and events is None:
        return None
    stem = folder.name.removesuffix(RUN_FOLDER_SUFFIX)
    inputs = _stamp(folder.with_name(f"{stem}_materialized_inputs.jsonl"))
    stamp = (record, events, inputs)
    key = str(folder)
    known = cache.entries.get(key)
    name = prefix + stem
    if known and known[0] == stamp and known[1].name == name and known[1].state != "running":
        return known[1]
    entry = read_entry(folder, name, now)
    cache.entries[key] = (stamp, entry)
    return entry


def _cached_results(paths: ResultPaths, name: str, cache: RunCache) -> RunEntry:
    stamp = (_stamp(paths.aggregate_metrics),)
    key = str(paths.rollouts)
    known = cache.entries.get(key)
    if known and known[0] == stamp and known[1].name == name:
        return known[1]
    entry = read_entry_without_record(paths, name)
    cache.entries[key] = (stamp, entry)
    return entry


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _try_identity(path: Path) -> tuple[int, int] | None:
    try:
        return _identity(path)
    except OSError:
        return None


def _is_run_folder(folder: Path) -> bool:
    return folder.name.endswith(RUN_FOLDER_SUFFIX) and any((folder / name).exists() for name in (_RECORD, _EVENTS))


def _runs_in(folder: Path) -> list[ResultPaths]:
    return [paths_of_run_folder(folder / name) for name in _scan(folder).run_folders if _is_run_folder(folder / name)]


def _not_a_run(folder: Path) -> GymError:
    return GymError(
        f"{folder} is a folder, and not that of a run", hint=_name_one(folder, _runs_in(folder)), place=Place(str(folder))
    )


def _name_one(folder: Path, known: list[ResultPaths]) -> str:
    if not known:
        return "name a rollouts file or its run folder; `gym list runs FOLDER` shows those there are"
    return f"runs in {folder}: {name_some([paths.rollouts.name for paths in known], 5)}"
