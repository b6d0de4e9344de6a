"""The parts of a run's state: what a live view shows of servers, failures and single rollouts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Phase(Enum):
    """Where a run is; the value is what people read."""

    UNKNOWN = "no event yet"
    PLANNED = "planned"
    STARTING = "starting"
    WAITING = "waiting for servers"
    COLLECTING = "collecting"
    DRAINING = "draining"
    AGGREGATING = "aggregating"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def over(self) -> bool:
        return self in (Phase.DONE, Phase.STOPPED, Phase.FAILED)


@dataclass(frozen=True, slots=True)
class ServerState:
    """One server of the run."""

    name: str
    state: str = "starting"
    """`starting`, `up` or `ended`."""
    kind: str = ""
    implementation: str = ""
    url: str = ""
    pid: int | None = None
    code: int | None = None
    """How it ended; a negative code is the number of a signal."""
    seconds: float | None = None
    """From the start of all servers until it answered."""


@dataclass(frozen=True, slots=True)
class EndpointState:
    """The endpoint behind a model server: `answering`, `unreachable` or `unknown host`."""

    url: str
    key: str
    state: str
    reason: str
    at: float


@dataclass(slots=True)
class FailureTally:
    """One class of failures."""

    count: int = 0
    last_at: float = 0.0
    last_reason: str = ""


@dataclass(slots=True)
class AgentProgress:
    """One agent's share. Counts are of the rollouts whose events were read."""

    planned: int | None = None
    finished: int = 0
    scored: int = 0
    failed: int = 0
    rewards: int = 0
    reward_sum: float = 0.0

    @property
    def mean_reward(self) -> float | None:
        return self.reward_sum / self.rewards if self.rewards else None


class Finished(NamedTuple):
    """One finished rollout; None is what its event did not tell."""

    task: int
    rollout: int
    attempt: int
    agent: str
    at: float
    seconds: float | None
    reward: float | None
    failure: str | None
    reason: str
    http_status: int | None
    input_tokens: int | None
    output_tokens: int | None
    offset: int | None
    """Where its line begins: in the rollouts file, or, with a `failure`, in the failures file."""


class InFlight(NamedTuple):
    """One rollout that is on its way; durations are seconds until the moment that was asked about."""

    task: int
    rollout: int
    attempt: int
    agent: str
    since: float
    stage: str
    """Empty until somebody has told it."""
    detail: str
    seconds: float
    """Since it was sent."""
    stage_seconds: float
    last_sign_seconds: float
    """Since the latest event about it."""


class Remark(NamedTuple):
    """A notice of the run."""

    at: float
    level: str
    text: str


class Waiting(NamedTuple):
    """Nothing had come back for `quiet_seconds` at `at`."""

    at: float
    quiet_seconds: float
    in_flight: int


class Eta(NamedTuple):
    """Seconds until the last rollout is finished, and the standard deviation of that estimate."""

    seconds: float
    spread: float


class Flight:
    """What is known of a rollout on its way."""

    __slots__ = ("agent", "attempt", "detail", "last_sign", "rollout", "since", "stage", "stage_since", "task")

    def __init__(self, task: int, rollout: int, attempt: int, agent: str, since: float) -> None:
        self.task = task
        self.rollout = rollout
        self.attempt = attempt
        self.agent = agent
        self.since = self.stage_since = self.last_sign = since
        self.stage = self.detail = ""

    def at(self, now: float) -> InFlight:
        return InFlight(
            self.task,
            self.rollout,
            self.attempt,
            self.agent,
            self.since,
            self.stage,
            self.detail,
            now - self.since,
            now - self.stage_since,
            now - self.last_sign,
        )
