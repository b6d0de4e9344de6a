"""Runs as rows of the list: what stands in each column, and the signs of their states."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from backend.rollouts.run_entry import DIED, DONE, FAILED, NO_RECORD, RUNNING, STOPPED, RunEntry
from backend.rollouts.run_query import SORT_KEYS
from screens.results.finding import run_key
from screens.results.run_filter import lit_letters
from screens.widgets import formatting, glyphs
from screens.widgets.columns import Column
from screens.widgets.scores import score_text
from screens.widgets.virtual_list import Cell, Row

COLUMNS = (
    Column("state", "STATE", 12),
    Column("name", "NAME", least=13, keep_end=True),
    Column("benchmark", "BENCHMARK", least=10, keep=1),
    Column("model", "MODEL", least=10, keep=2),
    Column("score", "SCORE", 19),
    Column("scored", "SCORED", 7, right=True, keep=5),
    Column("failed", "FAILED", 6, right=True, keep=4),
    Column("missing", "MISSING", 7, right=True, keep=3),
    Column("age", "AGE", 6, right=True, keep=6),
)
SORTABLE = tuple(column.name for column in COLUMNS if column.name in SORT_KEYS)
SILENT_SECONDS = 60.0
"""A run on another host that has written nothing for so long is said to be silent: from here nobody can tell whether it lives."""


def sign_of(run: RunEntry) -> tuple[str, str]:
    """The sign of a run's state and its style."""
    signs = glyphs.current()
    if run.problem:
        return signs.warning, "warn"
    return {
        RUNNING: (signs.running, "accent") if not is_silent(run) else (signs.unknown, "warn"),
        DONE: (signs.good, "good"),
        STOPPED: (signs.stopped, "warn"),
        FAILED: (signs.failed, "bad"),
        DIED: (signs.failed, "bad"),
        NO_RECORD: (signs.neutral, "muted"),
    }.get(run.state, (signs.unknown, "warn"))


def is_silent(run: RunEntry) -> bool:
    """Whether a run that is said to be running has not written for a while."""
    return run.silent_for is not None and run.silent_for >= SILENT_SECONDS


def state_text(run: RunEntry) -> str:
    """The state in words, with the percentage of a running run."""
    if run.problem:
        return "unreadable"
    if is_silent(run):
        return f"quiet {formatting.age(run.silent_for)}"
    finished = (run.scored or 0) + (run.failed or 0)
    if run.state == RUNNING and run.planned:
        return f"{run.state} {100 * finished // run.planned}%"
    return run.state


def shared_folder(runs: Iterable[RunEntry]) -> str:
    """The folder that the names of all runs begin with, with its slash; empty where they have none in common."""
    folders = {run.name.rpartition("/")[0] for run in runs}
    folder = folders.pop() if len(folders) == 1 else ""
    return f"{folder}/" if folder else ""


class RunRows:
    """Some runs in the order in which they are shown, without the `folder` that all names begin with; `now` is what ages are from."""

    def __init__(
        self,
        runs: Sequence[RunEntry] = (),
        now: float = 0.0,
        words: Sequence[str] = (),
        *,
        fuzzy: bool = False,
        folder: str = "",
    ) -> None:
        self.runs = runs
        self._now = now
        self._words = tuple(words)
        self._fuzzy = fuzzy
        self._folder = folder
        self._places = {run_key(run): index for index, run in enumerate(runs)}

    def __len__(self) -> int:
        return len(self.runs)

    def key(self, index: int) -> str:
        return run_key(self.runs[index])

    def index_of(self, key: Hashable) -> int | None:
        return self._places.get(key) if isinstance(key, str) else None

    def row(self, index: int) -> Row:
        run = self.runs[index]
        sign, style = sign_of(run)
        final = run.headline is not None and run.headline.final
        age = None if run.when is None else self._now - run.when
        cells = (
            Cell(state_text(run), style),
            self._lit(run.name, "strong", hidden=len(self._folder)),
            self._lit(run.benchmark or glyphs.current().nothing),
            self._lit(run.model or glyphs.current().nothing),
            Cell(score_text(run.headline), "plain" if final else "muted"),
            formatting.count(run.scored),
            Cell(formatting.count(run.failed), "warn" if run.failed else "plain"),
            Cell(formatting.count(run.missing), "warn" if run.missing and run.state != RUNNING else "plain"),
            Cell(formatting.age(age), "muted"),
        )
        return Row(cells, sign, style)

    def _lit(self, text: str, style: str = "plain", hidden: int = 0) -> Cell:
        """A cell with the letters that the words match, without its first `hidden` ones."""
        lit = lit_letters(text, self._words, fuzzy=self._fuzzy) if self._words else ()
        return Cell(text[hidden:], style, tuple(at - hidden for at in lit if at >= hidden))
