"""Builds `ng_trajectory`, the canonical trajectory in a rollout's record, from all that is known of the rollout.

Three sources, each optional: a trajectory that the agent made, what the agent reports of its work (`ng_agent_observations`), and the
calls captured at the model server (`ng_model_call_capture`). What cannot be used becomes a gap, never an error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from backend.io.row_keys import ATTEMPT, ROLLOUT, ROLLOUT_ID, TASK
from backend.metrics.perf import rollout_perf
from backend.servers.model_call_records import CAPTURE_KEY, PAYLOAD_FIELDS, merge_model_call_capture_into_record
from backend.servers.observation_join import ReferenceResolver
from backend.servers.observation_records import AgentInvocation, AgentObservationBundle, ObservationGap, ToolCallObservation
from backend.servers.rollout_correlation import maybe_rollout_id_from_run_body
from backend.servers.trajectory_records import (
    OBSERVATIONS_KEY,
    TRAJECTORY_KEY,
    TrajectoryModelCall,
    TrajectoryRecord,
    TrajectoryToolCall,
)

logger = logging.getLogger(__name__)

PERF_KEY = "ng_perf"
_TASK_KEYS = ("task_id", "problem_id", "instance_id", TASK)
_UNKNOWN = "unknown"
_HIDDEN = "multimodal_history_redacted"
_IDENTITY = (TASK, ROLLOUT, ATTEMPT, ROLLOUT_ID)
_METADATA = (
    "response_id",
    "model_ref",
    "model",
    "dialect",
    "status_code",
    "response_status",
    "finish_reason",
    "error_category",
    "latency_ttft_ms",
)
_TOKENS = {
    "prompt_tokens": "tokens_in",
    "completion_tokens": "tokens_out",
    "reasoning_tokens": "tokens_reasoning",
    "total_tokens": "tokens_total",
    "cached_tokens": "cached_tokens",
}


def observed(row: Mapping[str, Any], answer: Mapping[str, Any], capture_dir: str | Path, latency_ms: float) -> dict[str, Any]:
    """An agent's answer with what was seen of its rollout: captured calls, trajectory, effort.

    `latency_ms` is the wall clock of `/run`. Requests and answers are left out where the agent says that it had to hide some.
    """
    record = {**answer, **{key: row[key] for key in _IDENTITY if key in row}}
    reported = record.get(OBSERVATIONS_KEY)
    gaps = reported.get("gaps") if isinstance(reported, Mapping) else None
    hidden = any(isinstance(gap, Mapping) and gap.get("code") == _HIDDEN for gap in gaps or ())
    merge_model_call_capture_into_record(record, [capture_dir], include_payloads=not hidden)
    attach_trajectory_record(row, record)
    attach_perf(record, latency_ms)
    return record


def attach_trajectory_record(row: Mapping[str, Any], record: MutableMapping[str, Any]) -> None:
    """Give `record` its `ng_trajectory`, where it has any evidence; the captured requests and answers move into it.

    `row` is the materialized row: its `task_id`, `problem_id`, `instance_id` or task index names the task.
    """
    if not any(record.get(key) is not None for key in (TRAJECTORY_KEY, OBSERVATIONS_KEY, CAPTURE_KEY)):
        return
    task_id = next((str(row[key]) for key in _TASK_KEYS if row.get(key) is not None), _UNKNOWN)
    rollout_id = maybe_rollout_id_from_run_body(row) or _UNKNOWN
    try:
        trajectory = _built(record, task_id, rollout_id)
    except (ValidationError, TypeError, ValueError, AttributeError) as error:
        logger.warning("the trajectory of rollout %s cannot be built: %s", rollout_id, error)
        gap = ObservationGap(code="trajectory_projection_failed", detail=type(error).__name__)
        trajectory = TrajectoryRecord(task_id=task_id, rollout_id=rollout_id, gaps=[gap])
    else:
        _drop_payloads(record)
    record[TRAJECTORY_KEY] = trajectory.model_dump(mode="json")


def attach_perf(record: MutableMapping[str, Any], latency_ms: float | None) -> None:
    """Give `record` its `ng_perf`, where its trajectory has an invocation; `latency_ms` is the wall clock of `/run`."""
    trajectory = record.get(TRAJECTORY_KEY)
    perf = rollout_perf(trajectory if isinstance(trajectory, Mapping) else None, latency_ms)
    if perf is not None:
        record[PERF_KEY] = perf


def _built(record: Mapping[str, Any], task_id: str, rollout_id: str) -> TrajectoryRecord:
    gaps: list[ObservationGap] = []
    made = _producers(record.get(TRAJECTORY_KEY), task_id, rollout_id, gaps)
    reported = _observations(record.get(OBSERVATIONS_KEY), gaps)
    calls = _merged_calls([*made.model_calls, *_captured_calls(record.get(CAPTURE_KEY), gaps)])
    resolver = ReferenceResolver(_CallView(call) for call in calls)
    invocations = _distinct(
        [*made.invocations, *(item for item in reported.records if isinstance(item, AgentInvocation))],
        lambda invocation: invocation.invocation_id,
    )
    tools = [TrajectoryToolCall(**item.model_dump()) for item in reported.records if isinstance(item, ToolCallObservation)]
    turns = [
        turn.model_copy(update={"model_calls": resolver.resolve_all(turn.model_calls, turn.invocation_id)}) for turn in made.turns
    ]
    invocations = [
        invocation.model_copy(
            update={"model_calls": resolver.resolve_all(invocation.model_calls, invocation.invocation_id, owns=True)}
        )
        for invocation in invocations
    ]
    gaps = [*made.gaps, *reported.gaps, *gaps, *resolver.gaps, *_absences(calls, turns, invocations)]
    return TrajectoryRecord(
        task_id=task_id,
        rollout_id=rollout_id,
        invocations=invocations,
        turns=sorted(turns, key=lambda turn: (turn.timestamp, turn.invocation_id, turn.turn_no)),
        model_calls=calls,
        tool_calls=_distinct([*made.tool_calls, *tools], lambda tool: (tool.invocation_id, tool.tool_call_id)),
        gaps=[gap for index, gap in enumerate(gaps) if gap not in gaps[:index]],
    )


def _producers(value: Any, task_id: str, rollout_id: str, gaps: list[ObservationGap]) -> TrajectoryRecord:
    """The agent's own trajectory under this rollout's identity; an empty one where there is none that can be used."""
    empty = TrajectoryRecord(task_id=task_id, rollout_id=rollout_id)
    if value is None:
        return empty
    try:
        made = TrajectoryRecord.model_validate(value)
    except ValidationError:
        gaps.append(ObservationGap(code="producer_trajectory_invalid"))
        return empty
    if (made.task_id, made.rollout_id) == (task_id, rollout_id):
        return made
    gaps.append(ObservationGap(code="producer_trajectory_identity_mismatch", detail=f"{made.task_id}/{made.rollout_id}"))
    identity = {"task_id": task_id, "rollout_id": rollout_id}
    return made.model_copy(update={**identity, "turns": [turn.model_copy(update=identity) for turn in made.turns]})


def _observations(value: Any, gaps: list[ObservationGap]) -> AgentObservationBundle:
    if value is not None:
        try:
            return AgentObservationBundle.model_validate(value)
        except ValidationError:
            gaps.append(ObservationGap(code="agent_observations_invalid"))
    return AgentObservationBundle(source="")


def _captured_calls(capture: Any, gaps: list[ObservationGap]) -> list[TrajectoryModelCall]:
    if not isinstance(capture, Mapping):
        return []
    for gap in capture.get("gaps") or []:
        try:
            gaps.append(ObservationGap.model_validate(gap))
        except ValidationError:
            gaps.append(ObservationGap(code="model_call_capture_gap_invalid"))
    return [_model_call(call) for call in capture.get("calls") or []]


def _model_call(call: Mapping[str, Any]) -> TrajectoryModelCall:
    response = call.get("response")
    metadata = {key: call.get(key) for key in _METADATA}
    if metadata["response_status"] is None and isinstance(response, Mapping):
        metadata["response_status"] = response.get("status")
    return TrajectoryModelCall.model_validate(
        {
            "model_call_id": call.get("model_call_id"),
            "started_at": call.get("started_at"),
            "completed_at": call.get("completed_at"),
            "duration_ms": call.get("latency_total_ms"),
            "request": call.get("request") if call.get("request") is not None else call.get("request_raw"),
            "response": response if response is not None else call.get("response_raw"),
            "response_metadata": metadata,
            "token_stats": {name: call.get(source) for name, source in _TOKENS.items()},
        }
    )


def _merged_calls(calls: Iterable[TrajectoryModelCall]) -> list[TrajectoryModelCall]:
    """One call per id: a later one (the captured one) replaces what is said of it, as far as it says something."""
    merged: list[TrajectoryModelCall] = []
    places: dict[str, int] = {}
    for call in calls:
        place = places.get(call.model_call_id) if call.model_call_id is not None else None
        if place is not None:
            merged[place] = TrajectoryModelCall.model_validate(
                _overlaid(merged[place].model_dump(), call.model_dump(exclude_none=True))
            )
            continue
        if call.model_call_id is not None:
            places[call.model_call_id] = len(merged)
        merged.append(call)
    return merged


def _overlaid(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    parts = ("response_metadata", "token_stats")
    return below | {key: {**below[key], **value} if key in parts else value for key, value in above.items()}


def _absences(calls: Sequence[Any], turns: Sequence[Any], invocations: Sequence[AgentInvocation]) -> Iterable[ObservationGap]:
    if not calls:
        yield ObservationGap(code="model_calls_unavailable")
    if not turns:
        yield ObservationGap(code="turns_unavailable")
    if not any(invocation.conversation for invocation in invocations):
        yield ObservationGap(code="conversation_unavailable")


def _distinct(items: Iterable[Any], key: Any) -> list[Any]:
    """The items, of those with the same key the first one only."""
    found: dict[Any, Any] = {}
    for item in items:
        found.setdefault(key(item), item)
    return list(found.values())


def _drop_payloads(record: Mapping[str, Any]) -> None:
    capture = record.get(CAPTURE_KEY)
    for call in capture.get("calls") or [] if isinstance(capture, Mapping) else []:
        for name in PAYLOAD_FIELDS:
            call.pop(name, None)


class _CallView:
    """A call of the trajectory as references see it."""

    def __init__(self, call: TrajectoryModelCall) -> None:
        self.model_call_id = call.model_call_id
        self.model_ref = call.response_metadata.model_ref
        self.response_id = call.response_metadata.response_id
