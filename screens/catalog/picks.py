"""What can be done with some components of the catalogue: command-line words that load them, and commands to begin with."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from backend.catalog.entries import CatalogEntry
from backend.catalog.kinds import AGENT, KINDS, MODEL
from backend.rollouts.run_entry import RunEntry
from screens.widgets.free_output import free_output

_ONE_ONLY = (AGENT, MODEL)
"""Kinds of which a command takes one."""
_NO_FILE_NAME = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True)
class Picks:
    """Components that were chosen, in the order in which they were."""

    entries: tuple[CatalogEntry, ...]
    remarks: tuple[str, ...] = ()
    """Which were left out, and why."""

    @property
    def words(self) -> tuple[str, ...]:
        """The command-line words that load them, such as `--benchmark first_steps`."""
        return tuple(word for entry in self.entries if entry.flag for word in (entry.flag, entry.selector))


def picked(entries: Iterable[CatalogEntry]) -> Picks:
    """Those of `entries` that a command can load together."""
    kept: list[CatalogEntry] = []
    remarks = []
    for entry in entries:
        kind = entry.described_kind
        if entry.flag is None:
            remarks.append(f"{entry.name} has no configuration to load")
        elif entry.kind in _ONE_ONLY and any(other.kind == entry.kind for other in kept):
            remarks.append(f"a command takes one {kind.flag}: {entry.name} is left out")
        else:
            kept.append(entry)
    return Picks(tuple(kept), tuple(remarks))


def run_command(picks: Picks, taken: Callable[[str], bool]) -> str:
    """A command line, without `gym`, that evaluates the picks; what is still to be chosen comes last. `taken` says which outputs exist."""
    words = shlex.join(("eval", "run", *picks.words))
    workload = next((entry for entry in picks.entries if entry.kind not in _ONE_ONLY), None)
    if workload is None:
        return f"{words} --benchmark "
    stem = _NO_FILE_NAME.sub("-", workload.selector).strip("-.") or "run"
    return f"{words} --output {shlex.quote(free_output(stem, taken))}"


def equal_command(entry: CatalogEntry | None, kind: str | None, words: Sequence[str]) -> str:
    """The `gym` command that says what the screen shows: of the component under the cursor, else of the search or the listing."""
    if entry is not None:
        return shlex.join(("gym", "list", entry.described_kind.plural, entry.name))
    plural = (KINDS[kind].plural,) if kind else ()
    if words:
        return shlex.join(("gym", "search", *plural, " ".join(words)))
    return shlex.join(("gym", "list", *(plural or ("benchmarks",))))


def was_used(entry: CatalogEntry, run: RunEntry) -> bool:
    """Whether a run's command loads the component by its selector."""
    if entry.flag is None:
        return False
    pairs = itertools.pairwise(run.command)
    return f"{entry.flag}={entry.selector}" in run.command or (entry.flag, entry.selector) in pairs
