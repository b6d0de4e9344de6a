"""Following a run in a thread: what is told, how often, and that it ends."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from backend.rollouts.run_list import RunCache
from screens.rollouts.following import Handshake, entry_of, follow_run, newest_run, read_whole_run, runs_by_age
from screens.rollouts.snapshot import Reading, RunSnapshot
from screens.widgets.background import Reporter
from tests.run_samples import DEAD_PID, START, live_run

AT = START + 95


def test_a_whole_run(tmp_path: Path) -> None:
    live_run(tmp_path)
    shot = read_whole_run(entry_of(tmp_path / "m_run", "m", AT), AT)
    assert (shot.finished_count, shot.scored, shot.failed, shot.planned) == (12, 11, 1, 40)
    assert [line.task for line in shot.finished] == list(range(11, -1, -1))
    assert [(line.task, line.stage) for line in shot.in_flight] == [(12, "model call 2"), (13, "")]
    assert [(failure.name, failure.count) for failure in shot.failures] == [("agent_run_error", 1)]
    assert shot.mean is not None
    assert round(shot.mean, 6) == 0.5  # four of 0, four of 1, three of 0.5
    assert shot.running


def test_the_next_snapshot_waits_until_the_last_was_drawn(tmp_path: Path) -> None:
    live_run(tmp_path)
    shots: list[RunSnapshot] = []
    reporter, handshake = Reporter(shots.append), Handshake()
    entry = entry_of(tmp_path / "m_run", "m", AT)
    now = [AT]
    thread = threading.Thread(target=follow_run, args=(entry, lambda: now[0], handshake, reporter))
    thread.start()
    try:
        _until(lambda: len(shots) == 1)
        now[0] += 5
        time.sleep(0.6)
        assert len(shots) == 1
        handshake.drawn()
        _until(lambda: len(shots) == 2)
        assert shots[1].elapsed == shots[0].elapsed + 5
    finally:
        began = time.monotonic()
        reporter.cancel()
        thread.join(5)
    assert not thread.is_alive()
    assert time.monotonic() - began < 2


def test_what_does_not_run_has_no_running_clock(tmp_path: Path) -> None:
    live_run(tmp_path, host=os.uname().nodename, pid=DEAD_PID)
    entry = entry_of(tmp_path / "m_run", "m", AT)
    soon, later = read_whole_run(entry, AT), read_whole_run(entry, AT + 1140)
    assert entry.state == "died"
    assert (soon.elapsed, later.elapsed) == (90, 90)  # until the last event
    assert [line.seconds for line in later.in_flight] == [68, 67]  # sent 22 and 23 s after the start
    assert [line.last_sign_seconds for line in later.in_flight] == [0, 67]
    assert (later.rate, later.eta) == (None, None)
    assert sum(later.rate_series) > 0
    assert later.now == AT + 1140  # ages go on


def test_a_run_whose_record_says_when_it_ended(tmp_path: Path) -> None:
    live_run(tmp_path, state="stopped")
    shot = read_whole_run(entry_of(tmp_path / "m_run", "m", AT), AT + 1140)
    assert shot.elapsed == 252


def test_a_run_that_goes_on_has_running_clocks(tmp_path: Path) -> None:
    live_run(tmp_path)
    entry = entry_of(tmp_path / "m_run", "m", AT)
    assert read_whole_run(entry, AT + 1140).elapsed == 95 + 1140


def test_no_moment_of_the_run_is_told_before_all_events_were_read(tmp_path: Path) -> None:
    live_run(tmp_path, done=1000, total=1200)
    told: list[RunSnapshot | Reading] = []
    handshake = Handshake()

    def take(value: RunSnapshot | Reading) -> None:
        told.append(value)
        handshake.drawn()

    reporter = Reporter(take)
    now = [AT]

    def clock() -> float:
        now[0] += 1
        return now[0]

    entry = entry_of(tmp_path / "m_run", "m", AT)
    thread = threading.Thread(target=follow_run, args=(entry, clock, handshake, reporter))
    thread.start()
    try:
        _until(lambda: any(isinstance(value, RunSnapshot) for value in told))
    finally:
        reporter.cancel()
        thread.join(5)
    assert isinstance(told[0], Reading) and 0 < told[0].share < 1
    first = next(value for value in told if isinstance(value, RunSnapshot))
    assert (first.finished_count, first.replayed) == (1000, 1.0)


def test_which_run_is_followed(tmp_path: Path) -> None:
    reporter = Reporter(lambda _value: None)
    assert newest_run(tmp_path, RunCache(), AT, reporter) is None
    live_run(tmp_path, stem="old", state="done", started_at=START - 50)
    live_run(tmp_path, stem="new", state="done", started_at=START + 50)
    live_run(tmp_path, stem="going", started_at=START)
    best = newest_run(tmp_path, RunCache(), AT, reporter)
    assert best is not None
    assert best.name == "going"
    assert [run.name for run in runs_by_age(tmp_path, RunCache(), AT, reporter)] == ["new", "going", "old"]


def _until(condition: object, seconds: float = 20) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
