"""A record as a conversation: what the model was given, then what it and its tools said, one turn for each item.

Reads any record: what has an unknown type or the wrong shape becomes a turn that shows it as JSON, and nothing is dropped. Texts are as the record
has them; whoever draws them cleans them first (`backend.io.text`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from backend.rollouts.failures import FAILURE_CLASS
from backend.rollouts.rollout_record import (
    as_count,
    as_items,
    as_mapping,
    as_text,
    end_of,
    output_tokens_of,
    plain,
    tokens_of,
)
from backend.rollouts.transcript_parts import arguments_text, content_body, failure_body, indented

_ANSWERED_CALLS = frozenset(
    {"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"}
)
"""Calls whose results are items of their own; hosted tools carry theirs inside."""


class Kind(StrEnum):
    """What a turn is."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    REASONING = "reasoning"
    TOOL_CALL = "tool call"
    TOOL_RESULT = "tool result"
    OTHER = "other"
    FAILURE = "failure"
    """Not said by anybody: why the attempt has no answer."""


_ROLES = {kind.value: kind for kind in (Kind.SYSTEM, Kind.DEVELOPER, Kind.USER, Kind.ASSISTANT)}


@dataclass(frozen=True, slots=True)
class Turn:
    """One item of the conversation."""

    kind: Kind
    body: str
    title: str = ""
    """What the kind does not say: a tool's name, an item's type."""
    generated: bool = False
    """From the rollout and not from the task's own input."""
    call_id: str | None = None
    partner: int | None = None
    """Index of the result of this call, or of the call of this result."""
    orphan: bool = False
    """A call without a result, or a result without a call."""
    tokens: int | None = None
    """Tokens that the model generated for this item, where that is known."""
    end: str | None = None
    """On the last turn: how the rollout ended."""
    refused: bool = False
    error: bool = False
    """The tool or the endpoint says that something went wrong."""
    is_json: bool = False
    """The body is JSON."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A whole conversation."""

    turns: tuple[Turn, ...] = ()
    tools: tuple[str, ...] = ()
    """Names of the tools that were offered."""
    end: str | None = None


def transcript(record: Mapping[str, Any]) -> Transcript:
    """The conversation of a record. Never raises, whatever the record holds."""
    params, response = as_mapping(record.get("responses_create_params")), as_mapping(record.get("response"))
    turns: list[Turn] = []
    if instructions := params.get("instructions") or response.get("instructions"):
        turns += _message(Kind.SYSTEM, instructions, title="instructions")
    turns += _turns_of(params.get("input"), generated=False)
    turns += _with_tokens(list(_turns_of(response.get("output"), generated=True)), record)
    if error := response.get("error"):
        turns.append(
            Turn(Kind.FAILURE, plain(as_mapping(error).get("message") or error), "error of the endpoint", True, error=True)
        )
    if record.get(FAILURE_CLASS) is not None:
        turns.append(Turn(Kind.FAILURE, failure_body(record), plain(record[FAILURE_CLASS]), True, error=True))
    end = end_of(record)
    turns = _paired(turns)
    if turns and end:
        turns[-1] = replace(turns[-1], end=end)
    return Transcript(tuple(turns), tuple(map(_tool_name, as_items(params.get("tools") or response.get("tools")))), end)


def _turns_of(items: Any, *, generated: bool) -> Iterator[Turn]:
    """The turns of an input or output, which may also be a bare text or a single item."""
    if items is None or items == []:
        return
    if isinstance(items, str):
        yield Turn(Kind.ASSISTANT if generated else Kind.USER, items, generated=generated)
        return
    for item in items if isinstance(items, list) else [items]:
        for turn in _item_turns(item):
            yield replace(turn, generated=generated)


def _item_turns(item: Any) -> Iterator[Turn]:
    if isinstance(item, str):
        yield Turn(Kind.USER, item)
        return
    if not isinstance(item, dict):
        yield _other(item, "not an item")
        return
    kind = item.get("type")
    if kind is None or kind == "message":
        yield from _message_turns(item)
    elif kind == "reasoning":
        yield _reasoning(item)
    elif isinstance(kind, str) and kind.endswith("_call_output"):
        yield _result(item, item.get("call_id"), item.get("output"))
    elif isinstance(kind, str) and kind.endswith("_call"):
        yield from _call(item, kind)
    else:
        yield _other(item, as_text(kind) or "item")


def _message_turns(item: Mapping[str, Any]) -> Iterator[Turn]:
    role = item.get("role")
    if role == "tool":
        yield _result(item, item.get("tool_call_id"), item.get("content"))
        return
    kind = _ROLES.get(role) if isinstance(role, str) else None
    if kind is None:
        yield _other(item, as_text(role) or as_text(item.get("type")) or "item")
        return
    if reasoning := as_text(item.get("reasoning_content")):
        yield Turn(Kind.REASONING, reasoning)
    calls = as_items(item.get("tool_calls"))
    if item.get("content") not in (None, "", []) or not calls:
        yield from _message(kind, item.get("content"), refusal=as_text(item.get("refusal")), tokens=_generated_tokens(item))
    for call in map(as_mapping, calls):
        function = as_mapping(call.get("function"))
        body, is_json = arguments_text(function.get("arguments", call))
        yield Turn(
            Kind.TOOL_CALL,
            body,
            as_text(function.get("name")),
            call_id=as_text(call.get("id")) or None,
            orphan=True,
            is_json=is_json,
        )


