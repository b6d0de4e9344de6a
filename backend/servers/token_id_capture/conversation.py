"""When one conversation continues another: turns in a form that is the same for both dialects.

Clients send back less than a model generated: reasoning is cut from the history, arguments are encoded anew. So turns are compared by
role, text without reasoning, and calls by name and decoded arguments.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import BaseModel

from backend.io.json_codec import dumps, loads
from backend.servers.token_id_capture.records import TokenEntry

FINGERPRINT_VERSION = 1
_GENERATED = frozenset({"reasoning", "function_call", "custom_tool_call"})
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)


class Turn(NamedTuple):
    """One turn: who, what was said, what was called (name and arguments)."""

    role: str
    text: str
    calls: tuple[tuple[str, str], ...] = ()


def turns_of(messages: Iterable[Any] | None) -> list[Turn]:
    """Messages or items (dicts or models) as turns; all that the model generated in a row is one turn."""
    if isinstance(messages, str):
        return [Turn("user", messages)]
    turns: list[Turn] = []
    for message in messages or ():
        turn = _turn(as_dict(message))
        if turn.role == "assistant" and turns and turns[-1].role == "assistant":
            last = turns[-1]
            turns[-1] = Turn("assistant", "".join((last.text, turn.text)), (*last.calls, *turn.calls))
        else:
            turns.append(turn)
    return turns


def as_dict(item: Any) -> dict[str, Any]:
    """A message or item, model or dict, as a dict."""
    return item.model_dump() if isinstance(item, BaseModel) else dict(item)


def generated(turns: Iterable[Turn]) -> list[Turn]:
    """The turns of the model."""
    return [turn for turn in turns if turn.role == "assistant"]


def turns_digest(turns: Iterable[Turn]) -> str:
    """SHA-256 of turns."""
    return hashlib.sha256(dumps([tuple(turn) for turn in turns])).hexdigest()


def assistant_fingerprint(messages: str | Iterable[Any] | None) -> str:
    """The digest of what the model generated in a conversation; empty where it generated nothing."""
    return fingerprint_of(turns_of(messages))


def fingerprint_of(turns: Iterable[Turn]) -> str:
    """See `assistant_fingerprint`."""
    own = generated(turns)
    return turns_digest(own) if own else ""


def stamp_continuation(entry: TokenEntry, request_items: str | Iterable[Any]) -> TokenEntry:
    """`entry` with what recognises a later call that continues it, for a call that was asked with `request_items`."""
    asked = [{"role": "user", "content": request_items}] if isinstance(request_items, str) else list(request_items)
    turns = turns_of([*asked, *entry.output_items])
    return entry.model_copy(
        update={
            "continuation_fingerprint": fingerprint_of(turns),
            "continuation_context_len": len(turns) - 1,
            "continuation_context_digest": turns_digest(turns[:-1]),
            "fingerprint_version": FINGERPRINT_VERSION,
        }
    )


def _turn(item: dict[str, Any]) -> Turn:
    kind = item.get("type") or "message"
    if kind == "function_call_output" or item.get("role") == "tool":
        return Turn("tool", _text(item.get("output", item.get("content"))))
    if kind == "message" and item.get("role") != "assistant":
        return Turn(str(item.get("role")), _text(item.get("content")))
    if kind == "message":
        calls = tuple(_call(call.get("function") or {}) for call in item.get("tool_calls") or ())
        return Turn("assistant", _THOUGHT.sub("", _text(item.get("content"))).strip(), calls)
    if kind in _GENERATED:
        return Turn("assistant", "", () if kind == "reasoning" else (_call(item),))
    return Turn(str(kind), dumps({key: value for key, value in item.items() if value is not None}).decode())


def _call(function: dict[str, Any]) -> tuple[str, str]:
    arguments = function.get("arguments", function.get("input")) or ""
    try:
        arguments = dumps(_sorted(loads(arguments))).decode()
    except (ValueError, TypeError):
        arguments = str(arguments)
    return str(function.get("name")), arguments


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _text(content: Any) -> str:
    """Text as it is, the texts of parts joined, other parts as JSON."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(_part(part) for part in content)


def _part(part: Any) -> str:
    if isinstance(part, dict):
        for key in ("text", "refusal"):
            if isinstance(part.get(key), str):
                return str(part[key])
    return dumps(part).decode()
