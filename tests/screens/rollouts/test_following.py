"""Following a run in a thread: what is told, how often, and that it ends."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from backend.rollouts.run_list import RunCache
from screens.rollouts.following import Handshake, entry_of, follow_run, newest_run, read_whole_run, runs_by_age
from screens.rollouts.snapshot import RunSnapshot
from screens.widgets.background import Reporter
from tests.run_samples import START, live_run

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
