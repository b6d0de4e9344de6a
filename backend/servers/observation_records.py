"""What an agent reports about its own work, beside the response that is judged: invocations, tool calls, compactions, sandboxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from backend.config.config_types import ModelServerRef
from backend.responses.schema import NeMoGymResponse, NeMoGymResponseInputItem

Outcome = Literal["completed", "failed", "incomplete", "unknown"]


class ObservationModel(BaseModel):
    """A record of observation; unknown fields and values are errors, also in assignments, so that a slip is noticed where it is made."""

    # Only runs that are observed use these: no server pays for their schemas at its start.
    model_config = ConfigDict(extra="forbid", validate_assignment=True, protected_namespaces=(), defer_build=True)


class ModelCallRef(ObservationModel):
    """Names a model call by its id, or by the model server and the id of its response."""

    model_call_id: str | None = None
    model_ref: ModelServerRef | None = None
    response_id: str | None = None

    @model_validator(mode="after")
    def _names_a_call(self) -> ModelCallRef:
        if not self.model_call_id and (self.model_ref is None or not self.response_id):
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
    timing_source: Literal["executor", "artifact", "harness"] | None = None
    """Who measured; `artifact`: it was read from the agent's own log."""
    status: Literal["completed", "failed", "timeout", "cancelled", "incomplete", "unknown"] = "unknown"
    error_type: str | None = None

    @model_validator(mode="after")
    def _ends_after_its_start(self) -> ToolCallObservation:
        if self.started_at is not None and self.completed_at is not None and self.completed_at < self.started_at:
            raise ValueError(f"completed_at {self.completed_at} is before started_at {self.started_at}")
        return self


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
    """A sandbox in which the agent worked, its environment ran, or its work was verified."""

    kind: Literal["sandbox"] = "sandbox"
    role: Literal["agent", "verifier", "environment"]
    provider: str | None = None
    sandbox_id: str | None = None
    outcome: Literal["completed", "failed", "timeout", "oom", "sandbox_error", "cancelled", "unknown"] = "unknown"
    exit_code: int | None = None
    wall_time_s: Annotated[float, Field(ge=0)] | None = None
    cpu_time_s: Annotated[float, Field(ge=0)] | None = None
    peak_memory_mib: Annotated[float, Field(ge=0)] | None = None
    resource_usage_source: str | None = None
    """Where the numbers come from, such as `cgroup`."""
    error_type: str | None = None


AgentObservationRecord = Annotated[
    AgentInvocation | ToolCallObservation | ContextCompactionObservation | SandboxObservation, Field(discriminator="kind")
]


class AgentObservationBundle(ObservationModel):
    """All that an agent reports of one rollout; a rollout's record carries it as `ng_agent_observations`."""

    source: str
    """The name of the agent's kind, such as `claude_code`."""
    records: list[AgentObservationRecord] = Field(default_factory=list)
    gaps: list[ObservationGap] = Field(default_factory=list)

    @model_validator(mode="after")
    def _invocations_form_trees(self) -> AgentObservationBundle:
        parents: dict[str, str | None] = {}
        for record in self.records:
            if isinstance(record, AgentInvocation):
                if record.invocation_id in parents:
                    raise ValueError(f"invocation_id {record.invocation_id!r} is there more than once")
                parents[record.invocation_id] = record.parent_invocation_id
        settled: set[str] = set()
        for start in parents:
            walked: set[str] = set()
            current: str | None = start
            while current in parents and current not in settled:
                if current in walked:
                    raise ValueError(f"invocation {current!r} is among its own parents")
                walked.add(current)
                current = parents[current]
            settled |= walked
        return self


@dataclass(frozen=True)
class AgentEpisode:
    """An agent's response together with what it observed of itself."""

    response: NeMoGymResponse
    observations: AgentObservationBundle | None = None
