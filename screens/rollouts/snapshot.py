"""What the screen draws of a run at one moment: made in the thread that follows the run, never changed afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from backend.metrics.intervals import Interval
from backend.rollouts.run_entry import RUNNING, RunEntry
from backend.rollouts.run_progress import RunProgress
from backend.rollouts.run_progress_histograms import Bin
from backend.rollouts.run_progress_parts import EndpointState, Eta, Finished, InFlight, Phase, Remark, ServerState, Waiting
from backend.rollouts.run_progress_scores import TaskOutcomes

SHOWN_IN_FLIGHT = 2000


@dataclass(frozen=True, slots=True)
class FailureLine:
    """One class of failures."""

    name: str
    count: int
    last_at: float
    last_reason: str


@dataclass(frozen=True, slots=True)
class Reading:
    """The events that are there are being read for the first time: what they add up to so far is no moment of the run."""

    share: float
    """How much of the event file was read, below 1."""


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """One moment of a run; times are seconds since the epoch, durations seconds.

    The durations of a run that does not go on are those at its last sign of life: nothing of it takes time any more.
    """

    now: float
    """What ages are reckoned from."""
    generation: int
    entry: RunEntry
    replayed: float
    """Share of the event file that was read; 1.0 when all of it was."""
    phase: Phase
    planned: int | None
    finished_count: int
    scored: int
    failed: int
    cancelled: int
    missing: int | None
    elapsed: float
    rate: float | None
    rate_series: tuple[float, ...]
    eta: Eta | None
    concurrency: int | None
    in_flight_count: int
    in_flight: tuple[InFlight, ...]
    p50: float | None
    p95: float | None
    latency_bins: tuple[Bin, ...]
    token_bins: tuple[Bin, ...]
    tokens_p50: int | None
    input_tokens: int
    output_tokens: int
    rewards: int
    mean: float | None
    mean_with_failures: float | None
    interval: Interval | None
    reward_scale: str
    """`0-1` or `raw`."""
    reward_bins: tuple[Bin, ...]
    outcomes: TaskOutcomes
    failures: tuple[FailureLine, ...]
    servers: tuple[ServerState, ...]
    endpoints: tuple[EndpointState, ...]
    waiting: Waiting | None
    notices: tuple[Remark, ...]
    stop_action: str | None
    stop_by: str
    error: str | None
    finished: tuple[Finished, ...]
    """Newest first, the last 2,000."""
    arrivals: int

    @property
    def running(self) -> bool:
        """Whether the run goes on, as far as anybody can tell."""
        return goes_on(self.entry, self.phase)


def goes_on(entry: RunEntry, phase: Phase) -> bool:
    """Whether a run goes on, by its record and by its events."""
    return entry.state == RUNNING and not phase.over


def take_snapshot(progress: RunProgress, entry: RunEntry, now: float, replayed: float = 1.0) -> RunSnapshot:
    """The state of `progress` as it is at `now`."""
    going_on = goes_on(entry, progress.phase)
    moment = now if going_on else _last_sign(progress, entry, now)
    failures = sorted(progress.failures.items(), key=lambda item: (-item[1].count, item[0]))
    return RunSnapshot(
        now=now,
        generation=progress.generation,
        entry=entry,
        replayed=replayed,
        phase=progress.phase,
        planned=progress.planned,
        finished_count=progress.finished_count,
        scored=progress.scored,
        failed=progress.failed,
        cancelled=progress.cancelled,
        missing=progress.missing,
        elapsed=progress.elapsed(moment),
        rate=progress.rate(now) if going_on else None,
        rate_series=tuple(progress.rate_series(moment)),
        eta=progress.eta(now) if going_on else None,
        concurrency=progress.concurrency,
        in_flight_count=progress.in_flight_count(),
        in_flight=tuple(progress.in_flight(moment)[:SHOWN_IN_FLIGHT]),
        p50=progress.latency(0.5),
        p95=progress.latency(0.95),
        latency_bins=progress.latency_bins(),
        token_bins=progress.output_token_bins(),
        tokens_p50=progress.output_tokens_quantile(0.5),
        input_tokens=progress.input_tokens,
        output_tokens=progress.output_tokens,
        rewards=progress.rewards,
        mean=progress.mean_reward,
        mean_with_failures=progress.mean_reward_with_failures,
        interval=progress.interval(now),
        reward_scale=progress.reward_scale,
        reward_bins=progress.reward_bins(),
        outcomes=progress.task_outcomes(),
        failures=tuple(FailureLine(name, tally.count, tally.last_at, tally.last_reason) for name, tally in failures),
        servers=tuple(progress.servers.values()),
        endpoints=tuple(progress.endpoints.values()),
        waiting=progress.waiting,
        notices=tuple(progress.notices),
        stop_action=progress.stop_action,
        stop_by=progress.stop_by,
        error=progress.error,
        finished=tuple(progress.finished()),
        arrivals=progress.arrivals,
    )


def _last_sign(progress: RunProgress, entry: RunEntry, now: float) -> float:
    """When a run that does not go on was heard of last: by its last event or its record, without either by its files."""
    return max(progress.latest_said, entry.ended_at or 0.0) or entry.last_sign or now
