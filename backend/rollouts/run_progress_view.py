"""The state of a run that its events add up to, and what a live view asks of it."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Mapping
from itertools import islice
from typing import Any

from backend.metrics.headline import FRACTION, RAW
from backend.metrics.intervals import Interval
from backend.rollouts.run_progress_clock import RateMeter, Timeline
from backend.rollouts.run_progress_histograms import Bin, LogHistogram, RewardHistogram
from backend.rollouts.run_progress_parts import (
    AgentProgress,
    EndpointState,
    Eta,
    FailureTally,
    Finished,
    Flight,
    InFlight,
    Phase,
    Remark,
    ServerState,
    Waiting,
)
from backend.rollouts.run_progress_scores import TaskOutcomes, TaskScores
from backend.rollouts.run_progress_summary import closing_mean
from backend.rollouts.run_progress_tasks import OpenTasks

KEPT_FINISHED = 2000
KEPT_NOTICES = 200
ETA_MIN_FINISHED = 20
ETA_MIN_SECONDS = 30.0
_RATE_SECONDS = 60
_ETA_SECONDS = 300
_INTERVAL_SECONDS = 1.0
"""How often an interval that is resampled is computed anew: a tenth of a core at most."""


class RunState:
    """What is known of a run so far; `generation` grows whenever it changes. Attributes are for reading only.

    `now` is seconds since the epoch, as are all times here.
    """

    _interval: tuple[int, float, Interval | None]
    """How many scores there were, when, and the interval of their mean."""

    def __init__(self) -> None:
        self.generation = 0
        self.phase = Phase.UNKNOWN
        self.output: str | None = None
        self.inputs: str | None = None
        self.concurrency: int | None = None
        self.head_url: str | None = None
        self.planned: int | None = None
        """Rollouts of the whole plan, those of earlier sessions included."""
        self.scored = 0
        self.failed = 0
        self.scored_before = 0
        self.failed_before = 0
        """What a resumed run keeps of earlier sessions: scores, and failures that it does not try again."""
        self.cancelled = 0
        """Rollouts that were given up when the run was told to stop."""
        self.input_tokens = 0
        self.output_tokens = 0
        self.agents: dict[str, AgentProgress] = {}
        self.servers: dict[str, ServerState] = {}
        self.endpoints: dict[tuple[str, str], EndpointState] = {}
        self.failures: dict[str, FailureTally] = {}
        """By failure class, of this session."""
        self.notices: deque[Remark] = deque(maxlen=KEPT_NOTICES)
        self.waiting: Waiting | None = None
        self.stop_action: str | None = None
        """`drain` or `cancel`, when somebody has steered the run from outside."""
        self.stop_by = ""
        self.error: str | None = None
        self.key_metrics: Mapping[str, Any] | None = None
        self.summary: Mapping[str, Any] | None = None
        """The fields of `run.summary` when it has come."""
        self.arrivals = 0
        """Finished rollouts that were seen, also those that `finished` no longer holds."""
        self.started_at: float | None = None
        """Beginning of the session."""
        self.collecting_since: float | None = None
        self.ended_at: float | None = None
        self._clock = Timeline()
        self._rate = RateMeter()
        self._session_finished = 0
        self._finished: OrderedDict[tuple[int, int], Finished] = OrderedDict()
        self._in_flight: dict[tuple[int, int], Flight] = {}
        self._forget_scores()

    @property
    def latest(self) -> float:
        """Time of the latest event; 0.0 before the first."""
        return self._clock.latest

    @property
    def latest_said(self) -> float:
        """The same as the run's own clock had it: the `now` of a run of which nothing more was heard."""
        return self._clock.latest_said

    @property
    def finished_count(self) -> int:
        """Scored or failed, those kept from earlier sessions included."""
        return self.scored + self.failed

    @property
    def missing(self) -> int | None:
        """Planned, but neither scored nor failed; None before the plan is known."""
        return None if self.planned is None else max(0, self.planned - self.finished_count)

    @property
    def rewards(self) -> int:
        """Rewards that the mean is over."""
        return self._scores.scores

    @property
    def mean_reward(self) -> float | None:
        """The mean of the closing summary, before that of the rewards so far."""
        closing = closing_mean(self.summary)
        return self._scores.mean if closing is None else closing.value

    @property
    def reward_scale(self) -> str:
        """`0-1` as long as all rewards are between 0 and 1, else `raw`."""
        return FRACTION if self._scores.within_unit else RAW

    @property
    def mean_reward_with_failures(self) -> float | None:
        """The mean with a 0 for every failed rollout; None without any rollout."""
        mean, count = self._scores.mean, self._scores.scores + self.failed
        return (mean or 0.0) * self._scores.scores / count if count else None

    def interval(self, now: float | None = None) -> Interval | None:
        """95 % interval of the mean reward: that of the closing summary, before one of the rewards so far.

        With `now`, an interval that takes its time is computed once a second only, and is that much older than the mean.
        """
        closing = closing_mean(self.summary)
        if closing is not None:
            return closing.interval
        scores, at, known = self._interval
        young = now is not None and self._scores.resampled and 0 <= now - at < _INTERVAL_SECONDS
        if scores != self._scores.scores and not young:
            known = self._scores.interval()
            self._interval = (self._scores.scores, math.inf if now is None else now, known)
        return known

    def task_outcomes(self) -> TaskOutcomes:
        """Tasks that passed always, never, and neither, by their scores; only those of which all repeats have come back.

        How that is known: `OpenTasks`. A failed repeat has come back, and has no score.
        """
        return self._scores.outcomes()

    def reward_bins(self) -> tuple[Bin, ...]:
        """The distribution of rewards: exactly 0, 24 bins between, exactly 1; other bins when rewards lie outside."""
        return self._rewards.bins()

    def latency(self, fraction: float) -> float | None:
        """Quantile of the seconds per rollout, failures included."""
        return self._seconds.quantile(fraction)

    def latency_bins(self, most: int = 12) -> tuple[Bin, ...]:
        return self._seconds.bins(most)

    def output_tokens_quantile(self, fraction: float) -> int | None:
        """Quantile of the output tokens per rollout."""
        value = self._tokens.quantile(fraction)
        return None if value is None else round(value)

    def output_token_bins(self, most: int = 12) -> tuple[Bin, ...]:
        return self._tokens.bins(most)

    def elapsed(self, now: float) -> float:
        """Seconds of this session, until it ended or until `now`."""
        if self.started_at is None:
            return 0.0
        return max(0.0, (self._clock.now(now) if self.ended_at is None else self.ended_at) - self.started_at)

    def rate(self, now: float) -> float | None:
        """Rollouts that finish per second, over the last minute; None when no rollouts are being collected."""
        now = self._clock.now(now)
        if self.collecting_since is None or self.phase not in (Phase.COLLECTING, Phase.DRAINING):
            return None
        span = min(now - self.collecting_since, _RATE_SECONDS - 1 + now % 1)
        return self._rate.count(now, _RATE_SECONDS) / max(1.0, span)

    def rate_series(self, now: float) -> list[float]:
        """Rollouts per second in the last 5 minutes, in 60 steps of 5 s, oldest first."""
        return self._rate.series(self._clock.now(now))

    def eta(self, now: float) -> Eta | None:
        """When the rest will be finished, from the rate of the last 5 minutes.

        The spread takes finishing as a Poisson process: with n finished in the window and m left, its relative standard deviation is
        the root of 1/n + 1/m. None until 20 rollouts of this session are finished or 30 s have passed, and when nothing finishes.
        """
        now = self._clock.now(now)
        draining = self.phase is Phase.DRAINING
        left = len(self._in_flight) if draining else self.missing
        if self.collecting_since is None or not left or not (draining or self.phase is Phase.COLLECTING):
            return None
        elapsed = now - self.collecting_since
        if self._session_finished < ETA_MIN_FINISHED and elapsed < ETA_MIN_SECONDS:
            return None
        span = max(1.0, min(elapsed, _ETA_SECONDS - 1 + now % 1))
        count = self._rate.count(now, _ETA_SECONDS)
        if not count:
            return None
        seconds = left * span / count
        return Eta(seconds, seconds * math.sqrt(1 / count + 1 / left))

    def in_flight_count(self) -> int:
        return len(self._in_flight)

    def in_flight(self, now: float) -> list[InFlight]:
        """The rollouts on their way, longest first."""
        now = self._clock.now(now)
        return sorted((flight.at(now) for flight in self._in_flight.values()), key=lambda row: row.since)

    def finished(self, most: int = KEPT_FINISHED) -> list[Finished]:
        """The latest finished rollouts, newest first, one line per (task, rollout): a later attempt takes the line of a failed one."""
        return list(islice(reversed(self._finished.values()), most))

    def finished_line(self, task: int, rollout: int) -> Finished | None:
        """The line of one rollout, when it is among those kept."""
        return self._finished.get((task, rollout))

    def _forget_scores(self) -> None:
        self._scores = TaskScores()
        self._tasks = OpenTasks(self._scores)
        self._interval = (0, -math.inf, None)
        self._rewards = RewardHistogram()
        self._seconds = LogHistogram()
        self._tokens = LogHistogram()
        self._finished.clear()
        self.input_tokens = self.output_tokens = 0
        for agent in self.agents.values():
            agent.finished = agent.scored = agent.failed = agent.rewards = 0
            agent.reward_sum = 0.0