def _message(kind: Kind, content: Any, *, title: str = "", refusal: str = "", tokens: int | None = None) -> Iterator[Turn]:
    body, refused = content_body(content)
    body = "\n".join(filter(None, (body, refusal)))
    yield Turn(kind, body, title, tokens=tokens, refused=refused or bool(refusal))


def _reasoning(item: Mapping[str, Any]) -> Turn:
    parts = [content_body(item.get(key))[0] for key in ("summary", "content")]
    body = "\n\n".join(filter(None, parts))
    encrypted = item.get("encrypted_content")
    if encrypted and not body:
        body = f"[encrypted, {len(encrypted)} characters]" if isinstance(encrypted, str) else "[encrypted]"
    return Turn(Kind.REASONING, body, tokens=_generated_tokens(item))


def _call(item: Mapping[str, Any], kind: str) -> Iterator[Turn]:
    """A call; of a tool that the endpoint ran itself, the result too."""
    call_id = as_text(item.get("call_id")) or None
    name = as_text(item.get("name")) or kind.removesuffix("_call")
    if server := as_text(item.get("server_label")):
        name = f"{server}.{name}"
    if "arguments" in item or "input" in item:
        body, is_json = arguments_text(item.get("arguments", item.get("input")))
    else:
        body, is_json = indented({key: value for key, value in item.items() if key not in ("type", "call_id")}), True
    if kind in _ANSWERED_CALLS:
        yield Turn(Kind.TOOL_CALL, body, name, call_id=call_id, orphan=True, tokens=_generated_tokens(item), is_json=is_json)
        return
    own_id = call_id or as_text(item.get("id")) or None
    output, error = item.get("output"), item.get("error")
    yield Turn(Kind.TOOL_CALL, body, name, call_id=own_id, is_json=is_json)
    if own_id and (output is not None or error):
        yield Turn(Kind.TOOL_RESULT, content_body(error or output)[0], name, call_id=own_id, error=bool(error))


def _result(item: Mapping[str, Any], call_id: Any, output: Any) -> Turn:
    failed = item.get("status") in ("failed", "incomplete") or bool(item.get("is_error") or item.get("error"))
    return Turn(Kind.TOOL_RESULT, content_body(output)[0], call_id=as_text(call_id) or None, orphan=True, error=failed)


def _other(item: Any, title: str) -> Turn:
    return Turn(Kind.OTHER, indented(item), title, is_json=True)


def _tool_name(tool: Any) -> str:
    tool = as_mapping(tool)
    name = tool.get("name") or as_mapping(tool.get("function")).get("name") or tool.get("server_label") or tool.get("type")
    return as_text(name) or "?"


def _generated_tokens(item: Mapping[str, Any]) -> int | None:
    ids = item.get("generation_token_ids")
    return len(ids) if isinstance(ids, list) else None


def _with_tokens(turns: list[Turn], record: Mapping[str, Any]) -> list[Turn]:
    """Token counts from the usage of the whole response, for those turns of which there is only one that they can belong to."""
    if any(turn.tokens is not None for turn in turns):
        return turns
    output, reasoning = output_tokens_of(record), as_count(tokens_of(record).reasoning)
    thoughts = [at for at, turn in enumerate(turns) if turn.kind is Kind.REASONING]
    spoken = [at for at, turn in enumerate(turns) if turn.kind in (Kind.ASSISTANT, Kind.TOOL_CALL)]
    if len(thoughts) == 1 and reasoning is not None:
        turns[thoughts[0]] = replace(turns[thoughts[0]], tokens=reasoning)
    if len(spoken) == 1 and output is not None and (reasoning is not None or not thoughts):
        turns[spoken[0]] = replace(turns[spoken[0]], tokens=max(output - (reasoning or 0), 0))
    return turns


def _paired(turns: list[Turn]) -> list[Turn]:
    """Calls and results joined by their ids, each result with the earliest call before it that still waits for one.

    Those that need another half come marked as orphans.
    """
    waiting: dict[str, deque[int]] = {}
    partners: dict[int, int] = {}
    for at, turn in enumerate(turns):
        if turn.call_id is None:
            continue
        if turn.kind is Kind.TOOL_CALL:
            waiting.setdefault(turn.call_id, deque()).append(at)
        elif turn.kind is Kind.TOOL_RESULT and (calls := waiting.get(turn.call_id)):
            call = calls.popleft()
            partners[at], partners[call] = call, at
    return [_joined(turns, at, partners.get(at)) for at in range(len(turns))]


def _joined(turns: list[Turn], at: int, partner: int | None) -> Turn:
    turn = turns[at]
    if turn.kind not in (Kind.TOOL_CALL, Kind.TOOL_RESULT):
        return turn
    title = turn.title or (turns[partner].title if partner is not None else "")
    return replace(turn, title=title, partner=partner, orphan=turn.orphan and partner is None)
