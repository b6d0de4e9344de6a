"""The canonical trajectory of a rollout, `ng_trajectory` in its record, schema version 1.0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from backend.config.config_types import ModelServerRef
from backend.servers.observation_records import (
    AgentInvocation,
    ModelCallRef,
    ObservationGap,
    ObservationModel,
    ToolCallObservation,
)

TRAJECTORY_KEY = "ng_trajectory"
OBSERVATIONS_KEY = "ng_agent_observations"

_Count = Annotated[int, Field(ge=0)]
_Milliseconds = Annotated[float, Field(ge=0)]


class TrajectoryToolCall(ToolCallObservation):
    """A tool call with what it gave back."""

    output: Any = None


class TrajectoryTurn(ObservationModel):
    """What the model read and said in one turn; `timestamp` is Unix seconds, `step_count` the tool calls so far."""

    invocation_id: str
    task_id: str
    rollout_id: str
    turn_no: Annotated[int, Field(ge=1)]
    timestamp: float
    question: Any = None
    answer: Any = None
    reasoning_content: Any = None
    resolved: bool | None = None
    step_count: _Count
    model_calls: list[ModelCallRef] = Field(default_factory=list)


class TrajectoryResponseMetadata(ObservationModel):
    """How a model call was answered."""

    response_id: str | None = None
    model_ref: ModelServerRef | None = None
    model: str | None = None
    dialect: str | None = None
    status_code: int | None = None
    response_status: str | None = None
    finish_reason: str | None = None
    error_category: str | None = None
    latency_ttft_ms: _Milliseconds | None = None


class TrajectoryTokenStats(ObservationModel):
    """Tokens of a model call; None where the endpoint did not say."""

    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    reasoning_tokens: _Count | None = None
    total_tokens: _Count | None = None
    cached_tokens: _Count | None = None


class TrajectoryModelCall(ObservationModel):
    """One model call, whichever agent made it."""

    model_call_id: str | None = None
    started_at: float | None = None
    completed_at: float | None = None
    duration_ms: _Milliseconds | None = None
    request: Any = None
    response: Any = None
    response_metadata: TrajectoryResponseMetadata = Field(default_factory=TrajectoryResponseMetadata)
    token_stats: TrajectoryTokenStats = Field(default_factory=TrajectoryTokenStats)


class TrajectoryRecord(ObservationModel):
    """One rollout as turns, model calls and tool calls."""

    schema_version: Literal["1.0"] = "1.0"
    task_id: str
    rollout_id: str
    invocations: list[AgentInvocation] = Field(default_factory=list)
    turns: list[TrajectoryTurn] = Field(default_factory=list)
    model_calls: list[TrajectoryModelCall] = Field(default_factory=list)
    tool_calls: list[TrajectoryToolCall] = Field(default_factory=list)
    gaps: list[ObservationGap] = Field(default_factory=list)

    @model_validator(mode="after")
    def _is_consistent(self) -> TrajectoryRecord:
        _refuse_repeated("invocation_id", (invocation.invocation_id for invocation in self.invocations))
        _refuse_repeated("model_call_id", (call.model_call_id for call in self.model_calls if call.model_call_id is not None))
        _refuse_repeated("turn", ((turn.invocation_id, turn.turn_no) for turn in self.turns))
        for turn in self.turns:
            if (turn.task_id, turn.rollout_id) != (self.task_id, self.rollout_id):
                raise ValueError(f"turn {turn.turn_no} of {turn.invocation_id} is of another task or rollout")
        return self


def _refuse_repeated(what: str, values: Iterable[Any]) -> None:
    repeated = [value for value, count in Counter(values).items() if count > 1]
    if repeated:
        raise ValueError(f"{what} {repeated[0]!r} is there more than once")
