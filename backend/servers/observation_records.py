"""What an agent reports about its own work, beside the response that is judged: invocations, tool calls, compactions, sandboxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from backend.config.config_types import ModelServerRef
from backend.responses.schema import NeMoGymResponse, NeMoGymResponseInputItem

Outcome = Literal["completed", "failed", "incomplete", "unknown"]


class ObservationModel(BaseModel):
    """A record of observation; unknown fields are errors, so that a misspelt one is noticed where it is made."""

    # Only runs that are observed use these: no server pays for their schemas at its start.
    model_config = ConfigDict(extra="forbid", protected_namespaces=(), defer_build=True)


class ModelCallRef(ObservationModel):
    """Names a model call by its id, or by the model server and the id of its response."""

    model_call_id: str | None = None
    model_ref: ModelServerRef | None = None
    response_id: str | None = None

    @model_validator(mode="after")
    def _names_a_call(self) -> ModelCallRef:
        if self.model_call_id is None and (self.model_ref is None or self.response_id is None):
            raise ValueError("a reference to a model call needs model_call_id, or model_ref and response_id")
        return self


class ObservationGap(ObservationModel):
    """Something that could not be observed."""

    code: str
    invocation_id: str | None = None
    detail: str | None = None


class AgentInvocation(ObservationModel):
    """One agent at work: the root, or one that a tool call of another started."""

    kind: Literal["agent_invocation"] = "agent_invocation"
    invocation_id: str
    parent_invocation_id: str | None = None
    spawned_by_tool_call_id: str | None = None
    status: Outcome = "unknown"
    duration_ms: Annotated[float, Field(ge=0)] | None = None
    error_type: str | None = None
    model_calls: list[ModelCallRef] = Field(default_factory=list)
    conversation: list[NeMoGymResponseInputItem] = Field(default_factory=list)


class ToolCallObservation(ObservationModel):
    """One execution of a tool. Times are Unix seconds."""

    kind: Literal["tool_call"] = "tool_call"
    invocation_id: str
    tool_call_id: str
    sandbox_id: str | None = None
    tool_name: str | None = None
    started_at: float | None = None
    completed_at: float | None = None
    duration_ms: Annotated[float, Field(ge=0)] | None = None
    timing_source: str | None = None
    """Who measured: `executor`, `harness`, or `artifact` (read from the agent's own log)."""
    status: str = "unknown"
    """As of invocations, or an agent's own word such as `timeout`."""
    error_type: str | None = None


class ContextCompactionObservation(ObservationModel):
    """An agent replaced the beginning of its context by a summary."""

    kind: Literal["context_compaction"] = "context_compaction"
    invocation_id: str
    observed_at: float | None = None
    trigger: str | None = None
    tokens_before: Annotated[int, Field(ge=0)] | None = None
    tokens_after: Annotated[int, Field(ge=0)] | None = None
    outcome: Literal["completed", "failed", "aborted", "unknown"] = "unknown"
    summary: str | None = None
    first_kept_item_id: str | None = None
    before_model_call: ModelCallRef | None = None
    after_model_call: ModelCallRef | None = None
    model_calls: list[ModelCallRef] = Field(default_factory=list)
    """The calls that made the summary."""


class SandboxObservation(ObservationModel):
    """A sandbox in which the agent worked, or its work was verified."""

    kind: Literal["sandbox"] = "sandbox"
    role: Literal["agent", "verifier"]
    provider: str | None = None
    sandbox_id: str | None = None
    outcome: str = "unknown"
    exit_code: int | None = None
    error_type: str | None = None
    wall_time_s: Annotated[float, Field(ge=0)] | None = None
    cpu_time_s: Annotated[float, Field(ge=0)] | None = None
    peak_memory_mib: Annotated[float, Field(ge=0)] | None = None


ObservationRecord = Annotated[
    AgentInvocation | ToolCallObservation | ContextCompactionObservation | SandboxObservation, Field(discriminator="kind")
]


class AgentObservationBundle(ObservationModel):
    """All that an agent reports of one rollout; a rollout's record carries it as `ng_agent_observations`."""

    source: str
    """The name of the agent's kind, such as `claude_code`."""
    records: list[ObservationRecord] = Field(default_factory=list)
    gaps: list[ObservationGap] = Field(default_factory=list)


@dataclass(frozen=True)
class AgentEpisode:
    """An agent's response together with what it observed of itself."""

    response: NeMoGymResponse
    observations: AgentObservationBundle | None = None
