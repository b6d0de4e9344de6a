"""A Responses request as a Chat-Completions request.

What Chat Completions cannot express raises `NotImplementedError` naming it, so that nothing is dropped in silence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from backend.responses.base import TOKEN_FIELDS, carries_token_fields
from backend.responses.chat import NeMoGymChatCompletionCreateParamsNonStreaming
from backend.responses.params import NeMoGymResponseCreateParamsNonStreaming
from backend.responses.parts import video_url_of

_SAME_IN_BOTH = (
    "metadata",
    "model",
    "moderation",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "temperature",
    "top_p",
    "user",
)
_INEXPRESSIBLE: dict[str, tuple[Any, ...]] = {
    "background": (False,),
    "context_management": ([],),
    "conversation": (),
    "include": ([],),
    "max_tool_calls": (),
    "previous_response_id": (),
    "prompt": (),
    "truncation": ("disabled",),
}
"""Keys without a counterpart, each with the values that ask for nothing."""


def chat_params_from_responses(
    params: NeMoGymResponseCreateParamsNonStreaming, *, with_token_fields: bool = False
) -> NeMoGymChatCompletionCreateParamsNonStreaming:
    """`params` as a Chat-Completions request; with `with_token_fields`, token fields of items go onto the assistant messages.

    Raises NotImplementedError for what has no counterpart, and ValueError for a tool choice that demands a tool when there is none.
    """
    given = params.model_dump(exclude_unset=True)
    for key, harmless in _INEXPRESSIBLE.items():
        if given.get(key) is not None and given[key] not in harmless:
            raise NotImplementedError(f"`{key}` has no counterpart in Chat Completions")
    messages = chat_messages_from_items(given["input"], with_token_fields=with_token_fields)
    if given.get("instructions"):
        messages = _with_instructions(given["instructions"], messages)
    chat: dict[str, Any] = {"messages": messages}
    chat |= {key: given[key] for key in _SAME_IN_BOTH if given.get(key) is not None}
    if given.get("max_output_tokens") is not None:
        chat["max_tokens"] = given["max_output_tokens"]
    if given.get("top_logprobs") is not None:
        chat |= {"logprobs": True, "top_logprobs": given["top_logprobs"]}
    chat |= _reasoning_and_text(given.get("reasoning") or {}, given.get("text") or {})
    chat |= _tools(given)
    return NeMoGymChatCompletionCreateParamsNonStreaming.model_validate(chat)


def chat_completion_body(
    params: NeMoGymChatCompletionCreateParamsNonStreaming, *, model: str, extra_body: dict[str, Any]
) -> dict[str, Any]:
    """The body that is sent to an endpoint: the keys that were set and are not null, over those of the row and of `extra_body`, with `model`.

    Without tools, what is said about tools is left out: stricter endpoints refuse an empty list or a choice among none.
    """
    body, row_extra = without_row_extra(
        {key: value for key, value in params.model_dump(exclude_unset=True).items() if value is not None}
    )
    return extra_body | row_extra | without_empty_tools(body) | {"model": model}


def without_row_extra(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """`body` without what its row adds to the call, and that: `metadata.extra_body`, the JSON text of an object, such as `{"seed": 0}`.

    It is meant for whoever makes the call, and endpoints refuse metadata that they do not keep. Raises ValueError for other text.
    """
    metadata = dict(body.get("metadata") or {})
    text = metadata.pop("extra_body", None)
    if text is None:
        return body, {}
    try:
        extra = json.loads(text or "{}")
    except (ValueError, RecursionError):
        extra = None
    if not isinstance(extra, dict):
        raise ValueError(f"metadata.extra_body must be the JSON text of an object, not {text:.60}")
    rest = {key: value for key, value in body.items() if key != "metadata"}
    return rest | ({"metadata": metadata} if metadata else {}), extra


def without_empty_tools(body: dict[str, Any]) -> dict[str, Any]:
    """`body` without the three keys about tools, if it has no tools."""
    if body.get("tools"):
        return body
    return {key: value for key, value in body.items() if key not in ("tools", "tool_choice", "parallel_tool_calls")}


def chat_messages_from_items(
    items: str | Iterable[BaseModel | dict[str, Any]], *, with_token_fields: bool = False
) -> list[dict[str, Any]]:
    """Input items (models or dicts) as chat messages; what one assistant turn produced becomes one message."""
    if isinstance(items, str):
        return [{"role": "user", "content": [{"type": "text", "text": items}]}]
    messages: list[dict[str, Any]] = []
    turn = AssistantTurn()
    for item in items:
        value: dict[str, Any] = item.model_dump(exclude_unset=True) if isinstance(item, BaseModel) else item
        if turn.take(value):
            if with_token_fields and carries_token_fields(value):
                turn.token_fields = {key: value[key] for key in TOKEN_FIELDS if value.get(key) is not None}
            continue
        turn = turn.finish(messages)
        messages.append(_plain_message(value))
    turn.finish(messages)
    return messages


def in_think_tags(thoughts: Iterable[str]) -> str:
    """Reasoning as it stands in the text of an assistant message."""
    return "".join(f"<think>{thought}</think>" for thought in thoughts)


@dataclass(slots=True)
class AssistantTurn:
    """Collects reasoning, text and calls that stand in a row."""

    texts: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    token_fields: dict[str, Any] = field(default_factory=dict)
    begun: bool = False

    def take(self, item: dict[str, Any]) -> bool:
        """Add `item` if it belongs to an assistant turn."""
        kind = item.get("type", "message")
        if kind == "reasoning":
            summaries = item.get("summary") or item.get("content") or []
            self.texts.append(in_think_tags(part["text"] for part in summaries))
        elif kind == "function_call":
            if item.get("namespace"):
                raise NotImplementedError("a function call with `namespace` has no counterpart in Chat Completions")
            function = {"name": item["name"], "arguments": item["arguments"]}
            self.calls.append({"id": item["call_id"], "type": "function", "function": function})
        elif kind == "message" and item.get("role") == "assistant":
            _refuse_phase(item)
            self._take_content(item.get("content"))
            self.calls.extend(item.get("tool_calls") or [])
        else:
            return False
        self.begun = True
        return True

    def _take_content(self, content: str | list[dict[str, Any]] | None) -> None:
        if isinstance(content, str):
            self.texts.append(content)
            return
        for part in content or []:
            kind = part.get("type")
            if kind in ("output_text", "input_text", "text"):
                self.texts.append(part["text"])
            elif kind == "refusal":
                self.refusals.append(part["refusal"])
            else:
                raise NotImplementedError(f"a part of type `{kind}` in an assistant message has no counterpart")

    def finish(self, messages: list[dict[str, Any]]) -> AssistantTurn:
        """Append the message, if anything was collected, and return an empty turn."""
        if not self.begun:
            return self
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self.texts) or None}
        if self.refusals:
            message["refusal"] = "".join(self.refusals)
        if self.calls:
            message["tool_calls"] = self.calls
        messages.append(message | self.token_fields)
        return AssistantTurn()


def _plain_message(item: dict[str, Any]) -> dict[str, Any]:
    kind = item.get("type", "message")
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item["call_id"], "content": _tool_content(item["output"])}
    if kind != "message":
        raise NotImplementedError(f"an input item of type `{kind}` has no counterpart in Chat Completions")
    if item["role"] == "tool":
        return {"role": "tool", "tool_call_id": item.get("tool_call_id", ""), "content": item.get("content") or ""}
    _refuse_phase(item)
    content = item["content"]
    return {"role": item["role"], "content": content if isinstance(content, str) else [_part(part) for part in content]}


def _part(part: dict[str, Any]) -> dict[str, Any]:
    kind = part.get("type")
    if kind in ("input_text", "text", "output_text"):
        return {"type": "text", "text": part["text"]}
    if kind == "input_image":
        detail = part.get("detail") or "auto"
        if part.get("file_id") or not part.get("image_url"):
            raise NotImplementedError("an image by `file_id` has no counterpart in Chat Completions: give `image_url`")
        if detail == "original":
            raise NotImplementedError("an image with detail `original` has no counterpart in Chat Completions")
        return {"type": "image_url", "image_url": {"url": part["image_url"], "detail": detail}}
    if kind == "input_video":
        return {"type": "video_url", "video_url": {"url": video_url_of(part)}}
    raise NotImplementedError(f"a content part of type `{kind}` has no counterpart in Chat Completions")


def _tool_content(output: str | list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if isinstance(output, str):
        return output
    for part in output:
        if part.get("type") != "input_text":
            raise NotImplementedError(f"a part of type `{part.get('type')}` in a tool's output has no counterpart")
    return [{"type": "text", "text": part["text"]} for part in output]


def _refuse_phase(item: dict[str, Any]) -> None:
    if item.get("phase"):
        raise NotImplementedError("a message with `phase` has no counterpart in Chat Completions")


def _with_instructions(instructions: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One system message first: the instructions, then the text of the system and developer messages that led."""
    texts = [instructions]
    for message in messages:
        text = _text_only(message["content"]) if message["role"] in ("system", "developer") else None
        if text is None:
            break
        texts.append(text)
    return [{"role": "system", "content": "\n\n".join(texts)}, *messages[len(texts) - 1 :]]


