"""Between the Responses API and Chat Completions, in both directions.

Importable as `nemo_gym.responses_converter`; existing tests replace `uuid4` here to get ids that they know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from pydantic import BaseModel

from backend.responses.base import TOKEN_FIELDS
from backend.responses.chat import (
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymChatCompletionMessage,
    NeMoGymChatCompletionMessageCustomToolCall,
    NeMoGymChatCompletionMessageForTraining,
    NeMoGymChoice,
    NeMoGymCompletionUsage,
)
from backend.responses.converter_state import ResponsesConverterState
from backend.responses.items import (
    NeMoGymOpenItem,
    NeMoGymResponseFunctionToolCall,
    NeMoGymResponseFunctionToolCallForTraining,
    NeMoGymResponseOutputMessage,
    NeMoGymResponseOutputMessageForTraining,
    NeMoGymResponseReasoningItem,
    NeMoGymResponseReasoningItemForTraining,
)
from backend.responses.params import NeMoGymResponseCreateParamsNonStreaming
from backend.responses.parts import NeMoGymResponseOutputRefusal, NeMoGymResponseOutputText, NeMoGymSummary
from backend.responses.response import NeMoGymIncompleteDetails, NeMoGymResponse
from backend.responses.to_chat import (
    chat_completion_body,
    chat_messages_from_items,
    chat_params_from_responses,
    in_think_tags,
    without_empty_tools,
    without_row_extra,
)
from backend.responses.usage import (
    NeMoGymResponseInputTokensDetails,
    NeMoGymResponseOutputTokensDetails,
    NeMoGymResponseUsage,
)

__all__ = [
    "ResponsesConverter",
    "ResponsesConverterState",
    "VLLMConverter",
    "VLLMConverterResponsesToChatCompletionsState",
    "chat_completion_body",
    "split_responses_input_output_items",
    "without_empty_tools",
    "without_row_extra",
]

_THOUGHT = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_INCOMPLETE_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}
_ECHOED = (
    "background",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "previous_response_id",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "temperature",
    "text",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
)
_TRAINING_CLASSES: dict[type[BaseModel], type[BaseModel]] = {
    NeMoGymResponseFunctionToolCall: NeMoGymResponseFunctionToolCallForTraining,
    NeMoGymResponseOutputMessage: NeMoGymResponseOutputMessageForTraining,
    NeMoGymResponseReasoningItem: NeMoGymResponseReasoningItemForTraining,
}
_NOT_GENERATED = frozenset({"message", "function_call_output"})


class ResponsesConverter(BaseModel):
    """Converts requests and answers; stateless.

    `return_token_id_information`: token fields of input items are sent along with the assistant messages.
    `uses_reasoning_parser`: `<think>…</think>` in an answer's text is the model's reasoning, not part of its text.
    """

    return_token_id_information: bool
    uses_reasoning_parser: bool = True

    def responses_to_chat_completion_create_params(
        self, responses_create_params: NeMoGymResponseCreateParamsNonStreaming
    ) -> NeMoGymChatCompletionCreateParamsNonStreaming:
        """A Responses request as a Chat-Completions request.

        Raises NotImplementedError for what Chat Completions cannot express, ValueError for a contradictory tool choice.
        """
        return chat_params_from_responses(responses_create_params, with_token_fields=self.return_token_id_information)

    def responses_items_to_chat_completion_messages(self, items: str | Iterable[Any]) -> list[dict[str, Any]]:
        """Input items as chat messages."""
        return chat_messages_from_items(items, with_token_fields=self.return_token_id_information)

    def chat_completion_to_response(
        self, responses_create_params: NeMoGymResponseCreateParamsNonStreaming, chat_completion: NeMoGymChatCompletion
    ) -> NeMoGymResponse:
        """The first choice of an answer as a response to the request; the request's `model` must be set."""
        if not responses_create_params.model:
            raise ValueError("the request's `model` must be set before an answer is converted")
        choice = chat_completion.choices[0]
        reason = _INCOMPLETE_REASONS.get(choice.finish_reason or "")
        parallel = responses_create_params.parallel_tool_calls
        return NeMoGymResponse.model_validate(
            {key: getattr(responses_create_params, key) for key in _ECHOED}
            | {
                "id": f"resp_{uuid4().hex}",
                "created_at": chat_completion.created,
                "model": responses_create_params.model,
                "output": self.postprocess_chat_response(choice),
                "parallel_tool_calls": True if parallel is None else parallel,
                "tool_choice": responses_create_params.tool_choice,
                "tools": responses_create_params.tools,
                "status": "incomplete" if reason else "completed",
                "incomplete_details": NeMoGymIncompleteDetails(reason=reason) if reason else None,
                "usage": _usage_from_chat(chat_completion.usage),
            }
        )

    def postprocess_chat_response(self, choice: NeMoGymChoice) -> list[Any]:
        """The output items of one choice: reasoning, text, then calls. An empty answer is one message with empty text."""
        return self.output_items_from_message(choice.message)

    def output_items_from_message(self, message: NeMoGymChatCompletionMessage) -> list[Any]:
        """Output items of an assistant message; token fields go to the last one."""
        text, thoughts = self._text_and_thoughts(message)
        items: list[Any] = []
        if thoughts:
            summary = [NeMoGymSummary(text=thought) for thought in thoughts]
            items.append(NeMoGymResponseReasoningItem(id=f"rs_{uuid4().hex}", summary=summary))
        if message.refusal:
            items.append(_output_message([NeMoGymResponseOutputRefusal(refusal=message.refusal)]))
        calls = [_call_item(call) for call in message.tool_calls or []]
        if text or not (items or calls):
            items.append(_output_message([NeMoGymResponseOutputText(text=text, annotations=[])]))
        items.extend(calls)
        if isinstance(message, NeMoGymChatCompletionMessageForTraining):
            items[-1] = _for_training(items[-1], message)
        return items

    def postprocess_assistant_message_dict(self, message_dict: dict[str, Any]) -> list[Any]:
        """Output items of an assistant message of a request or an answer, with text or a list of parts."""
        message = {**message_dict, **_joined_parts(message_dict.get("content"))}
        return self.output_items_from_message(NeMoGymChoice.model_validate({"message": message}).message)

    def chat_completion_to_responses_create_params(
        self, chat_completion_create_params: NeMoGymChatCompletionCreateParamsNonStreaming
    ) -> NeMoGymResponseCreateParamsNonStreaming:
        """A Chat-Completions request as a Responses request. Of the two limits only `max_completion_tokens` counts."""
        given = chat_completion_create_params.model_dump(exclude_unset=True)
        params: dict[str, Any] = {"input": self.chat_completions_messages_to_responses_items(given["messages"])}
        same = (
            "metadata",
            "model",
            "parallel_tool_calls",
            "service_tier",
            "store",
            "temperature",
            "top_logprobs",
            "top_p",
            "user",
        )
        params |= {key: given[key] for key in same if given.get(key) is not None}
        if given.get("max_completion_tokens") is not None:
            params["max_output_tokens"] = given["max_completion_tokens"]
        if given.get("reasoning_effort") is not None:
            params["reasoning"] = {"effort": given["reasoning_effort"]}
        if given.get("verbosity") is not None:
            params["text"] = {"verbosity": given["verbosity"]}
        if given.get("tools"):
            params["tools"] = [_flat_tool(tool) for tool in given["tools"]]
            if given.get("tool_choice") is not None:
                params["tool_choice"] = _flat_choice(given["tool_choice"])
        return NeMoGymResponseCreateParamsNonStreaming.model_validate(params)

    def chat_completions_messages_to_responses_items(self, messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Chat messages as input items (dicts)."""
        items: list[dict[str, Any]] = []
        for message in messages:
            role = message["role"]
            if role == "assistant":
                made = self.postprocess_assistant_message_dict(message)
                items.extend(item.model_dump(exclude_none=True) for item in made)
            elif role == "tool":
                output = _input_content(message["content"])
                items.append(
                    {
                        "type": "function_call_output",
                        "call_id": message["tool_call_id"],
                        "output": output,
                        "status": "completed",
                    }
                )
            else:
                items.append({"type": "message", "role": role, "content": _input_content(message["content"])})
        return items

    def _text_and_thoughts(self, message: NeMoGymChatCompletionMessage) -> tuple[str, list[str]]:
        text = message.content or ""
        extras = message.model_extra or {}
        separate = extras.get("reasoning_content") or extras.get("reasoning")
        thoughts = [separate] if isinstance(separate, str) and separate else []
        if self.uses_reasoning_parser:
            inline, text = self._extract_reasoning_from_content(text)
            thoughts += inline
        return text, thoughts

    def _extract_reasoning_from_content(self, content: str) -> tuple[list[str], str]:
        return _THOUGHT.findall(content), _THOUGHT.sub("", content)

    def _wrap_reasoning_in_think_tags(self, texts: Iterable[str]) -> str:
        return in_think_tags(texts)


VLLMConverter = ResponsesConverter
VLLMConverterResponsesToChatCompletionsState = ResponsesConverterState


def split_responses_input_output_items(items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """A trajectory cut in two: what was given, and everything from the first thing on that a model generated."""
    for index, item in enumerate(items):
        value = item.model_dump(exclude_unset=False) if isinstance(item, BaseModel) else item
        if value.get("role") == "assistant" or (value.get("type") or "message") not in _NOT_GENERATED:
            return list(items[:index]), list(items[index:])
    return list(items), []


def _usage_detail(usage: Any, detail_group: str, detail_name: str, *top_level_aliases: str) -> int | None:
    """A count from the usage's details, else from one of the alternative top-level names; None when unknown or negative.

    `usage` and its details are objects or mappings.
    """
    candidates = [_field(_field(usage, detail_group), detail_name), *(_field(usage, name) for name in top_level_aliases)]
    return next((count for count in candidates if isinstance(count, int) and not isinstance(count, bool) and count >= 0), None)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _usage_from_chat(usage: NeMoGymCompletionUsage | None) -> NeMoGymResponseUsage | None:
    if usage is None:
        return None
    cached = _usage_detail(usage, "prompt_tokens_details", "cached_tokens", "cached_input_tokens", "cache_read_input_tokens")
    reasoning = _usage_detail(usage, "completion_tokens_details", "reasoning_tokens", "reasoning_output_tokens")
    return NeMoGymResponseUsage(
        input_tokens=usage.prompt_tokens,
        input_tokens_details=NeMoGymResponseInputTokensDetails(cached_tokens=cached),
        output_tokens=usage.completion_tokens,
        output_tokens_details=NeMoGymResponseOutputTokensDetails(reasoning_tokens=reasoning),
        total_tokens=usage.total_tokens,
    )


def _output_message(content: list[Any]) -> NeMoGymResponseOutputMessage:
    return NeMoGymResponseOutputMessage(
        id=f"msg_{uuid4().hex}", content=content, role="assistant", status="completed", type="message"
    )


def _call_item(call: Any) -> NeMoGymResponseFunctionToolCall | NeMoGymOpenItem:
    if isinstance(call, NeMoGymChatCompletionMessageCustomToolCall):
        fields = {"type": "custom_tool_call", "id": call.id, "call_id": call.id}
        return NeMoGymOpenItem.model_validate({**call.custom.model_dump(), **fields})
    return NeMoGymResponseFunctionToolCall(
        arguments=call.function.arguments,
        call_id=call.id,
        name=call.function.name,
        type="function_call",
        id=call.id,
        status="completed",
    )


def _for_training(item: BaseModel, message: NeMoGymChatCompletionMessageForTraining) -> BaseModel:
    tokens = {key: getattr(message, key) for key in TOKEN_FIELDS}
    return _TRAINING_CLASSES.get(type(item), type(item)).model_validate({**item.model_dump(), **tokens})


def _joined_parts(content: Any) -> dict[str, Any]:
    """The content of an assistant message as fields of a message whose content is text."""
    if content is None or isinstance(content, str):
        return {"content": content}
    joined = {"text": "", "refusal": ""}
    for part in content:
        kind = part["type"]
        if kind not in joined:
            raise NotImplementedError(f"a part of type `{kind}` in an assistant message has no counterpart in the Responses API")
        joined[kind] += part[kind]
    return {"content": joined["text"], **({"refusal": joined["refusal"]} if joined["refusal"] else {})}


def _input_content(content: str | list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    return content if isinstance(content, str) else [_input_part(part) for part in content]


def _input_part(part: dict[str, Any]) -> dict[str, Any]:
    kind = part["type"]
    if kind == "text":
        return {"type": "input_text", "text": part["text"]}
    if kind == "image_url":
        image = part["image_url"]
        return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail") or "auto"}
    if kind == "video_url":
        return {"type": "input_video", "video_url": part["video_url"]}
    raise NotImplementedError(f"a content part of type `{kind}` has no counterpart in the Responses API")


def _flat_tool(tool: dict[str, Any]) -> dict[str, Any]:
    kind = tool["type"]
    defaults = {"parameters": None, "strict": None} if kind == "function" else {}
    return {"type": kind, **defaults, **tool[kind]}


def _flat_choice(choice: str | dict[str, Any]) -> str | dict[str, Any]:
    if isinstance(choice, str):
        return choice
    kind = choice["type"]
    if kind == "allowed_tools":
        return {"type": kind, "mode": choice[kind]["mode"], "tools": [_flat_reference(tool) for tool in choice[kind]["tools"]]}
    return _flat_reference(choice)


def _flat_reference(reference: dict[str, Any]) -> dict[str, Any]:
    return {"type": reference["type"], **reference[reference["type"]]}
