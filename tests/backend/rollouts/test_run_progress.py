"""A run's events folded into what a live view shows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.metrics.intervals import Interval, wilson
from backend.rollouts.run_progress import MOST_FAILURE_CLASSES, OTHER_CLASSES, RunProgress
from backend.rollouts.run_progress_parts import Phase
from backend.rollouts.run_progress_scores import TaskOutcomes
from backend.rollouts.run_progress_view import KEPT_FINISHED
from tests.run_folders import AGENT, BEGAN, event, failed, finished, started, summary


def planned(rollouts: int = 10, at: float = BEGAN) -> dict[str, Any]:
    return event(
        "run.planned", at, output="o.jsonl", inputs="i.jsonl", rollouts=rollouts, concurrency=4, agents={AGENT: rollouts}
    )


def collecting(total: int = 10, at: float = BEGAN, **more: Any) -> list[dict[str, Any]]:
    return [planned(total, at), event("collection.started", at, total=total, **more)]


def fed(*events: Any) -> RunProgress:
    progress = RunProgress()
    progress.feed(events)
    return progress


def test_phases_of_a_run_from_plan_to_end() -> None:
    progress = RunProgress()
    seen = []
    for each in (
        planned(2),
        event("stack.starting", BEGAN, servers=["a", "b"], head_url="http://127.0.0.1:1"),
        event("stack.progress", BEGAN, ready=0, total=2, waiting=["a", "b"]),
        event("stack.ready", BEGAN, seconds=1.0, instances=[]),
        event("collection.started", BEGAN, total=2),
        started(0),
        event("run.control", BEGAN + 1, action="drain", by="me@here 1"),
        finished(0),
        event("collection.ended", BEGAN + 1, scored=1, failed=0, missing=1, cancelled=0, failure_classes={}, seconds=1.0),
        event("metrics.written", BEGAN + 1, path="m", key_metrics={AGENT: {"mean/reward": 1.0}}),
        summary(BEGAN + 2, 1, 0, 1, 1.0, state="stopped"),
        event("run.ended", BEGAN + 2, state="stopped", error=None),
    ):
        progress.fold(each)
        seen.append(progress.phase)
    assert seen == [
        Phase.PLANNED, Phase.STARTING, Phase.WAITING, Phase.WAITING, Phase.COLLECTING, Phase.COLLECTING, Phase.DRAINING,
        Phase.DRAINING, Phase.AGGREGATING, Phase.AGGREGATING, Phase.STOPPED, Phase.STOPPED,
    ]  # fmt: skip
    assert (progress.stop_action, progress.stop_by) == ("drain", "me@here 1")
    assert progress.key_metrics == {AGENT: {"mean/reward": 1.0}}
    assert progress.summary is not None and progress.summary["state"] == "stopped"
    assert (progress.scored, progress.missing, progress.generation) == (1, 1, 12)
    assert progress.elapsed(BEGAN + 1000) == 2


def test_a_run_that_fails_tells_its_error() -> None:
    progress = fed(*collecting(), event("run.ended", BEGAN, state="failed", error="a server died"))
    assert (progress.phase, progress.error) == (Phase.FAILED, "a server died")


def test_servers_and_endpoints() -> None:
    progress = fed(
        event("stack.starting", BEGAN, servers=["a", "b"], head_url="http://127.0.0.1:1"),
        event(
            "server.started", BEGAN, name="a", kind="resources_servers", implementation="mcqa", pid=7, url="http://127.0.0.1:2"
        ),
        event("server.ready", BEGAN, name="a", seconds=0.5),
        event(
            "server.started", BEGAN, name="b", kind="responses_api_models", implementation="m", pid=8, url="http://127.0.0.1:3"
        ),
        event("server.ended", BEGAN, name="b", code=-9),
        event("endpoint.state", BEGAN, url="http://x/v1", key="k", state="unreachable", reason="refused"),
        event("endpoint.state", BEGAN + 1, url="http://x/v1", key="k", state="answering", reason=""),
    )
    a, b = progress.servers["a"], progress.servers["b"]
    assert (a.state, a.url, a.implementation, a.seconds) == ("up", "http://127.0.0.1:2", "mcqa", 0.5)
    assert (b.state, b.code, b.pid) == ("ended", -9, 8)
    assert [(endpoint.state, endpoint.at) for endpoint in progress.endpoints.values()] == [("answering", BEGAN + 1)]


def test_counts_rewards_and_failures() -> None:
    progress = fed(
        *collecting(6),
        finished(0, 0, reward=1.0),
        finished(0, 1, reward=0.0),
        finished(1, 0, reward=0.0),
        failed(2, 0, at=BEGAN + 5),
        failed(2, 1, at=BEGAN + 6, reason="again"),
    )
    assert (progress.scored, progress.failed, progress.missing, progress.finished_count) == (3, 2, 1, 5)
    assert progress.mean_reward == pytest.approx(1 / 3)
    assert progress.mean_reward_with_failures == pytest.approx(1 / 5)
    assert progress.task_outcomes() == TaskOutcomes(all_pass=0, all_fail=1, mixed=1)
    tally = progress.failures["agent_run_error"]
    assert (tally.count, tally.last_at, tally.last_reason) == (2, BEGAN + 6, "again")
    agent = progress.agents[AGENT]
    assert (agent.planned, agent.finished, agent.scored, agent.failed, agent.mean_reward) == (6, 5, 3, 2, pytest.approx(1 / 3))
    assert (progress.input_tokens, progress.output_tokens, progress.output_tokens_quantile(0.5)) == (500, 50, 10)
    assert [(each.low, each.count) for each in progress.reward_bins() if each.count] == [(0, 2), (1, 1)]


def test_the_interval_of_single_attempts_is_wilsons() -> None:
    progress = fed(*collecting(72), *(finished(task, reward=float(task < 26)) for task in range(72)))
    assert progress.interval() == wilson(26, 72)


def test_the_interval_of_a_run_that_is_over_is_that_of_its_summary() -> None:
    progress = fed(*collecting(4), *(finished(task, rep, reward=float(task > 0)) for task in range(2) for rep in range(2)))
    assert progress.interval() == Interval(0.0, 1.0, "bootstrap")  # half of the resamples of two tasks are all 0 or all 1
    progress.fold(summary(BEGAN + 9, 4, 0, 0, 0.45))
    assert progress.interval() == Interval(0.45 - 0.1, 0.45 + 0.1, "normal")
    assert progress.mean_reward == 0.45
    progress.fold(planned(8, BEGAN + 20))
    assert (progress.mean_reward, progress.interval()) == (0.5, Interval(0.0, 1.0, "bootstrap"))


@pytest.mark.parametrize(
    "scores", [None, [], [3], [{"name": "reward/mean"}], [{"name": "reward/mean", "value": 1.0}] * 2, [{"name": "x", "value": 2}]]
)
def test_a_summary_without_one_mean_changes_nothing(scores: Any) -> None:
    progress = fed(*collecting(2), finished(0), finished(1, reward=0.0))
    progress.fold(event("run.summary", BEGAN + 2, state="done", scores=scores, scored=2, failed=0))
    assert (progress.mean_reward, progress.interval()) == (0.5, wilson(1, 2))


@pytest.mark.parametrize("interval", [None, 3, {"low": 0.1}, {"low": "x", "high": 1}, {"low": 0.7, "high": 0.1}])
def test_a_summary_may_have_a_mean_without_an_interval(interval: Any) -> None:
    row = {"name": "reward/mean", "value": 0.25, "interval": interval}
    progress = fed(*collecting(2), finished(0), event("run.summary", BEGAN + 2, state="done", scores=[row]))
    assert (progress.mean_reward, progress.interval()) == (0.25, None)


def test_an_interval_that_takes_time_is_computed_once_a_second() -> None:
    progress = fed(*collecting(9), *(finished(0, rep, reward=float(rep)) for rep in range(2)), finished(1, 0))
    first = progress.interval(BEGAN + 5.0)
    progress.feed([finished(1, 1, reward=0.0), finished(2, 0, reward=0.0)])
    assert progress.interval(BEGAN + 5.9) is first
    later = progress.interval(BEGAN + 6.0)
    assert later != first
    assert progress.interval() == later


def test_the_scale_of_the_rewards() -> None:
    progress = fed(*collecting(3), finished(0, reward=0.5))
    assert progress.reward_scale == "0-1"
    progress.fold(finished(1, reward=-0.5))
    assert progress.reward_scale == "raw"


def test_the_time_of_the_latest_event_survives_a_step_of_the_clock() -> None:
    progress = fed(*collecting(), started(0, at=BEGAN + 10), started(1, at=BEGAN - 3600))
    assert progress.latest_said == BEGAN - 3600
    assert progress.elapsed(progress.latest_said) == 10


def test_a_scored_rollout_without_a_reward_counts_and_is_not_in_the_mean() -> None:
    progress = fed(*collecting(2), finished(0, reward=None), finished(1, reward=0.5))
    assert (progress.scored, progress.rewards, progress.mean_reward) == (2, 1, 0.5)


def test_rate_and_series() -> None:
    progress = fed(*collecting(600), *(finished(task, at=BEGAN + task / 2) for task in range(1, 241)))
    assert progress.rate(BEGAN + 120.0) == pytest.approx(2.0, rel=0.02)
    series = progress.rate_series(BEGAN + 120.0)
    assert len(series) == 60
    assert series[-1] == pytest.approx(2.0)
    assert series[:35] == [0.0] * 35
    assert progress.rate(BEGAN + 1000.0) == 0.0


def test_eta_needs_twenty_finished_or_thirty_seconds() -> None:
    few = fed(*collecting(100), *(finished(task, at=BEGAN + task + 1) for task in range(10)))
    assert few.eta(BEGAN + 10) is None
    assert few.eta(BEGAN + 31) is not None
    many = fed(*collecting(120), *(finished(task, at=BEGAN + (task + 1) / 2) for task in range(20)))
    eta = many.eta(BEGAN + 10)
    assert eta is not None
    assert eta.seconds == pytest.approx(100 / 2)
    assert eta.spread == pytest.approx(50 * (1 / 20 + 1 / 100) ** 0.5)
    many.feed(finished(task, at=BEGAN + 11) for task in range(20, 120))
    assert many.eta(BEGAN + 12) is None


def test_eta_of_a_draining_run_is_about_what_is_in_flight() -> None:
    progress = fed(*collecting(1000), *(finished(task, at=BEGAN + task + 1) for task in range(40)))
    progress.feed([started(50, at=BEGAN + 40), started(51, at=BEGAN + 40)])
    progress.fold(event("run.control", BEGAN + 40, action="drain", by="x"))
    eta = progress.eta(BEGAN + 40)
    assert eta is not None and eta.seconds == pytest.approx(2.0)


def test_in_flight_with_stages() -> None:
    progress = fed(
        *collecting(),
        started(0, at=BEGAN),
        started(1, at=BEGAN + 1, attempt=2),
        event("rollout.stage", BEGAN + 5, task=1, rollout=0, stage="model call 2", detail="policy_model", since=BEGAN + 4),
        event("rollout.stage", BEGAN + 5, task=9, rollout=9, stage="verify", detail="", since=BEGAN),
    )
    first, second = progress.in_flight(BEGAN + 10)
    assert (first.task, first.stage, first.seconds, first.last_sign_seconds) == (0, "", 10, 10)
    assert (second.attempt, second.stage, second.detail) == (2, "model call 2", "policy_model")
    assert (second.seconds, second.stage_seconds, second.last_sign_seconds) == (9, 6, 5)
    progress.fold(finished(1, at=BEGAN + 11))
    assert [row.task for row in progress.in_flight(BEGAN + 12)] == [0]
    assert progress.in_flight_count() == 1


def test_clock_steps_backwards_give_no_negative_durations() -> None:
    progress = fed(
        *collecting(),
        started(0, at=BEGAN + 10),
        started(1, at=BEGAN - 3600),
        event("rollout.stage", BEGAN - 3599, task=1, rollout=0, stage="verify", detail="", since=BEGAN - 3599.5),
    )
    now = BEGAN - 3590
    rows = progress.in_flight(now)
    assert [(row.seconds, row.stage_seconds) for row in rows] == [(10, 10), (10, 9.5)]
    assert progress.elapsed(now) == 20
    assert progress.elapsed(BEGAN - 9999) == 11
    progress.fold(finished(0, at=BEGAN - 3589))
    assert progress.rate(BEGAN - 3589) == pytest.approx(1 / 21)


def test_a_step_forward_or_a_stage_from_before_the_start_is_no_negative_duration() -> None:
    progress = fed(
        *collecting(),
        started(0, at=BEGAN + 1),
        event("rollout.stage", BEGAN + 2, task=0, rollout=0, stage="a", detail="", since=BEGAN + 99),
    )
    assert progress.in_flight(BEGAN + 2)[0].stage_seconds == 0
    progress.fold(event("rollout.stage", BEGAN + 2, task=0, rollout=0, stage="a", detail="", since=BEGAN - 99))
    assert progress.in_flight(BEGAN + 2)[0].stage_seconds == 1


def test_a_resumed_run_keeps_scores_and_counts_failures_anew() -> None:
    progress = fed(
        *collecting(10),
        *(finished(task) for task in range(4)),
        failed(4),
        failed(5),
        started(6),
        *collecting(10, at=BEGAN + 3600, scored_before=5, failed_before=1),
        started(4, at=BEGAN + 3601, attempt=1),
    )
    assert progress.phase is Phase.COLLECTING
    assert (progress.planned, progress.scored, progress.failed, progress.missing) == (10, 5, 1, 4)
    assert (progress.scored_before, progress.failed_before, progress.failures) == (5, 1, {})
    assert (progress.rewards, progress.mean_reward) == (4, 1.0)
    assert [row.task for row in progress.in_flight(BEGAN + 3602)] == [4]
    assert progress.elapsed(BEGAN + 3610) == 10
    assert progress.rate(BEGAN + 3610) == 0.0
    assert progress.agents[AGENT].finished == 4

    progress.fold(finished(4, at=BEGAN + 3605, attempt=1, reward=0.0))
    assert (progress.scored, progress.mean_reward) == (6, 0.8)
    line = progress.finished_line(4, 0)
    assert line is not None and (line.attempt, line.failure, line.reward) == (1, None, 0.0)
    assert [row.task for row in progress.finished()] == [4, 5, 3, 2, 1, 0]
    assert progress.arrivals == 7


def test_another_run_in_the_same_file_begins_with_nothing() -> None:
    progress = fed(*collecting(4), finished(0), failed(1), *collecting(3, at=BEGAN + 10))
    assert (progress.planned, progress.scored, progress.failed, progress.mean_reward) == (3, 0, 0, None)
    assert (progress.finished(), progress.output_tokens, progress.agents[AGENT].finished) == ([], 0, 0)


def test_finished_lines_are_newest_first_and_bounded() -> None:
    progress = fed(*collecting(5000), *(finished(task, at=BEGAN + task) for task in range(KEPT_FINISHED + 10)))
    rows = progress.finished()
    assert len(rows) == KEPT_FINISHED
    assert (rows[0].task, rows[-1].task) == (KEPT_FINISHED + 9, 10)
    assert [row.task for row in progress.finished(2)] == [KEPT_FINISHED + 9, KEPT_FINISHED + 8]
    assert progress.arrivals == KEPT_FINISHED + 10


def test_waiting_ends_with_the_next_answer() -> None:
    progress = fed(*collecting(), event("collection.waiting", BEGAN + 20, finished=0, total=10, in_flight=4, seconds=12.5))
    assert progress.waiting is not None
    assert (progress.waiting.quiet_seconds, progress.waiting.in_flight) == (12.5, 4)
    progress.fold(finished(0, at=BEGAN + 21))
    assert progress.waiting is None


def test_notices_and_failure_classes_are_bounded() -> None:
    progress = fed(*collecting(1000), *(event("notice", BEGAN, text=str(number), level="warning") for number in range(500)))
    assert len(progress.notices) == 200
    assert (progress.notices[-1].text, progress.notices[-1].level) == ("499", "warning")
    progress.feed(failed(number, name=f"class {number}") for number in range(MOST_FAILURE_CLASSES + 5))
    assert len(progress.failures) == MOST_FAILURE_CLASSES + 1
    assert progress.failures[OTHER_CLASSES].count == 5


def test_unknown_events_change_nothing() -> None:
    progress = fed(planned())
    generation = progress.generation
    progress.feed([event("something.new", BEGAN + 1, x=1), {"type": 3}, {"t": BEGAN}, None, [], "x"])
    assert progress.generation == generation


TYPES = (
    "run.planned", "stack.starting", "server.started", "server.ready", "server.ended", "stack.progress", "stack.ready",
    "endpoint.state", "collection.started", "collection.waiting", "collection.ended", "rollout.started", "rollout.stage",
    "rollout.finished", "run.control", "metrics.written", "run.summary", "run.ended", "notice", "unknown",
)  # fmt: skip
FIELDS = (
    "t", "task", "rollout", "attempt", "agent", "agents", "seconds", "reward", "failure", "reason", "input_tokens",
    "output_tokens", "offset", "since", "stage", "detail", "total", "scored", "failed", "scored_before", "failed_before",
    "cancelled", "name", "servers", "state", "error", "text", "url", "key", "code", "action", "rollouts", "http_status",
)  # fmt: skip
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 5), st.integers(), st.floats(allow_nan=False), st.text(max_size=3),
    st.lists(st.integers(0, 3), max_size=2), st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)  # fmt: skip
EVENTS = st.builds(
    lambda kind, fields: {"type": kind, **fields}, st.sampled_from(TYPES), st.dictionaries(st.sampled_from(FIELDS), VALUES)
)


@settings(max_examples=300)
@given(st.lists(EVENTS, max_size=25), st.floats(0, 4e9))
def test_whatever_events_bring_the_state_can_be_asked(events: list[dict[str, Any]], now: float) -> None:
    progress = fed(*events)
    assert progress.elapsed(now) >= 0
    assert all(min(row.seconds, row.stage_seconds, row.last_sign_seconds) >= 0 for row in progress.in_flight(now))
    assert (progress.rate(now) or 0) >= 0
    eta = progress.eta(now)
    assert eta is None or (eta.seconds >= 0 and eta.spread >= 0)
    assert len(progress.rate_series(now)) == 60
    assert progress.missing is None or progress.missing >= 0
    progress.finished()
    progress.interval()
    progress.latency(0.5)
    progress.output_tokens_quantile(0.95)
    assert sum(each.count for each in progress.reward_bins()) == progress.rewards
