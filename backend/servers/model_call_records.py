"""What a collector reads from capture files: typed records, their sums, and the block that a rollout's record gets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from backend.config.config_types import ModelServerRef
from backend.errors import GymError
from backend.io.json_codec import loads
from backend.servers.model_call_capture import CaptureStore
from backend.servers.observation_join import join_model_call_observations, with_compaction_calls
from backend.servers.observation_records import AgentObservationBundle
from backend.servers.rollout_correlation import maybe_rollout_id_from_run_body
from backend.servers.trajectory_records import OBSERVATIONS_KEY

CAPTURE_KEY = "ng_model_call_capture"
_NO_RECORDS = {"code": "model_call_capture_no_records"}
PAYLOAD_FIELDS = {"request", "response", "request_raw", "response_raw"}
_SUMMED = ("tokens_in", "tokens_out", "tokens_reasoning", "tokens_total", "cached_tokens", "latency_total_ms")


class ModelCallRecord(BaseModel):
    """One model call. Counts are None where the endpoint did not say; times are Unix seconds, latencies milliseconds."""

    model_config = ConfigDict(protected_namespaces=())

    model_call_id: str | None = None
    response_id: str | None = None
    call_index: int | None = None
    """0-based position among the rollout's calls, in order of their start."""
    model_ref: ModelServerRef | None = None
    model: str | None = None
    dialect: str | None = None
    status_code: int | None = None
    response_status: str | None = None
    finish_reason: str | None = None
    started_at: float | None = None
    completed_at: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_reasoning: int | None = None
    tokens_total: int | None = None
    request: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    request_raw: str | None = None
    response_raw: str | None = None
    tool_calls: list[dict[str, Any]] = []
    """`call_id`, `name` and `arguments`: an object, or the model's text where that is no JSON."""
    reasoning_content: str | None = None
    cache_hit: bool | None = None
    cached_tokens: int | None = None
    cache_creation_tokens: int | None = None
    error_category: str | None = None
    latency_total_ms: float | None = None
    latency_ttft_ms: float | None = None


def record_from_line(line: dict[str, Any], call_index: int) -> ModelCallRecord:
    """A line of a capture file as a record; raises ValueError (pydantic's) for a line of another form."""
    response = line.get("response") or {}
    request = line.get("request") or {}
    read = {"responses": _from_responses, "chat": _from_chat, "messages": _from_messages}.get(line.get("dialect") or "")
    known = read(response) if read else {}
    cached = known.get("cached_tokens")
    return ModelCallRecord.model_validate(
        {key: line[key] for key in ModelCallRecord.model_fields if key in line}
        | known
        | {
            "call_index": call_index,
            "response_id": response.get("id"),
            "model": response.get("model") or request.get("model"),
            "cache_hit": None if cached is None else cached > 0,
            "latency_total_ms": line.get("latency_ms"),
        }
    )


def read_model_call_records(store: CaptureStore, rollout_id: str) -> list[ModelCallRecord]:
    """The calls of a rollout that can be read, in order of their start."""
    return read_model_calls(store, rollout_id)[0]


def read_model_calls(store: CaptureStore, rollout_id: str) -> tuple[list[ModelCallRecord], list[dict[str, str]]]:
    """The calls of a rollout in order of their start, and the gaps in what is known about them (`code`, `detail`)."""
    gaps: list[dict[str, str]] = []
    try:
        lines, damaged = store.read_available(rollout_id)
    except (OSError, GymError) as error:
        return [], [{"code": "model_call_capture_unreadable", "detail": str(error)}]
    records: list[ModelCallRecord] = []
    for line in sorted(lines, key=_start_of):
        try:
            records.append(record_from_line(line, len(records)))
        except (ValueError, TypeError, AttributeError):
            damaged += 1
    if damaged:
        gaps.append({"code": "model_call_capture_records_unreadable", "detail": f"{damaged} of its lines cannot be read"})
    if store.is_incomplete(rollout_id):
        gaps.append({"code": "model_call_capture_incomplete"})
    if not records and not gaps:
        gaps.append(_NO_RECORDS)
    return records, gaps


def aggregate_model_call_metrics(store: CaptureStore, rollout_id: str) -> dict[str, Any]:
    """The sums over the calls of a rollout, see `sums_over_calls`."""
    return sums_over_calls(read_model_call_records(store, rollout_id))


def sums_over_calls(records: Iterable[ModelCallRecord]) -> dict[str, Any]:
    """Sums over calls: unknown values are skipped, and a sum of which nothing is known is None."""
    calls = list(records)
    metrics: dict[str, Any] = {}
    for name in _SUMMED:
        values = [value for call in calls if (value := getattr(call, name)) is not None]
        metrics[name] = sum(values) if values else None
    metrics["num_calls"] = len(calls)
    return metrics


