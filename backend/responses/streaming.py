"""Streaming on `/v1/responses`: what streaming clients send, made fit for a model server, and answers replayed as events.

Importable as `nemo_gym.responses_streaming`. Streaming clients are coding agents that send more than the strict schema takes: tools
in namespaces, tools among the input items, keys of their own. What no backend could use is left out and named in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeVar
from uuid import uuid4

from pydantic import BaseModel, TypeAdapter, ValidationError

from backend.responses.items import NeMoGymOpenItem, NeMoGymResponseInputItem
from backend.responses.params import NeMoGymResponseCreateParamsNonStreaming
from backend.responses.sse import event_text

__all__ = [
    "sanitize_streaming_responses_body",
    "synthesize_responses_failure_sse",
    "synthesize_responses_sse",
    "validate_streaming_responses_params",
]

logger = logging.getLogger(__name__)

NamespaceMap = dict[str, tuple[str, str]]
"""Flattened tool name -> (namespace, name)."""
Params = TypeVar("Params", bound=NeMoGymResponseCreateParamsNonStreaming)

_STREAMING_KEYS = frozenset({"stream", "stream_options"})
_ITEM = TypeAdapter[Any](NeMoGymResponseInputItem)
# The types of the Responses API (openai 2.44.0); anything else is of the client's own making.
_ITEM_TYPES = frozenset({
    "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
    "mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "file_search_call", "web_search_call",
    "computer_call", "computer_call_output", "image_generation_call", "code_interpreter_call", "local_shell_call",
    "local_shell_call_output", "apply_patch_call", "apply_patch_call_output", "shell_call", "shell_call_output",
    "tool_search_call", "tool_search_output", "compaction", "compaction_trigger",
})  # fmt: skip
_TOOL_TYPES = frozenset({
    "function", "custom", "file_search", "computer", "computer_use_preview", "web_search", "web_search_2025_08_26",
    "web_search_preview", "web_search_preview_2025_03_11", "mcp", "code_interpreter", "image_generation", "local_shell",
    "shell", "tool_search", "apply_patch",
})  # fmt: skip
_NAMED_TOOLS = frozenset({"function", "custom"})
_NESTED_KEYS = {"reasoning": {"context", "effort", "generate_summary", "summary"}, "text": {"format", "verbosity"}}


def sanitize_streaming_responses_body(
    body: dict[str, Any], params_class: type[BaseModel] = NeMoGymResponseCreateParamsNonStreaming
) -> tuple[dict[str, Any], NamespaceMap]:
    """A streaming request as one that does not stream, and the names that were flattened; `body` itself stays as it is.

    Dropped: `stream`, `stream_options`, keys that `params_class` does not know, tools and input items of no known form. Tools of a
    `namespace` become functions `<namespace>__<name>`, in tools, calls and the tool choice alike; functions in `additional_tools` items
    become tools; the system and developer messages that lead go to the end of `instructions`, joined by blank lines.
    """
    known = params_class.model_fields.keys() - _STREAMING_KEYS
    clean = {key: value for key, value in body.items() if key in known}
    names: NamespaceMap = {}
    dropped: list[str] = sorted(body.keys() - known - _STREAMING_KEYS)
    tools = _flat_tools(_list(clean.get("tools")), names, dropped)
    if isinstance(clean.get("input"), list):
        items, late_tools = _split_items(clean["input"], dropped)
        tools = _with_late_tools(tools, _flat_tools(late_tools, names, dropped), dropped)
        clean |= _hoisted_instructions(clean.get("instructions"), [_flat_item(item) for item in items])
    if "tools" in clean or tools:
        clean["tools"] = tools
    if isinstance(clean.get("tool_choice"), dict):
        clean["tool_choice"] = _flat_name(clean["tool_choice"])
    for key, allowed in _NESTED_KEYS.items():
        if isinstance(clean.get(key), dict):
            dropped += [f"{key}.{name}" for name in clean[key] if name not in allowed]
            clean[key] = {name: value for name, value in clean[key].items() if name in allowed}
    if dropped:
        logger.warning("left out of a streaming request, because no model server takes it: %s", ", ".join(dropped))
    return clean, names


def validate_streaming_responses_params(
    body: dict[str, Any],
    params_class: type[Params] = NeMoGymResponseCreateParamsNonStreaming,  # type: ignore[assignment]
) -> Params:
    """A sanitised body as request parameters. Fields that are forbidden are pruned; any other mistake raises pydantic's error."""
    try:
        return params_class.model_validate(body)
    except ValidationError as error:
        mistakes = error.errors(include_url=False, include_context=False, include_input=False)
        if any(mistake["type"] != "extra_forbidden" for mistake in mistakes):
            raise
        pruned = {key: value for key, value in body.items() if all(mistake["loc"] != (key,) for mistake in mistakes)}
        return params_class.model_validate(pruned)


def synthesize_responses_sse(response_json: dict[str, Any], ns_map: Mapping[str, tuple[str, str]] | None = None) -> Iterator[str]:
    """The events of a finished response: created, one per output item, completed. Flattened calls get their namespace back."""
    output = [_with_namespace(item, ns_map or {}) for item in response_json.get("output") or []]
    begun = response_json | {"status": "in_progress", "output": []}
    yield _event("response.created", response=begun)
    for index, item in enumerate(output):
        yield _event("response.output_item.done", output_index=index, item=item)
    yield _event("response.completed", response=response_json | {"output": output})


