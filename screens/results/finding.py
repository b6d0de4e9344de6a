"""Looks for runs beside the loop: first what there is at all, then again and again what has changed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.errors import GymError
from backend.io.result_paths import RUN_FOLDER_SUFFIX
from backend.rollouts.run_entry import RUNNING, RunEntry, read_entry
from backend.rollouts.run_list import RunCache, find_runs, locate_run
from screens.widgets.background import Reporter

BATCH_SECONDS = 0.1
_BATCH_SECONDS_PER_RUN = 2e-4
"""Showing a batch costs more the more runs there are."""
_WORK_SECONDS, _REST_SECONDS = 0.01, 0.002
"""The search rests now and then, so that the loop does not have to wait for the interpreter at every step."""
CORE_SHARE, DISK_SHARE = 50, 5
"""As many times the search's computing, or its length, pass until the next one: a large folder keeps neither a core nor a disk
busy, and one search that a slow moment of the machine made long does not keep new runs off the list for long."""


def run_key(run: RunEntry) -> str:
    """What makes a run itself in the list."""
    return str(run.paths.rollouts)


@dataclass(frozen=True, slots=True)
class Batch:
    """What a search has found since its last batch, and how many folders it has looked into."""

    runs: tuple[RunEntry, ...]
    folders: int


@dataclass(frozen=True, slots=True)
class Found:
    """All runs below a folder."""

    folder: Path
    runs: tuple[RunEntry, ...]
    folders: int
    seconds: float
    """How long the search took."""
    computing: float
    """Seconds of it on a core."""
    wanted: str | None = None
    """Key of the run that the search was asked for."""

    @property
    def rest_seconds(self) -> float:
        """How long to wait until all runs are searched for again."""
        return max(self.computing * CORE_SHARE, self.seconds * DISK_SHARE)


def search(place: Path, root: Path, cache: RunCache, now: float, reporter: Reporter) -> Found:
    """The runs below `place`; where that is a run itself, those below `root` or, if it lies elsewhere, beside it.

    Tells a `Batch` every 100 ms. Raises `GymError` when there is no such folder or run.
    """
    began = last = rested = time.monotonic()
    computed = time.thread_time()
    folder, wanted = _folder_of(place, root)
    runs: list[RunEntry] = []
    folders = told = 0

    def tell_and_rest() -> None:
        nonlocal last, told, rested
        present = time.monotonic()
        if present - rested >= _WORK_SECONDS:
            reporter.wait(_REST_SECONDS)
            rested = time.monotonic()
        if present - last >= max(BATCH_SECONDS, len(runs) * _BATCH_SECONDS_PER_RUN):
            reporter.tell(Batch(tuple(runs[told:]), folders))
            last, told = present, len(runs)

    def go_on() -> bool:
        nonlocal folders
        folders += 1
        tell_and_rest()
        return not reporter.cancelled

    for run in find_runs(folder, cache=cache, now=now, go_on=go_on):
        runs.append(run)
        tell_and_rest()
        if reporter.cancelled:
            break
    return Found(folder, tuple(runs), folders, time.monotonic() - began, time.thread_time() - computed, wanted)


def look_again(runs: Sequence[RunEntry], now: float, reporter: Reporter) -> tuple[RunEntry, ...]:
    """The runs that were running, as they are at this moment."""
    entries = []
    for run in runs:
        if reporter.cancelled:
            break
        if run.state == RUNNING:
            entries.append(read_entry(run.paths.run_folder, run.name, now))
    return tuple(entries)


def _folder_of(place: Path, root: Path) -> tuple[Path, str | None]:
    is_folder = place.is_dir()
    if is_folder and not place.name.endswith(RUN_FOLDER_SUFFIX):
        return place, None
    try:
        run = locate_run(place)
    except GymError:
        if is_folder or not place.exists():
            return place, None
        raise
    return (root if run.rollouts.is_relative_to(root) else run.folder), str(run.rollouts)
