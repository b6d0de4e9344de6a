"""What a run says while it collects rollouts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from backend.events import Event
from backend.metrics.headline import ScoreRow


@dataclass(frozen=True, slots=True)
class RunPlanned(Event):
    """What is going to be done, before anything of an earlier run is touched."""

    type: ClassVar[str] = "run.planned"
    output: str
    inputs: str
    rollouts: int
    concurrency: int
    agents: dict[str, int]
    """Rollouts per agent."""
    resume_command: str = ""
    """The command that goes on with this run when it is interrupted; secrets are masked."""


@dataclass(frozen=True, slots=True)
class CollectionStarted(Event):
    """Servers answer, files are open: dispatch begins."""

    type: ClassVar[str] = "collection.started"
    total: int
    """Rollouts of the whole plan, those of earlier sessions included."""
    scored_before: int = 0
    """Rollouts that were finished before a resumed run began."""
    failed_before: int = 0
    """Rollouts that a resumed run does not attempt any more."""


@dataclass(frozen=True, slots=True)
class RolloutStarted(Event):
    """A row was sent to its agent."""

    type: ClassVar[str] = "rollout.started"
    task: int
    rollout: int
    agent: str
    attempt: int = 0
    """How many earlier attempts failed."""


@dataclass(frozen=True, slots=True)
class RolloutStage(Event):
    """Where a rollout in flight is, said when that changes: `agent`, `seed session`, `model call <n>`, `tool <name>` or `verify`.

    `detail` is the server instance that works on it, `since` seconds since the epoch.
    """

    type: ClassVar[str] = "rollout.stage"
    task: int
    rollout: int
    stage: str
    detail: str
    since: float


@dataclass(frozen=True, slots=True)
class RolloutFinished(Event):
    """A row's answer is in a file: `offset` is where in the rollouts file, or, with a `failure` class, in the failures file.

    `reward` is None when there is none; tokens are None when they are unknown; `offset` is None for answers written nowhere.
    """

    type: ClassVar[str] = "rollout.finished"
    task: int
    rollout: int
    agent: str
    seconds: float
    reward: float | None
    failure: str | None
    reason: str | None
    http_status: int | None
    input_tokens: int | None
    output_tokens: int | None
    offset: int | None
    attempt: int = 0
    """How many earlier attempts failed."""


@dataclass(frozen=True, slots=True)
class CollectionProgress(Event):
    """Said whenever another whole percent of the run is finished."""

    type: ClassVar[str] = "collection.progress"
    finished: int
    total: int
    seconds: float
    left: dict[str, int]
    """Rollouts left per agent."""
    averages: dict[str, dict[str, float]] = field(default_factory=dict)
    """Per agent, the averages of the numeric fields of its answers so far."""
    counts: dict[str, int] = field(default_factory=dict)
    """Finished rollouts per agent."""
    failed: int = 0


@dataclass(frozen=True, slots=True)
class CollectionWaiting(Event):
    """Said when nothing has finished for a while: how many rollouts are in flight, and for how long nothing has come back."""

    type: ClassVar[str] = "collection.waiting"
    finished: int
    total: int
    in_flight: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CollectionEnded(Event):
    """Nothing is in flight any more. `cancelled` rollouts were given up when the run was told to stop."""

    type: ClassVar[str] = "collection.ended"
    scored: int
    failed: int
    missing: int
    cancelled: int
    failure_classes: dict[str, int]
    seconds: float


@dataclass(frozen=True, slots=True)
class RunControlled(Event):
    """Somebody told the run, from outside, to `drain` or to `cancel`; `by` says who, as `user@host pid`."""

    type: ClassVar[str] = "run.control"
    action: str
    by: str


@dataclass(frozen=True, slots=True)
class MetricsWritten(Event):
    """The aggregate metrics of all agents are in a file."""

    type: ClassVar[str] = "metrics.written"
    path: str
    key_metrics: dict[str, dict[str, Any]]
    """Key metrics per agent."""


@dataclass(frozen=True, slots=True)
class RunSummary(Event):
    """The result of an evaluation."""

    type: ClassVar[str] = "run.summary"
    state: str
    """`done` or `stopped`."""
    scores: tuple[ScoreRow, ...]
    rollouts: str
    materialized_inputs: str
    failures: str
    aggregate_metrics: str | None
    run_folder: str
    total: int
    scored: int
    failed: int
    missing: int
    failure_classes: dict[str, int]
    seconds: float

    def as_fields(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in RunSummary.__slots__}
        return plain | {"scores": [asdict(row) for row in self.scores]}


@dataclass(frozen=True, slots=True)
class RunEnded(Event):
    """The last event of every run that ends by itself, well or badly: `done`, `stopped` or `failed` with its error."""

    type: ClassVar[str] = "run.ended"
    state: str
    error: str | None = None