def _text_only(content: str | list[dict[str, Any]]) -> str | None:
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content) if all(part["type"] == "text" for part in content) else None


def _reasoning_and_text(reasoning: dict[str, Any], text: dict[str, Any]) -> dict[str, Any]:
    chat: dict[str, Any] = {}
    for key, value in reasoning.items():
        if value is None:
            continue
        if key != "effort":
            raise NotImplementedError(f"`reasoning.{key}` has no counterpart in Chat Completions")
        chat["reasoning_effort"] = value
    for key, value in text.items():
        if value is None or (key == "format" and value == {"type": "text"}):
            continue
        if key != "verbosity":
            raise NotImplementedError(f"`text.{key}` has no counterpart in Chat Completions")
        chat["verbosity"] = value
    return chat


def _tools(given: dict[str, Any]) -> dict[str, Any]:
    choice = given.get("tool_choice")
    if not given.get("tools"):
        if choice not in (None, "auto", "none"):
            raise ValueError(f"tool_choice {choice!r} demands a tool, but the request has no tools")
        return {}
    chat: dict[str, Any] = {"tools": [_nested(tool) for tool in given["tools"]]}
    if choice is not None:
        chat["tool_choice"] = choice if isinstance(choice, str) else _nested_choice(choice)
    if given.get("parallel_tool_calls") is not None:
        chat["parallel_tool_calls"] = given["parallel_tool_calls"]
    return chat


def _nested(tool: dict[str, Any]) -> dict[str, Any]:
    kind = tool.get("type")
    if kind not in ("function", "custom"):
        raise NotImplementedError(f"a tool of type `{kind}` has no counterpart in Chat Completions")
    if tool.get("defer_loading"):
        raise NotImplementedError("a tool with `defer_loading` has no counterpart in Chat Completions")
    fields = {key: value for key, value in tool.items() if value is not None and key not in ("type", "defer_loading")}
    return {"type": kind, kind: fields}


def _nested_choice(choice: dict[str, Any]) -> dict[str, Any]:
    kind = choice.get("type")
    if kind in ("function", "custom"):
        return {"type": kind, kind: {"name": choice["name"]}}
    if kind == "allowed_tools":
        tools = [_nested(tool) for tool in choice["tools"]]
        return {"type": kind, kind: {"mode": choice["mode"], "tools": tools}}
    raise NotImplementedError(f"a tool choice of type `{kind}` has no counterpart in Chat Completions")
