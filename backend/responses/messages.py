"""Between Anthropic's Messages API and the Responses API: a request in, an answer out, the answer as a stream.

What the Responses API cannot express raises `NotImplementedError` naming it. `stop_sequences`, `top_k`, `thinking` and `metadata` are
settings of another service and are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from backend.io.json_codec import dumps, loads
from backend.responses.sse import event_text

_IMAGE_TYPES = ("image/gif", "image/jpeg", "image/png", "image/webp")
_SAME_IN_BOTH = ("model", "temperature", "top_p")
_STOP_REASONS = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
_ANY_OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


def responses_body_from_messages(body: dict[str, Any]) -> dict[str, Any]:
    """A Messages request as the body of a Responses request.

    Raises NotImplementedError for blocks and tool choices without a counterpart, and ValueError for what is no Messages request.
    """
    params: dict[str, Any] = {"input": [item for message in _objects(body, "messages") for item in _items(message)]}
    params |= {key: body[key] for key in _SAME_IN_BOTH if body.get(key) is not None}
    if body.get("system"):
        params["instructions"] = _joined_text(body["system"], "system")
    if body.get("max_tokens") is not None:
        params["max_output_tokens"] = body["max_tokens"]
    if body.get("tools"):
        params["tools"] = [_tool(tool) for tool in _objects(body, "tools")]
    if body.get("tool_choice"):
        params["tool_choice"] = _tool_choice(body["tool_choice"])
    return params


def message_from_response(response: dict[str, Any], model: str | None = None) -> dict[str, Any]:
    """A response object as a Messages answer, under the name of the model that was asked for.

    Counts that the endpoint did not report are null. Raises ValueError for a call whose arguments are no JSON object.
    """
    content = [block for item in response.get("output") or [] for block in _blocks(item)]
    usage = response.get("usage") or {}
    return {
        "id": response["id"],
        "type": "message",
        "role": "assistant",
        "model": model or response.get("model"),
        "content": content,
        "stop_reason": _stop_reason(response, content),
        "stop_sequence": None,
        "usage": {"input_tokens": usage.get("input_tokens"), "output_tokens": usage.get("output_tokens")},
    }


def message_sse(message: dict[str, Any]) -> Iterator[str]:
    """The events of a finished message: each block in one delta."""
    yield _event("message_start", message=message | {"content": []})
    for index, block in enumerate(message["content"]):
        shell, delta = _shell_and_delta(block)
        yield _event("content_block_start", index=index, content_block=shell)
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage={"output_tokens": message["usage"]["output_tokens"]})
    yield _event("message_stop")


def _event(kind: str, **fields: Any) -> str:
    return event_text({"type": kind, **fields}, kind)


def _objects(body: dict[str, Any], key: str) -> list[dict[str, Any]]:
    values = body.get(key) or []
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise ValueError(f"`{key}` of a Messages request must be a list of objects")
    return values


def _items(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The items of one message: text and images that stand in a row become one message, every other block an item of its own."""
    role, content = message.get("role"), message.get("content")
    if isinstance(content, str) or content is None:
        yield {"type": "message", "role": role, "content": content or ""}
        return
    parts: list[dict[str, Any]] = []
    for block in _objects(message, "content"):
        kind = block.get("type")
        if kind in ("text", "image"):
            parts.append(block)
            continue
        if parts:
            yield _message(role, parts)
            parts = []
        yield _item(kind, block)
    if parts:
        yield _message(role, parts)


