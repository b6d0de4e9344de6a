"""What the viewer does beside the loop: opening a file, reading it to its end, following it, finding rows. Everything here runs in threads."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from backend.errors import GymError
from backend.rollouts.rollout_file import RolloutFile
from backend.rollouts.rollout_query import Query, Sort
from backend.rollouts.rollout_search import Needle, RowTexts
from backend.rollouts.rollout_tasks import TaskGroups
from backend.rollouts.run_list import locate_run
from screens.viewer.listing import Listing, RolloutListing, TaskListing, order_tasks
from screens.viewer.missing import NoRolloutYet, NotThere
from screens.viewer.tally import Tally
from screens.widgets.background import Reporter

FIRST_SLICE, SLICE = 0.02, 0.08
"""Seconds between two looks at whether anybody still waits."""
REPORT_EVERY = 0.25
_GIVE_WAY = 0.02
"""Seconds of rest after a report: the loop draws it sooner when nobody else wants the interpreter."""
FOLLOW_EVERY = 0.5
_NEIGHBOURS = 8
"""Rows are read together when another one that is listed is among the next so many."""
_ROWS_PER_CLOCK = 16


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a file was read."""

    generation: int
    rows: int
    indexed: float
    """Which part of the bytes was searched for rows."""
    scanned: int
    """How many rows can be sorted, filtered and grouped."""
    complete: bool
    torn_bytes: int = 0
    gone: bool = False
    """The file is not there any more; what was read of it stays."""


class OpenFile:
    """A file of rollouts that threads read and the loop looks into; only one thread at a time reads on."""

    def __init__(self, path: Path) -> None:
        """Raises `GymError` when `path` means no run or cannot be read, `NoRolloutYet` when its run has not written any."""
        paths = locate_run(path)
        self.is_run = paths.run_folder.is_dir()
        if self.is_run and not paths.rollouts.exists():
            raise NoRolloutYet(paths)
        self.rollouts = RolloutFile(paths)
        self._reading = threading.Lock()

    def read_on(self, seconds: float) -> Progress:
        """Read further for about `seconds`."""
        with self._reading:
            file = self.rollouts
            at_end = file.extend(seconds)
            complete = file.scan_keys(seconds) and at_end
            gone = complete and not file.paths.rollouts.exists()
            return Progress(file.generation, len(file), file.indexed, len(file.keys), complete, file.torn_bytes, gone)

    def read_all(self, reporter: Reporter) -> Progress:
        """Read to the present end, and tell how far it is: at once, then four times a second."""
        progress, told = self.read_on(FIRST_SLICE), 0.0
        while not progress.complete and not reporter.cancelled:
            now = time.monotonic()
            if progress.rows and now - told >= REPORT_EVERY:
                reporter.tell(progress)
                told = now
                reporter.wait(_GIVE_WAY)
            progress = self.read_on(SLICE)
        return progress

    def follow(self, reporter: Reporter, before: Progress) -> None:
        """Look for new rows until cancelled, and tell whenever there are some."""
        while reporter.wait(FOLLOW_EVERY):
            progress = self.read_on(SLICE)
            while not progress.complete and not reporter.cancelled:
                progress = self.read_on(SLICE)
            if progress != before:
                reporter.tell(progress)
                before = progress


def open_or_miss(path: Path) -> OpenFile | NoRolloutYet | NotThere | None:
    """The file that `path` means, or what is known of one that is not there; None for a folder that is no run.

    Raises `GymError` when there is something that cannot be opened.
    """
    try:
        return OpenFile(path)
    except NoRolloutYet as early:
        return early
    except GymError as error:
        if path.is_dir():
            return None
        if os.path.exists(path):
            raise
        return NotThere(path, error)


def wait_for(path: Path, reporter: Reporter) -> None:
    """Wait until there is a file or a run, or until cancelled."""
    while not _is_there(path) and reporter.wait(FOLLOW_EVERY):
        pass


def _is_there(path: Path) -> bool:
    """A folder is made before what makes it a run."""
    if not path.is_dir():
        return os.path.exists(path)
    try:
        return locate_run(path).run_record.exists()
    except GymError:
        return False


