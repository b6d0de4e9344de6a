"""Which tasks count as done, by the order of a run's events."""

from __future__ import annotations

from typing import Any

from backend.rollouts.run_progress import RunProgress
from backend.rollouts.run_progress_scores import TaskOutcomes
from tests.run_folders import BEGAN, event, failed, finished, started

NONE = TaskOutcomes(0, 0, 0)


def run_of(total: int, **more: Any) -> RunProgress:
    progress = RunProgress()
    resume(progress, total, **more)
    return progress


def resume(progress: RunProgress, total: int, **more: Any) -> None:
    progress.fold(event("run.planned", BEGAN, output="o", inputs="i", rollouts=total, concurrency=4, agents={}))
    progress.fold(event("collection.started", BEGAN, total=total, **more))


def test_a_task_is_done_when_all_its_repeats_have_come_back() -> None:
    progress = run_of(4)
    progress.feed([started(0, 0), started(0, 1)])
    progress.fold(finished(0, 0, reward=1.0))
    assert progress.task_outcomes() == NONE
    progress.fold(finished(0, 1, reward=1.0))
    assert progress.task_outcomes() == NONE  # a third repeat may follow
    progress.fold(started(1, 0))
    assert progress.task_outcomes() == TaskOutcomes(1, 0, 0)
    progress.fold(started(1, 1))
    progress.fold(finished(1, 1, reward=0.0))
    assert progress.task_outcomes() == TaskOutcomes(1, 0, 0)
    progress.fold(finished(1, 0, reward=0.0))
    assert progress.task_outcomes() == TaskOutcomes(1, 1, 0)  # the plan has no more than four


def test_the_first_of_many_rollouts_is_no_task() -> None:
    progress = run_of(7200)
    progress.feed([started(0, repeat) for repeat in range(4)])
    progress.fold(finished(0, 0, reward=1.0))
    assert (progress.task_outcomes(), progress.rewards) == (NONE, 1)
    progress.feed([started(1, 0), finished(0, 1), finished(0, 2)])
    assert progress.task_outcomes() == NONE
    progress.fold(failed(0, 3))
    assert progress.task_outcomes() == TaskOutcomes(1, 0, 0)  # a failed repeat has come back, without a score


def test_a_task_without_any_score_has_no_outcome() -> None:
    progress = run_of(2)
    progress.feed([started(0), failed(0), started(1), finished(1, reward=0.5)])
    assert progress.task_outcomes() == TaskOutcomes(0, 0, 1)


def test_what_was_given_up_is_not_done() -> None:
    progress = run_of(6)
    progress.feed([started(0, 0), started(0, 1), started(1, 0), finished(0, 0), finished(1, 0, reward=0.0)])
    progress.fold(
        event("collection.ended", BEGAN + 2, scored=2, failed=0, missing=4, cancelled=1, failure_classes={}, seconds=1.0)
    )
    progress.fold(event("run.ended", BEGAN + 2, state="stopped"))
    assert progress.task_outcomes() == NONE  # task 0 lacks a repeat, and task 1 may have more


def test_a_resumed_run_closes_the_tasks_that_were_interrupted() -> None:
    progress = run_of(6)
    progress.feed([started(0, 0), started(0, 1), started(1, 0), finished(0, 0), finished(1, 0, reward=0.0)])
    progress.fold(event("run.ended", BEGAN + 2, state="stopped"))
    resume(progress, 6, scored_before=2)
    progress.fold(started(0, 1))
    assert progress.task_outcomes() == NONE
    progress.fold(finished(0, 1, reward=0.0))
    assert progress.task_outcomes() == NONE
    progress.fold(started(2, 0))
    assert progress.task_outcomes() == TaskOutcomes(all_pass=0, all_fail=1, mixed=1)  # task 1 had no more repeats
    progress.feed([started(2, 1), started(2, 2), finished(2, 0), finished(2, 1), finished(2, 2)])
    assert progress.task_outcomes() == TaskOutcomes(all_pass=1, all_fail=1, mixed=1)


def test_rows_that_stand_apart_open_their_task_again() -> None:
    progress = run_of(3)
    progress.feed([started(0, 0), finished(0, 0), started(1, 0)])
    assert progress.task_outcomes() == TaskOutcomes(1, 0, 0)
    progress.fold(started(0, 1))
    assert progress.task_outcomes() == NONE
    progress.feed([finished(0, 1, reward=0.0), finished(1, 0)])
    assert progress.task_outcomes() == TaskOutcomes(1, 0, 1)


def test_a_run_that_is_done_has_whole_tasks_even_if_events_were_lost() -> None:
    progress = run_of(2)
    progress.feed([started(0, 0), started(0, 1), finished(0, 0)])
    progress.fold(event("run.summary", BEGAN + 3, state="done", scores=[], total=2, scored=2, failed=0, missing=0))
    assert progress.task_outcomes() == TaskOutcomes(1, 0, 0)