def _message(role: Any, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    # What the model said itself goes back as plain text: endpoints refuse `input_text` in an assistant's message.
    if all(block["type"] == "text" for block in blocks) and (len(blocks) == 1 or role == "assistant"):
        return {"type": "message", "role": role, "content": "".join(block.get("text", "") for block in blocks)}
    return {"type": "message", "role": role, "content": [_part(block) for block in blocks]}


def _part(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "text":
        return {"type": "input_text", "text": block.get("text", "")}
    source = block.get("source") or {}
    if source.get("type") != "base64":
        raise NotImplementedError(f"an image by `{source.get('type')}` has no counterpart: send it as base64")
    if source.get("media_type") not in _IMAGE_TYPES:
        raise ValueError(f"image type {source.get('media_type')!r} is none of {', '.join(_IMAGE_TYPES)}")
    url = f"data:{source['media_type']};base64,{source.get('data', '')}"
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _item(kind: Any, block: dict[str, Any]) -> dict[str, Any]:
    if kind == "tool_use":
        arguments = dumps(block.get("input") or {}).decode()
        call_id = _field(block, "id")
        call = {"type": "function_call", "name": _field(block, "name"), "arguments": arguments}
        return call | {"call_id": call_id, "id": call_id, "status": "completed"}
    if kind == "tool_result":
        output = _joined_text(block.get("content") or "", "tool_result")
        return {"type": "function_call_output", "call_id": _field(block, "tool_use_id"), "output": output}
    if kind == "thinking":
        summary = [{"type": "summary_text", "text": block.get("thinking", "")}]
        item = {"type": "reasoning", "id": f"rs_{uuid4().hex}", "summary": summary}
        return item | ({"encrypted_content": block["signature"]} if block.get("signature") else {})
    raise NotImplementedError(f"a content block of type `{kind}` has no counterpart in the Responses API")


def _field(block: dict[str, Any], key: str) -> Any:
    if not block.get(key):
        raise ValueError(f"a `{block.get('type')}` of a Messages request needs `{key}`")
    return block[key]


def _joined_text(content: Any, place: str) -> str:
    """Text, or the texts of text blocks, each on a line of its own."""
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for block in content:
        if not isinstance(block, dict) or block.get("type") != "text":
            kind = block.get("type") if isinstance(block, dict) else type(block).__name__
            raise NotImplementedError(f"a block of type `{kind}` in `{place}` has no counterpart in the Responses API")
        texts.append(block.get("text", ""))
    return "\n".join(texts)


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    parameters = tool.get("input_schema") or _ANY_OBJECT
    function = {"type": "function", "name": tool.get("name"), "parameters": parameters, "strict": False}
    return function | ({"description": tool["description"]} if tool.get("description") else {})


def _tool_choice(choice: Any) -> str | dict[str, Any]:
    kind = choice.get("type") if isinstance(choice, dict) else choice
    if kind == "tool":
        return {"type": "function", "name": _field(choice, "name")}
    if kind in ("auto", "none", "any"):
        return "required" if kind == "any" else str(kind)
    raise NotImplementedError(f"a tool choice of type `{kind}` has no counterpart in the Responses API")


def _blocks(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = item.get("type")
    if kind == "message":
        for part in item.get("content") or []:
            yield {"type": "text", "text": part.get("text") or part.get("refusal") or ""}
    elif kind == "reasoning":
        signature = item.get("encrypted_content") or ""
        for part in item.get("summary") or item.get("content") or []:
            yield {"type": "thinking", "thinking": part.get("text") or "", "signature": signature}
    elif kind == "function_call":
        yield {"type": "tool_use", "id": item["call_id"], "name": item["name"], "input": _arguments(item)}


def _arguments(call: dict[str, Any]) -> dict[str, Any]:
    text = call.get("arguments") or "{}"
    try:
        value = loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ValueError(f"the arguments of the call of `{call['name']}` are not a JSON object, as tool_use needs: {text[:200]}")
    return value


def _stop_reason(response: dict[str, Any], content: list[dict[str, Any]]) -> str:
    reason = (response.get("incomplete_details") or {}).get("reason")
    if reason in _STOP_REASONS:
        return _STOP_REASONS[reason]
    return "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"


def _shell_and_delta(block: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """How a block begins in a stream, and what then fills it."""
    kind = block["type"]
    if kind == "thinking":
        return {"type": kind, "thinking": ""}, {"type": "thinking_delta", "thinking": block["thinking"]}
    if kind == "tool_use":
        partial = dumps(block["input"]).decode()
        return {**block, "input": {}}, {"type": "input_json_delta", "partial_json": partial}
    return {"type": kind, "text": ""}, {"type": "text_delta", "text": block["text"]}
