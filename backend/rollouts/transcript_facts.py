"""What stands beside a conversation: the verifier's fields, facts of the run, model calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from backend.io.row_keys import AGENT_REF, ATTEMPT, ROLLOUT_ID, SKILLS_REF, TASK_SOURCE
from backend.metrics.records import FRAMEWORK_PREFIX
from backend.rollouts.rollout_record import (
    agent_of,
    as_count,
    as_finite,
    as_items,
    as_mapping,
    as_text,
    end_of,
    plain,
    seconds_of,
    tokens_of,
    turns_of,
)

_FRAMEWORK_KEYS = frozenset({"responses_create_params", "response", AGENT_REF, TASK_SOURCE, SKILLS_REF})
_FRAMEWORK_PREFIXES = (FRAMEWORK_PREFIX, "ng_")
_DEPTH = 3
_SETTINGS = ("temperature", "top_p", "max_output_tokens")


@dataclass(frozen=True, slots=True)
class Field:
    """A name and a value for people; not cleaned for a terminal."""

    name: str
    text: str
    depth: int = 0
    """Levels below the field that it belongs to."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One captured call of the model."""

    seconds: float | None
    output_tokens: int | None
    status: str | None
    """A finish reason, or what went wrong."""


def verifier_fields(record: Mapping[str, Any]) -> tuple[Field, ...]:
    """What the verifier left in the record, the reward first and its components below it; the framework's own keys are left out."""
    fields = list(_flattened("reward", record["reward"], 0)) if "reward" in record else []
    for name, value in as_mapping(record.get("reward_components")).items():
        fields += _flattened(name, value, 1)
    for key, value in record.items():
        if key in _FRAMEWORK_KEYS or key.startswith(_FRAMEWORK_PREFIXES) or key == "reward":
            continue
        if key == "reward_components" and isinstance(value, dict):
            continue
        fields += _flattened(key, value, 0)
    return tuple(fields)


def facts(record: Mapping[str, Any], health: str | None = None) -> tuple[Field, ...]:
    """Facts of the rollout in a fixed order; what is not known is left out. `health` is the verdict, where a check has given one."""
    params, response = as_mapping(record.get("responses_create_params")), as_mapping(record.get("response"))
    tokens, seconds = tokens_of(record), seconds_of(record)
    values: dict[str, Any] = {"agent": agent_of(record), "model": response.get("model") or params.get("model")}
    for name in _SETTINGS:
        value = response.get(name)
        values[name] = params.get(name) if value is None else value
    values["tokens in"] = _with_share(tokens.input, tokens.cached, "cached")
    values["tokens out"] = _with_share(tokens.output, tokens.reasoning, "reasoning")
    values["turns"] = turns_of(record) or None
    values["time"] = None if seconds is None else f"{seconds:.1f} s"
    values["end"] = end_of(record)
    values["health"] = health
    values["attempt"] = record.get(ATTEMPT)
    values["rollout id"] = record.get(ROLLOUT_ID)
    values["task source"] = record.get(TASK_SOURCE)
    return tuple(Field(name, plain(value)) for name, value in values.items() if value is not None)


def model_calls(record: Mapping[str, Any]) -> tuple[ModelCall, ...]:
    """The captured model calls in their order, from `ng_trajectory`, else from `ng_model_call_capture`; none without a capture."""
    calls = as_items(as_mapping(record.get("ng_trajectory")).get("model_calls"))
    calls = calls or as_items(as_mapping(record.get("ng_model_call_capture")).get("calls"))
    return tuple(map(_model_call, map(as_mapping, calls)))


def _model_call(call: Mapping[str, Any]) -> ModelCall:
    duration = as_finite(call.get("duration_ms"))
    metadata, stats = as_mapping(call.get("response_metadata")), as_mapping(call.get("token_stats"))
    status = (
        as_text(metadata.get("error_category"))
        or as_text(metadata.get("finish_reason"))
        or as_text(metadata.get("response_status"))
    )
    return ModelCall(None if duration is None else duration / 1000, as_count(stats.get("completion_tokens")), status or None)


def _with_share(count: int | None, part: int | None, name: str) -> str | None:
    if count is None:
        return None
    return f"{count} ({part} {name})" if part else str(count)


def _flattened(name: str, value: Any, depth: int) -> Iterator[Field]:
    """A field, and those of an object below it; deeper objects and lists as JSON."""
    if isinstance(value, dict) and value and depth < _DEPTH:
        yield Field(name, "", depth)
        for key, item in value.items():
            yield from _flattened(key, item, depth + 1)
    else:
        yield Field(name, plain(value), depth)