def merge_model_call_capture_into_record(
    record: dict[str, Any], capture_dirs: Sequence[str | Path], *, include_payloads: bool = False
) -> dict[str, Any]:
    """Give a rollout's record its `ng_model_call_capture` block, and return it; requests and answers only on demand.

    The rollout's id is the one that the record's own stamps make; the calls are those in any of the folders. What the agent
    reported of its calls (`ng_agent_observations`) gets their ids. A record without an id is left as it is.
    """
    rollout_id = maybe_rollout_id_from_run_body(record)
    if rollout_id is None:
        return record
    calls, gaps = _calls_in(capture_dirs, rollout_id)
    excluded = None if include_payloads else PAYLOAD_FIELDS
    block: dict[str, Any] = {
        "rollout_id": rollout_id,
        "metrics": sums_over_calls(calls),
        "calls": [call.model_dump(exclude=excluded) for call in calls],
    }
    if gaps:
        block["gaps"] = gaps
    record[CAPTURE_KEY] = block
    _join_observations(record, calls)
    return record


def _calls_in(capture_dirs: Sequence[str | Path], rollout_id: str) -> tuple[list[ModelCallRecord], list[dict[str, str]]]:
    """The calls of all folders as one sequence; a folder without any is no gap as long as another one has some."""
    found = [read_model_calls(CaptureStore(folder), rollout_id) for folder in capture_dirs]
    calls = sorted((call for some, _ in found for call in some), key=lambda call: call.started_at or 0.0)
    gaps = [gap for _, some in found for gap in some if not (calls and gap == _NO_RECORDS)]
    numbered = [call.model_copy(update={"call_index": index}) for index, call in enumerate(calls)]
    return numbered, [gap for index, gap in enumerate(gaps) if gap not in gaps[:index]]


def _join_observations(record: dict[str, Any], calls: list[ModelCallRecord]) -> None:
    reported = record.get(OBSERVATIONS_KEY)
    if reported is None:
        return
    try:
        bundle = AgentObservationBundle.model_validate(reported)
    except ValidationError:
        record[CAPTURE_KEY].setdefault("gaps", []).append({"code": "agent_observation_join_failed"})
        return
    record[OBSERVATIONS_KEY] = join_model_call_observations(with_compaction_calls(bundle, calls), calls).model_dump(mode="json")


def _start_of(line: dict[str, Any]) -> float:
    started = line.get("started_at")
    return started if isinstance(started, int | float) else 0.0


def _tool_call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    try:
        parsed = loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        parsed = arguments
    return {"call_id": call_id, "name": name, "arguments": parsed}


def _from_responses(response: dict[str, Any]) -> dict[str, Any]:
    usage = response.get("usage") or {}
    output = [item for item in response.get("output") or [] if isinstance(item, dict)]
    calls = [
        _tool_call(item.get("call_id"), item.get("name"), item.get("arguments"))
        for item in output
        if item.get("type") == "function_call"
    ]
    thoughts = [
        part.get("text") or ""
        for item in output
        if item.get("type") == "reasoning"
        for part in item.get("summary") or item.get("content") or []
    ]
    return {
        "response_status": response.get("status"),
        "finish_reason": (response.get("incomplete_details") or {}).get("reason"),
        "tool_calls": calls,
        "reasoning_content": "\n".join(thoughts) or None,
        "tokens_in": usage.get("input_tokens"),
        "tokens_out": usage.get("output_tokens"),
        "tokens_total": usage.get("total_tokens"),
        "tokens_reasoning": (usage.get("output_tokens_details") or {}).get("reasoning_tokens"),
        "cached_tokens": (usage.get("input_tokens_details") or {}).get("cached_tokens"),
    }


def _from_chat(response: dict[str, Any]) -> dict[str, Any]:
    usage = response.get("usage") or {}
    choice = (response.get("choices") or [{}])[0]
    message = choice.get("message") or {}
    calls = [
        _tool_call(call.get("id"), *((call.get("function") or {}).get(key) for key in ("name", "arguments")))
        for call in message.get("tool_calls") or []
    ]
    return {
        "finish_reason": choice.get("finish_reason"),
        "tool_calls": calls,
        "reasoning_content": message.get("reasoning_content") or message.get("reasoning") or None,
        "tokens_in": usage.get("prompt_tokens"),
        "tokens_out": usage.get("completion_tokens"),
        "tokens_total": usage.get("total_tokens"),
        "tokens_reasoning": (usage.get("completion_tokens_details") or {}).get("reasoning_tokens"),
        "cached_tokens": (usage.get("prompt_tokens_details") or {}).get("cached_tokens"),
    }


def _from_messages(response: dict[str, Any]) -> dict[str, Any]:
    """Anthropic counts cached tokens beside the input tokens; here they are part of them, as everywhere else."""
    usage = response.get("usage") or {}
    blocks = [block for block in response.get("content") or [] if isinstance(block, dict)]
    calls = [
        _tool_call(block.get("id"), block.get("name"), block.get("input")) for block in blocks if block.get("type") == "tool_use"
    ]
    thoughts = [block.get("thinking") or "" for block in blocks if block.get("type") == "thinking"]
    fresh, written = usage.get("input_tokens"), usage.get("output_tokens")
    cached, created = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    total_in = None if fresh is None else fresh + (cached or 0) + (created or 0)
    return {
        "finish_reason": response.get("stop_reason"),
        "tool_calls": calls,
        "reasoning_content": "\n".join(thoughts) or None,
        "tokens_in": total_in,
        "tokens_out": written,
        "tokens_total": None if total_in is None or written is None else total_in + written,
        "cached_tokens": cached,
        "cache_creation_tokens": created,
    }
