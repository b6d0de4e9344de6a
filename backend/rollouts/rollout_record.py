"""What one record says about its rollout, read tolerantly: a value of the wrong type counts as absent, nothing ever raises."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.io.json_codec import dumps
from backend.io.row_keys import AGENT_REF
from backend.io.text import clean_line
from backend.rollouts.failures import FAILURE_CLASS, reason_of

PREVIEW_CHARACTERS = 200
_NUMBERS = (int, float)
_NOTHING: Mapping[str, Any] = {}
_TIMEOUT_CLASS = "timeout_exceeded"
_ENDS = {"completed": "stop", "max_output_tokens": "length"}
"""Words of a response's status, and how a finish reason is called elsewhere."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts of one rollout; None where the endpoint did not report them."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    """Part of the output."""
    cached: int | None = None
    """Part of the input."""


def as_mapping(value: Any) -> Mapping[str, Any]:
    """`value` when it is an object, else an empty one."""
    return value if isinstance(value, dict) else _NOTHING


def as_items(value: Any) -> Sequence[Any]:
    """`value` when it is an array, else an empty one."""
    return value if isinstance(value, list) else ()


def as_text(value: Any) -> str:
    """`value` when it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: Any) -> int | None:
    """`value` when it is an integer of 0 or more and no boolean."""
    return value if type(value) is int and value >= 0 else None


def as_finite(value: Any) -> float | None:
    """`value` as a float when it is a finite number, booleans as 0 and 1."""
    if not isinstance(value, _NUMBERS):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def reward_of(record: Mapping[str, Any]) -> float | None:
    """The reward; None when there is none or it is not a finite number."""
    return as_finite(record.get("reward"))


def failure_of(record: Mapping[str, Any]) -> str | None:
    """The failure class; None for a rollout that was scored."""
    value = record.get(FAILURE_CLASS)
    return None if value is None else value if isinstance(value, str) else plain(value)


def agent_of(record: Mapping[str, Any]) -> str | None:
    return as_text(as_mapping(record.get(AGENT_REF)).get("name")) or None


def end_of(record: Mapping[str, Any]) -> str | None:
    """How the rollout ended: `stop`, `length`, an endpoint's own word, `timeout` or `failed` for an attempt that failed; None when nothing says.

    From `response.incomplete_details.reason`, then `response.status`.
    """
    failure = record.get(FAILURE_CLASS)
    if failure is not None:
        return "timeout" if failure == _TIMEOUT_CLASS else "failed"
    response = as_mapping(record.get("response"))
    details = response.get("incomplete_details")
    word = (as_text(as_mapping(details).get("reason")) if details else "") or as_text(response.get("status"))
    return _ENDS.get(word, word) or None


def tokens_of(record: Mapping[str, Any]) -> Tokens:
    """The counts of `response.usage`, in the words of Responses or of Chat Completions."""
    usage = as_mapping(as_mapping(record.get("response")).get("usage"))
    read = as_mapping(usage.get("input_tokens_details") or usage.get("prompt_tokens_details"))
    written = as_mapping(usage.get("output_tokens_details") or usage.get("completion_tokens_details"))
    return Tokens(
        as_count(usage["input_tokens"] if "input_tokens" in usage else usage.get("prompt_tokens")),
        output_tokens_of(record),
        as_count(written.get("reasoning_tokens")),
        as_count(read.get("cached_tokens")),
    )


def output_tokens_of(record: Mapping[str, Any]) -> int | None:
    """The `output` of `tokens_of`."""
    usage = as_mapping(as_mapping(record.get("response")).get("usage"))
    return as_count(usage["output_tokens"] if "output_tokens" in usage else usage.get("completion_tokens"))


def seconds_of(record: Mapping[str, Any]) -> float | None:
    """Wall clock of the rollout in seconds: `ng_perf.total_latency_ms`, else from the response's two times."""
    latency = as_finite(as_mapping(record.get("ng_perf")).get("total_latency_ms"))
    if latency is not None and latency >= 0:
        return latency / 1000
    response = as_mapping(record.get("response"))
    began, ended = as_finite(response.get("created_at")), as_finite(response.get("completed_at"))
    return ended - began if began is not None and ended is not None and ended >= began else None


def turns_of(record: Mapping[str, Any]) -> int:
    """How often the model spoke: `ng_perf.num_turns`, else runs of generated items in `response.output` between results of tools."""
    counted = as_count(as_mapping(record.get("ng_perf")).get("num_turns"))
    if counted is not None:
        return counted
    turns = 0
    speaking = False
    for item in as_items(as_mapping(record.get("response")).get("output")):
        generated = is_generated(as_mapping(item))
        turns += generated and not speaking
        speaking = generated
    return turns


def is_generated(item: Mapping[str, Any]) -> bool:
    """Whether an item of `output` comes from the model, and not from a tool or a user that the environment plays."""
    kind, role = item.get("type"), item.get("role")
    if role is not None:
        return role == "assistant"
    return isinstance(kind, str) and not kind.endswith(("_output", "_response"))


def preview_of(record: Mapping[str, Any]) -> str:
    """One clean line of at most 200 characters: the final answer, else the last tool call, else why the attempt failed."""
    if record.get(FAILURE_CLASS) is not None and (reason := reason_of(record)):
        return clean_line(reason, PREVIEW_CHARACTERS)
    call = ""
    for item in reversed(as_items(as_mapping(record.get("response")).get("output"))):
        item = as_mapping(item)
        if item.get("role") == "assistant" and (text := content_text(item.get("content")).strip()):
            return clean_line(text, PREVIEW_CHARACTERS)
        if not call and as_text(item.get("type")).endswith("_call"):
            call = f"{as_text(item.get('name')) or as_text(item.get('type'))}({as_text(item.get('arguments'))})"
    return clean_line(call, PREVIEW_CHARACTERS)


def content_text(content: Any) -> str:
    """The words of a message's content, a string or parts; parts without words are left out."""
    if isinstance(content, str):
        return content
    texts = (as_text(part.get("text")) or as_text(part.get("refusal")) for part in map(as_mapping, as_items(content)))
    return "\n".join(filter(None, texts))


def plain(value: Any) -> str:
    """Any JSON value as text on one line: strings as they are."""
    return value if isinstance(value, str) else as_json(value)


def as_json(value: Any) -> str:
    try:
        return dumps(value).decode()
    except ValueError:  # nested beyond what can be written
        return str(type(value).__name__)