def synthesize_responses_failure_sse(message: str, *, code: str = "server_error") -> Iterator[str]:
    """The events of a call that failed: created, then failed with `error`."""
    response: dict[str, Any] = {"id": f"resp_{uuid4().hex}", "object": "response", "output": []}
    error = {"code": code, "message": message}
    yield _event("response.created", response=response | {"status": "in_progress", "error": error})
    yield _event("response.failed", response=response | {"status": "failed", "error": error})


def _event(kind: str, **fields: Any) -> str:
    return event_text({"type": kind, **fields}, kind)


def _flat_tools(tools: list[Any], names: NamespaceMap, dropped: list[str]) -> list[dict[str, Any]]:
    """The usable tools, those of namespaces flattened; notes the names in `names`, and what is left out in `dropped`."""
    flat: list[dict[str, Any]] = []
    for tool in tools:
        if isinstance(tool, dict) and tool.get("type") == "namespace" and isinstance(tool.get("name"), str):
            for inner in _list(tool.get("tools")):
                name = inner.get("name") if isinstance(inner, dict) and inner.get("type") == "function" else None
                if not isinstance(name, str):
                    dropped.append(f"tool of type {_type_of(inner)!r} in namespace {tool['name']!r}")
                    continue
                flattened = f"{tool['name']}__{name}"
                names[flattened] = (tool["name"], name)
                flat.append({**inner, "name": flattened})
        elif _usable_tool(tool):
            flat.append(tool)
        else:
            dropped.append(f"tool of type {_type_of(tool)!r}")
    return flat


def _usable_tool(tool: Any) -> bool:
    if not isinstance(tool, dict) or not _is_one_of(tool.get("type"), _TOOL_TYPES):
        return False
    return tool["type"] not in _NAMED_TOOLS or isinstance(tool.get("name"), str)


def _with_late_tools(tools: list[dict[str, Any]], late: list[dict[str, Any]], dropped: list[str]) -> list[dict[str, Any]]:
    """Functions that came among the input items behind the others, each name once."""
    taken = {tool.get("name") for tool in tools}
    for tool in late:
        if tool["type"] != "function":
            dropped.append(f"tool of type {tool['type']!r} in additional_tools")
        elif tool["name"] not in taken:
            taken.add(tool["name"])
            tools = [*tools, tool]
    return tools


def _split_items(items: list[Any], dropped: list[str]) -> tuple[list[dict[str, Any]], list[Any]]:
    """The usable items, without the fields that theirs does not have, and the tools that came among them."""
    kept: list[dict[str, Any]] = []
    tools: list[Any] = []
    for item in items:
        if isinstance(item, dict) and item.get("type") == "additional_tools":
            tools += _list(item.get("tools"))
            continue
        clean = _usable_item(item)
        if clean is None:
            dropped.append(f"input item of type {_type_of(item)!r}")
        else:
            kept.append(clean)
    return kept, tools


def _usable_item(item: Any) -> dict[str, Any] | None:
    if not isinstance(item, dict) or not _is_one_of(item.get("type", "message"), _ITEM_TYPES):
        return None
    try:
        model = _ITEM.validate_python(item)
    except ValidationError:
        return None
    if isinstance(model, NeMoGymOpenItem) or not type(model).model_fields.keys() >= {"type"}:
        return item
    return {key: value for key, value in item.items() if key in type(model).model_fields}


def _flat_item(item: dict[str, Any]) -> dict[str, Any]:
    return _flat_name(item) if item.get("type") == "function_call" else item


def _flat_name(reference: dict[str, Any]) -> dict[str, Any]:
    """A call or a tool choice whose `namespace` has become part of its name."""
    namespace, name = reference.get("namespace"), reference.get("name")
    if not namespace or not isinstance(name, str):
        return reference
    return {key: value for key, value in reference.items() if key != "namespace"} | {"name": f"{namespace}__{name}"}


def _hoisted_instructions(instructions: Any, items: list[dict[str, Any]]) -> dict[str, Any]:
    """`input` without the system and developer messages that led it, and `instructions` with their text at the end."""
    texts: list[str] = []
    for item in items:
        if item.get("type", "message") != "message" or item.get("role") not in ("system", "developer"):
            break
        texts.append(_text_of(item.get("content")))
    rest: dict[str, Any] = {"input": items[len(texts) :]}
    if not texts:
        return rest
    first = [instructions] if isinstance(instructions, str) and instructions else []
    return rest | {"instructions": "\n\n".join([*first, *(text for text in texts if text)])}


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in _list(content) if isinstance(part, dict) and isinstance(part.get("text"), str))


def _with_namespace(item: Any, names: Mapping[str, tuple[str, str]]) -> Any:
    if not isinstance(item, dict) or item.get("type") != "function_call" or not _is_one_of(item.get("name"), names):
        return item
    namespace, name = names[item["name"]]
    return {**item, "name": name, "namespace": namespace}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_one_of(value: Any, names: Collection[str]) -> bool:
    return isinstance(value, str) and value in names


def _type_of(value: Any) -> Any:
    return value.get("type") if isinstance(value, dict) else type(value).__name__
