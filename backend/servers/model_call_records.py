"""What a collector reads from capture files: typed records, their sums, and the block that a rollout's record gets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict

from backend.errors import GymError
from backend.servers.model_call_capture import CaptureStore

CAPTURE_KEY = "ng_model_call_capture"
_PAYLOADS = {"request", "response", "request_raw", "response_raw"}
_SUMMED = ("tokens_in", "tokens_out", "tokens_reasoning", "tokens_total", "cached_tokens", "latency_total_ms")


class ModelCallRecord(BaseModel):
    """One model call. Counts are None where the endpoint did not say; times are Unix seconds, latencies milliseconds."""

    model_config = ConfigDict(protected_namespaces=())

    model_call_id: str
    response_id: str | None = None
    call_index: int | None = None
    """0-based position among the rollout's calls, in order of their start."""
    model_ref: dict[str, Any] | None = None
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
    tool_calls: list[dict[str, Any]] | None = None
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


def read_model_call_records(store: CaptureStore, rollout_id: str) -> tuple[list[ModelCallRecord], list[dict[str, str]]]:
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
        gaps.append({"code": "model_call_capture_no_records"})
    return records, gaps


def aggregate_model_call_metrics(records: Iterable[ModelCallRecord]) -> dict[str, Any]:
    """Sums over calls: unknown values are skipped, and a sum of which nothing is known is None."""
    calls = list(records)
    metrics: dict[str, Any] = {}
    for name in _SUMMED:
        values = [value for call in calls if (value := getattr(call, name)) is not None]
        metrics[name] = sum(values) if values else None
    metrics["num_calls"] = len(calls)
    return metrics


def merge_model_call_capture_into_record(
    record: dict[str, Any], store: CaptureStore, rollout_id: str, *, include_payloads: bool = False
) -> dict[str, Any]:
    """Give a rollout's record its `ng_model_call_capture` block, and return it; requests and answers only on demand."""
    calls, gaps = read_model_call_records(store, rollout_id)
    excluded = None if include_payloads else _PAYLOADS
    block: dict[str, Any] = {
        "rollout_id": rollout_id,
        "metrics": aggregate_model_call_metrics(calls),
        "calls": [call.model_dump(exclude=excluded) for call in calls],
    }
    if gaps:
        block["gaps"] = gaps
    record[CAPTURE_KEY] = block
    return record


def _start_of(line: dict[str, Any]) -> float:
    started = line.get("started_at")
    return started if isinstance(started, int | float) else 0.0


def _from_responses(response: dict[str, Any]) -> dict[str, Any]:
    usage = response.get("usage") or {}
    output = [item for item in response.get("output") or [] if isinstance(item, dict)]
    calls = [
        {"id": item.get("call_id"), "name": item.get("name"), "arguments": item.get("arguments")}
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
        "tool_calls": calls or None,
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
        {"id": call.get("id"), **{key: (call.get("function") or {}).get(key) for key in ("name", "arguments")}}
        for call in message.get("tool_calls") or []
    ]
    return {
        "finish_reason": choice.get("finish_reason"),
        "tool_calls": calls or None,
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
        {"id": block.get("id"), "name": block.get("name"), "arguments": block.get("input")}
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    thoughts = [block.get("thinking") or "" for block in blocks if block.get("type") == "thinking"]
    fresh, written = usage.get("input_tokens"), usage.get("output_tokens")
    cached, created = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    total_in = None if fresh is None else fresh + (cached or 0) + (created or 0)
    return {
        "finish_reason": response.get("stop_reason"),
        "tool_calls": calls or None,
        "reasoning_content": "\n".join(thoughts) or None,
        "tokens_in": total_in,
        "tokens_out": written,
        "tokens_total": None if total_in is None or written is None else total_in + written,
        "cached_tokens": cached,
        "cache_creation_tokens": created,
    }
