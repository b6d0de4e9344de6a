"""A finished chat completion as the chunks of a stream, for clients that insist on streaming."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from backend.responses.chat import NeMoGymChatCompletionCreateParamsNonStreaming
from backend.responses.sse import DONE, event_text

_COMMON = ("id", "created", "model")
_OPTIONAL = ("system_fingerprint", "service_tier")


def sanitize_streaming_chat_body(
    body: dict[str, Any], params_class: type[Any] = NeMoGymChatCompletionCreateParamsNonStreaming
) -> tuple[dict[str, Any], bool]:
    """A streaming request as one that does not stream, without unknown keys, and whether it asks for a usage chunk."""
    known = params_class.model_fields.keys() - {"stream", "stream_options"}
    options = body.get("stream_options")
    return {key: value for key, value in body.items() if key in known}, isinstance(options, dict) and bool(
        options.get("include_usage")
    )


def chat_completion_sse(completion: dict[str, Any], *, include_usage: bool = False) -> Iterator[str]:
    """The events of a finished completion.

    Per choice: role, reasoning, text, refusal and tool calls, each in one chunk where there is one, then the finish reason. The
    usage, if it is asked for and known, has a chunk of its own without choices.
    """
    chunk = {"object": "chat.completion.chunk"} | {key: completion.get(key) for key in _COMMON}
    chunk |= {key: completion[key] for key in _OPTIONAL if completion.get(key) is not None}
    for choice in completion.get("choices") or []:
        for delta in _deltas(choice.get("message") or {}):
            yield event_text(chunk | {"choices": [_part(choice, delta, None)]})
        yield event_text(chunk | {"choices": [_part(choice, {}, choice.get("finish_reason"))]})
    if include_usage and completion.get("usage") is not None:
        yield event_text(chunk | {"choices": [], "usage": completion["usage"]})
    yield event_text(DONE)


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": message.get("role") or "assistant"}
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if reasoning:
        yield {"reasoning_content": reasoning}
    for key in ("content", "refusal"):
        if message.get(key):
            yield {key: message[key]}
    calls = message.get("tool_calls") or []
    if calls:
        yield {"tool_calls": [{"index": index, **call} for index, call in enumerate(calls)]}


def _part(choice: dict[str, Any], delta: dict[str, Any], finish_reason: str | None) -> dict[str, Any]:
    return {"index": choice.get("index") or 0, "delta": delta, "finish_reason": finish_reason}
