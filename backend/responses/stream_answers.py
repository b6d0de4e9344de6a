"""What a stream said, put together again: one answer object of the dialect, and whether the stream came to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from backend.io.json_codec import loads
from backend.responses.sse import DONE, ServerSentEvent, read_events

UPSTREAM_ERROR = "upstream_error"
TRUNCATED = "stream_truncated"
UNREADABLE = "capture_parse_error"

_ENDS_OF_RESPONSES = {"response.completed": None, "response.incomplete": None, "response.failed": UPSTREAM_ERROR}
_LAST_EVENTS = frozenset({*_ENDS_OF_RESPONSES, "message_stop", "error"})
_JOINED = ("content", "reasoning_content", "reasoning", "refusal")


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """The answer as far as it can be put together, and what was wrong with the stream: one of the three names above."""

    answer: dict[str, Any] | None
    problem: str | None


def answer_from_stream(dialect: str, stream: str) -> StreamedAnswer:
    """The answer that a stream of `dialect` (`responses`, `chat` or `messages`) carried."""
    events = list(read_events(stream))
    if not any(event.data == DONE or event.json() is not None for event in events):
        return StreamedAnswer(None, UNREADABLE)
    return _READERS[dialect](events)


def ends_stream(dialect: str, piece: str) -> bool:
    """Whether a piece of a stream holds, whole, the event after which nothing comes."""
    return any(
        event.data == DONE if dialect == "chat" else (event.name or (event.json() or {}).get("type")) in _LAST_EVENTS
        for event in read_events(piece)
    )


def _from_responses(events: Iterable[ServerSentEvent]) -> StreamedAnswer:
    begun: dict[str, Any] | None = None
    items: list[Any] = []
    for event in events:
        data = event.json() or {}
        kind = data.get("type") or event.name
        if kind in _ENDS_OF_RESPONSES:
            return StreamedAnswer(_dict(data.get("response")), _ENDS_OF_RESPONSES[kind])
        if kind == "error":
            return StreamedAnswer(begun, UPSTREAM_ERROR)
        if kind == "response.created":
            begun = _dict(data.get("response"))
        elif kind == "response.output_item.done":
            items.append(data.get("item"))
    return StreamedAnswer(None if begun is None else begun | {"output": items}, TRUNCATED)


def _from_chat(events: Iterable[ServerSentEvent]) -> StreamedAnswer:
    answer: dict[str, Any] = {"object": "chat.completion"}
    choices: dict[int, dict[str, Any]] = {}
    problem: str | None = TRUNCATED
    for event in events:
        if event.data == DONE:
            problem = None
            break
        chunk = event.json() or {}
        if chunk.get("error"):
            answer["error"], problem = chunk["error"], UPSTREAM_ERROR
            break
        answer |= {key: value for key, value in chunk.items() if key not in ("object", "choices") and value is not None}
        for part in chunk.get("choices") or []:
            _add_choice_part(choices, part)
    answer["choices"] = [_finished_choice(choices[index]) for index in sorted(choices)]
    return StreamedAnswer(answer, problem)


def _add_choice_part(choices: dict[int, dict[str, Any]], part: dict[str, Any]) -> None:
    index = part.get("index") or 0
    choice = choices.setdefault(index, {"index": index, "message": {"role": "assistant", "content": None}, "calls": {}})
    message: dict[str, Any] = choice["message"]
    delta = part.get("delta") or {}
    for key in _JOINED:
        if delta.get(key):
            message[key] = (message.get(key) or "") + delta[key]
    for fragment in delta.get("tool_calls") or []:
        _add_call_fragment(choice["calls"], fragment)
    if part.get("finish_reason"):
        choice["finish_reason"] = part["finish_reason"]


def _add_call_fragment(calls: dict[int, dict[str, Any]], fragment: dict[str, Any]) -> None:
    index = fragment.get("index")
    index = len(calls) if index is None else index
    call = calls.setdefault(index, {"id": None, "type": "function", "function": {"name": None, "arguments": ""}})
    function = fragment.get("function") or {}
    call["id"] = call["id"] or fragment.get("id")
    call["function"]["name"] = call["function"]["name"] or function.get("name")
    call["function"]["arguments"] += function.get("arguments") or ""


def _finished_choice(choice: dict[str, Any]) -> dict[str, Any]:
    calls = choice.pop("calls")
    if calls:
        choice["message"]["tool_calls"] = [calls[index] for index in sorted(calls)]
    return choice


def _from_messages(events: Iterable[ServerSentEvent]) -> StreamedAnswer:
    answer: dict[str, Any] | None = None
    blocks: dict[int, dict[str, Any]] = {}
    problem: str | None = TRUNCATED
    for event in events:
        data = event.json() or {}
        kind = data.get("type") or event.name
        if kind == "message_stop":
            problem = None
            break
        if kind == "error":
            problem = UPSTREAM_ERROR
            break
        if kind == "message_start":
            answer = dict(data.get("message") or {})
        elif kind == "content_block_start":
            blocks[data.get("index") or 0] = dict(data.get("content_block") or {})
        elif kind == "content_block_delta":
            _add_block_delta(blocks.setdefault(data.get("index") or 0, {}), data.get("delta") or {})
        elif kind == "message_delta" and answer is not None:
            answer |= {key: value for key, value in (data.get("delta") or {}).items() if value is not None}
            counts = {key: value for key, value in (data.get("usage") or {}).items() if value is not None}
            answer["usage"] = (answer.get("usage") or {}) | counts
    if answer is not None:
        answer["content"] = [_finished(blocks[index]) for index in sorted(blocks)]
    return StreamedAnswer(answer, problem)


def _add_block_delta(block: dict[str, Any], delta: dict[str, Any]) -> None:
    for key in ("text", "thinking", "signature", "partial_json"):
        if isinstance(delta.get(key), str):
            block[key] = block.get(key, "") + delta[key]


def _finished(block: dict[str, Any]) -> dict[str, Any]:
    """A block with its collected JSON text as `input`; text that is no JSON stays as `partial_json`."""
    if block.get("partial_json"):
        try:
            value = loads(block["partial_json"])
        except ValueError:
            return block
        block = {key: value for key, value in block.items() if key != "partial_json"} | {"input": value}
    return block


def _dict(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


_READERS: dict[str, Callable[[Iterable[ServerSentEvent]], StreamedAnswer]] = {
    "responses": _from_responses,
    "chat": _from_chat,
    "messages": _from_messages,
}
