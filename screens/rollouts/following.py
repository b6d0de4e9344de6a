"""Follows one run's event file in a thread, and finds the run to follow when none was named."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from backend.io.event_stream import EventStream
from backend.rollouts.run_entry import RUNNING, RunEntry, read_entry, read_entry_without_record
from backend.rollouts.run_list import RunCache, find_runs, locate_run
from backend.rollouts.run_progress import RunProgress
from screens.rollouts.snapshot import Reading, RunSnapshot, take_snapshot
from screens.widgets.background import Reporter

BATCH = 500
"""Events folded at a stretch: some 5 ms of work."""
_BREATH_SECONDS = 0.001
"""A pause after each batch of a long replay, or the thread would take half of the loop's time."""
DRAW_SECONDS = 0.25
_NEARLY = 0.99
"""The share that was read, as long as something is left: a chunk of the file counts as read before its events are."""
TICK_SECONDS = 1.0
"""How often durations of a run that goes on are drawn anew although no event came."""
RECORD_SECONDS = 1.0
IDLE_SECONDS = 1.0


class Handshake:
    """Lets the thread make the next snapshot only after the last one was drawn, so that drawing can never fall behind."""

    def __init__(self) -> None:
        self._drawn = threading.Event()
        self._drawn.set()

    def drawn(self) -> None:
        """The screen has drawn what it was sent."""
        self._drawn.set()

    def wait(self, seconds: float) -> None:
        """Wait until the last snapshot was drawn: a thread that computes meanwhile would take half of the loop's time."""
        self._drawn.wait(seconds)

    def take(self) -> bool:
        """Whether something may be sent; claims the turn."""
        if not self._drawn.is_set():
            return False
        self._drawn.clear()
        return True


def follow_run(entry: RunEntry, clock: Callable[[], float], handshake: Handshake, reporter: Reporter) -> None:
    """Read the events of a run and tell a `RunSnapshot` at most four times a second, until cancelled.

    Until all events that are there were read once, how far that is is told instead: a `Reading`.
    """
    progress = RunProgress()
    generation, sent_at, checked_at, sent, sent_state, whole = 0, 0.0, 0.0, -1, "", False
    with EventStream(entry.paths.events) as stream:
        while not reporter.cancelled:
            events = stream.read(BATCH)
            if stream.generation != generation:
                generation, progress, sent, whole = stream.generation, RunProgress(), -1, False
            progress.feed(events)
            now = clock()
            if not whole and stream.at_end:
                whole = True
                handshake.wait(DRAW_SECONDS)
            if not whole:
                if (now - sent_at >= DRAW_SECONDS or now < sent_at) and handshake.take():
                    reporter.tell(Reading(_replayed(stream)))
                    sent_at = now
                reporter.wait(_BREATH_SECONDS)
                continue
            if now - checked_at >= RECORD_SECONDS or now < checked_at:
                entry, checked_at = _read_again(entry, now), now
            going_on = entry.state == RUNNING and not progress.phase.over
            # A killed run says nothing any more: only its record's process is gone.
            changed = progress.generation != sent or entry.state != sent_state
            due = changed or (going_on and now - sent_at >= TICK_SECONDS) or now < sent_at
            ready = stream.at_end or now - sent_at >= DRAW_SECONDS  # a burst does not hold up what is drawn
            if due and ready and handshake.take():
                entry, checked_at = (_read_again(entry, now), now) if progress.phase.over and going_on else (entry, checked_at)
                reporter.tell(take_snapshot(progress, entry, now, _replayed(stream)))
                sent, sent_at, sent_state = progress.generation, now, entry.state
                handshake.wait(DRAW_SECONDS)
            reporter.wait((DRAW_SECONDS if going_on else IDLE_SECONDS) if stream.at_end else _BREATH_SECONDS)


def read_whole_run(entry: RunEntry, now: float) -> RunSnapshot:
    """One snapshot of all events that are there."""
    progress = RunProgress()
    with EventStream(entry.paths.events) as stream:
        while True:
            progress.feed(stream.read())
            if stream.at_end:
                return take_snapshot(progress, entry, now)


def entry_of(folder: Path, name: str, now: float) -> RunEntry:
    """The entry of a run folder."""
    return read_entry(folder, name, now)


def entry_of_path(path: Path, shown: Callable[[Path], str], now: float) -> RunEntry:
    """The entry of the run that a path means, named as `shown` writes its path. Raises `GymError` for what is no run."""
    paths = locate_run(path)
    return entry_of(paths.run_folder, shown(paths.rollouts.with_suffix("")), now)


def newest_run(root: Path, cache: RunCache, now: float, reporter: Reporter) -> RunEntry | None:
    """The run to follow below a folder: the newest that runs, else the newest."""
    best: RunEntry | None = None
    for entry in find_runs(root, cache=cache, now=now):
        if reporter.cancelled:
            return None
        if entry.paths.events.parent.exists() and (best is None or _rank(entry) > _rank(best)):
            best = entry
    return best


def runs_by_age(root: Path, cache: RunCache, now: float, reporter: Reporter) -> list[RunEntry]:
    """All runs that have events, newest first."""
    found = []
    for entry in find_runs(root, cache=cache, now=now):
        if reporter.cancelled:
            return []
        if entry.paths.run_folder.exists():
            found.append(entry)
    return sorted(found, key=lambda entry: (-(entry.when or 0.0), entry.name))


def _rank(entry: RunEntry) -> tuple[bool, float]:
    return entry.state == RUNNING, entry.when or 0.0


def _read_again(entry: RunEntry, now: float) -> RunEntry:
    folder = entry.paths.run_folder
    return read_entry(folder, entry.name, now) if folder.exists() else read_entry_without_record(entry.paths, entry.name)


def _replayed(stream: EventStream) -> float:
    try:
        size = os.stat(stream.path).st_size
    except OSError:
        return 1.0
    return min(_NEARLY, stream.position / size) if size and not stream.at_end else 1.0