@dataclass(frozen=True, slots=True)
class Order:
    """What the list is asked to show."""

    by_task: bool = True
    query: Query = field(default_factory=Query)
    sort: Sort | None = None
    """Unless the query has one of its own."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A listing, and what it was made from."""

    listing: Listing
    order: Order
    progress: Progress
    groups: TaskGroups
    tally: Tally
    unreadable: int
    """How many entries stand for rows that are no rollout."""
    seconds: float
    """How long it took: the next one can wait in proportion."""

    @property
    def total(self) -> int:
        """How many tasks or rollouts there are."""
        return self.listing.total - len(self.tally.unreadable)

    @property
    def shown(self) -> int:
        """How many of them are listed."""
        return len(self.listing) - self.unreadable

    @property
    def is_narrowed(self) -> bool:
        """Whether some rows are left out."""
        return bool(self.order.query.conditions or self.order.query.words)

    @property
    def sort(self) -> Sort | None:
        """The order in force; None for that of the file."""
        return self.order.query.sort or self.order.sort


def make_listing(file: RolloutFile, order: Order, progress: Progress, reporter: Reporter, before: Tally | None = None) -> Listed:
    """The list for an order; with words in it, which are searched in the rows' text, tells from time to time which part was searched.

    With the tally of `before`, rows that it has are not counted again.
    """
    begun = time.monotonic()
    sort = order.query.sort or order.sort
    rows = None
    if order.query.conditions or order.query.words or (sort and not order.by_task):
        filtering = file.filtering(Query(order.query.conditions, order.query.words, None if order.by_task else sort))
        while not filtering.advance(SLICE) and not reporter.cancelled:
            reporter.tell(filtering.progress)
        rows = filtering.rows
    listing: Listing
    groups = file.tasks()
    if order.by_task:
        chosen = order_tasks(groups, file.keys, rows, sort, lambda row: file.place(row).size, lambda: reporter.cancelled)
        listing = TaskListing(file, groups, chosen)
    else:
        listing = RolloutListing(file, range(len(file)) if rows is None else rows)
    tally = (before if before is not None and before.keys is groups.keys else Tally(groups.keys)).grown(groups.scanned)
    unreadable = sum(row in listing for row in tally.unreadable)
    return Listed(listing, order, progress, groups, tally, unreadable, time.monotonic() - begun)


def row_of_line(file: RolloutFile, line: int) -> int | None:
    """The row that begins in a 1-based line of the rollouts file; None when there is none (yet)."""
    row = 0
    while row < len(file):
        index, own, after, _ = file.run_of(row)
        if index.path == file.paths.rollouts and index.line_number(own) <= line <= index.line_number(own + after):
            low, high = own, own + after
            while low < high:
                middle = (low + high) // 2
                if index.line_number(middle) < line:
                    low = middle + 1
                else:
                    high = middle
            return row + low - own if index.line_number(low) == line else None
        row += after + 1
    return None


def row_of_task(file: RolloutFile, task: int, rollout: int | None) -> int | None:
    """The row of a task's repeat, or of its first; None when there is none (yet)."""
    groups = file.tasks()
    group = groups.group_of_task(task)
    if group is None:
        return None
    rows = groups[group].rows
    if rollout is None:
        return rows[0] if rows else None
    return next((row for row in rows if file.keys.rollouts[row] == rollout), None)


@dataclass(frozen=True, slots=True)
class Searched:
    """How far a search through all rows has come."""

    looked_at: int
    row: int | None = None


def search_all(file: RolloutFile, pattern: str, start: int, direction: int, reporter: Reporter) -> Searched:
    """The first row with a text from `start` on, round the end of the file; tells from time to time how many rows were searched."""
    looked_at, row, total = 0, start, len(file)
    while looked_at < total and not reporter.cancelled:
        if not 0 <= row < total:
            row = 0 if direction > 0 else total - 1
        step = file.search_text(pattern, row, direction, SLICE)
        looked_at = min(total, looked_at + abs(step.next_row - row))
        if step.row is not None:
            return Searched(looked_at, step.row)
        row = step.next_row
        reporter.tell(Searched(looked_at))
    return Searched(looked_at)


def search_listed(file: RolloutFile, listing: Listing, pattern: str, start: int, direction: int, reporter: Reporter) -> Searched:
    """The same among the rows that are listed, in the order of the file."""
    needle, texts, total = Needle(pattern), RowTexts(file), len(file)
    told = time.monotonic()
    for looked_at in range(total):
        row = (start + direction * looked_at) % total
        if row in listing:
            ahead = direction > 0 and any(row + after in listing for after in range(1, _NEIGHBOURS))
            if texts.contain(row, needle, ahead=ahead):
                return Searched(looked_at + 1, row)
        if looked_at % _ROWS_PER_CLOCK == 0 and time.monotonic() - told >= SLICE:
            if reporter.cancelled:
                break
            reporter.tell(Searched(looked_at))
            told = time.monotonic()
    return Searched(total)
