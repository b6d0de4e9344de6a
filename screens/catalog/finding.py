"""Finds components and the runs that used them, beside the loop: names first, then everything that their files say."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.catalog.entries import Catalog, EntryName
from backend.catalog.kinds import KINDS
from backend.catalog.listing import likely_names, whole_catalog
from backend.errors import GymError
from backend.rollouts.run_entry import RunEntry
from backend.rollouts.run_list import RunCache, find_runs
from screens.widgets.background import Reporter

MOST_RUNS = 2000
RUN_SECONDS = 3.0
"""So long runs are looked for; that a component was used is worth no more."""
_WORK_SECONDS, _REST_SECONDS = 0.01, 0.002


@dataclass(frozen=True, slots=True)
class Names:
    """What the folders let expect, before files are read."""

    names: tuple[EntryName, ...]


@dataclass(frozen=True, slots=True)
class FoundRuns:
    """Runs, the newest first."""

    runs: tuple[RunEntry, ...]
    all_of_them: bool


def find_components(roots: Sequence[Path], reporter: Reporter) -> Catalog:
    """Every component of the roots; tells `Names` before it reads a file."""
    reporter.tell(Names(tuple(likely_names(KINDS, roots))))
    return whole_catalog(roots)


def find_recent_runs(root: Path, cache: RunCache, now: float, reporter: Reporter) -> FoundRuns:
    """The runs below a folder, as far as they are found in a few seconds; none where there is no such folder."""
    end = time.monotonic() + RUN_SECONDS
    rested = time.monotonic()
    complete = True

    def go_on() -> bool:
        nonlocal complete, rested
        if time.monotonic() - rested >= _WORK_SECONDS:
            reporter.wait(_REST_SECONDS)  # so that the loop does not have to wait for the interpreter at every step
            rested = time.monotonic()
        complete = complete and not reporter.cancelled and time.monotonic() < end and len(runs) < MOST_RUNS
        return complete

    runs: list[RunEntry] = []
    try:
        for run in find_runs(root, cache=cache, now=now, go_on=go_on):
            runs.append(run)
            if not go_on():
                break
    except GymError:
        return FoundRuns((), True)
    return FoundRuns(tuple(sorted(runs, key=lambda run: run.when or 0.0, reverse=True)), complete)
