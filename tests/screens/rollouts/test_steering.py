"""Cancelling in two steps, and the run beside another one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from screens.rollouts.following import entry_of, read_whole_run
from screens.rollouts.steering import CONFIRM_SECONDS, Cancelling, run_beside
from tests.run_samples import START, live_run

AT = START + 95


def test_two_steps(tmp_path: Path) -> None:
    live_run(tmp_path)
    shot = read_whole_run(entry_of(tmp_path / "m_run", "m", AT), AT)
    cancelling = Cancelling()
    first = cancelling.ask(shot, True, AT)
    assert first.action == "drain" and "2 in flight may finish" in first.text
    assert cancelling.ask(shot, True, AT + CONFIRM_SECONDS).action == "cancel"
    draining = replace(shot, stop_action="drain")
    asked = cancelling.ask(draining, True, AT + 60)
    assert (asked.action, asked.text) == ("", "x again gives up the 2 rollouts in flight")


def test_a_run_that_is_over_and_one_of_which_nothing_was_read(tmp_path: Path) -> None:
    assert Cancelling().ask(None, False, AT) == ("", "this run does not run, so there is nothing to cancel", "warning")
    unread = Cancelling()
    step = unread.ask(None, True, AT)
    assert step.action == "drain" and "what is in flight may finish" in step.text
    assert unread.ask(None, True, AT + 1).action == "cancel"


def test_the_run_beside(tmp_path: Path) -> None:
    for stem in ("a", "b"):
        live_run(tmp_path, stem=stem)
    runs = [entry_of(tmp_path / f"{stem}_run", stem, AT) for stem in ("a", "b")]
    assert run_beside(runs, runs[0], 1) is runs[1]
    assert run_beside(runs, None, 1) is runs[0]
    assert run_beside(runs, runs[0], -1) == "this is the newest run"
    assert run_beside(runs, runs[1], 1) == "this is the oldest run"
    assert run_beside([], None, 1) == "there is no run below the folder"
