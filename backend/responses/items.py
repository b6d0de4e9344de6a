"""Items of `input` and `output`.

One union for both directions, because agents return whole trajectories: the field `type` names the only member that is tried, so
a wrong item reports its own mistakes and not those of thirty others. Types without a class of their own are kept as they are.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Tag, model_validator
from pydantic_core import PydanticCustomError

from backend.responses.base import OpenObject, SchemaModel, TaggedModel, TokenIDLogProbMixin, carries_token_fields
from backend.responses.parts import (
    NeMoGymInputContent,
    NeMoGymReasoningContent,
    NeMoGymResponseInputPart,
    NeMoGymResponseOutputPart,
    NeMoGymSummary,
)

ItemStatus = Literal["in_progress", "completed", "incomplete"]
Phase = Literal["commentary", "final_answer"]


class NeMoGymEasyInputMessage(SchemaModel):
    content: NeMoGymInputContent
    role: Literal["user", "assistant", "system", "developer"]
    type: Literal["message"] = "message"
    phase: Phase | None = None


class NeMoGymMessage(TaggedModel):
    content: list[NeMoGymResponseInputPart]
    role: Literal["user", "system", "developer"]
    status: ItemStatus = "completed"
    type: Literal["message"] = "message"


class NeMoGymResponseOutputMessage(TaggedModel):
    id: str
    content: list[NeMoGymResponseOutputPart]
    role: Literal["assistant"] = "assistant"
    status: ItemStatus = "completed"
    type: Literal["message"] = "message"
    phase: Phase | None = None


class NeMoGymResponseFunctionToolCall(TaggedModel):
    arguments: str
    """JSON text, as the model wrote it; may be invalid."""
    call_id: str
    name: str
    type: Literal["function_call"] = "function_call"
    id: str | None = None
    status: ItemStatus | None = None
    namespace: str | None = None


class NeMoGymFunctionCallOutput(TaggedModel):
    call_id: str
    output: NeMoGymInputContent
    type: Literal["function_call_output"] = "function_call_output"
    id: str | None = None
    status: ItemStatus | None = None


class NeMoGymResponseReasoningItem(TaggedModel):
    """Reasoning of the model. Has no `status`: endpoints send it but refuse it when the item is sent back."""

    id: str
    summary: list[NeMoGymSummary]
    type: Literal["reasoning"] = "reasoning"
    encrypted_content: str | None = None
    content: list[NeMoGymReasoningContent] | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_status(cls, item: Any) -> Any:
        if isinstance(item, dict) and "status" in item:
            return {key: value for key, value in item.items() if key != "status"}
        return item


class NeMoGymEasyInputMessageForTraining(NeMoGymEasyInputMessage, TokenIDLogProbMixin):
    pass


class NeMoGymMessageForTraining(NeMoGymMessage, TokenIDLogProbMixin):
    pass


class NeMoGymResponseOutputMessageForTraining(NeMoGymResponseOutputMessage, TokenIDLogProbMixin):
    pass


class NeMoGymResponseFunctionToolCallForTraining(NeMoGymResponseFunctionToolCall, TokenIDLogProbMixin):
    pass


class NeMoGymResponseReasoningItemForTraining(NeMoGymResponseReasoningItem, TokenIDLogProbMixin):
    pass


class NeMoGymChatMessageItem(OpenObject):
    """A Chat-Completions message among the items: an assistant turn with `tool_calls`, or a tool's answer."""

    role: Literal["assistant", "tool"]


class NeMoGymOpenItem(OpenObject):
    """An item of any other type (hosted tools, compaction, approvals, …), kept as it came."""

    type: str

    @model_validator(mode="before")
    @classmethod
    def _acceptable_as_input(cls, item: Any) -> Any:
        if not isinstance(item, dict):
            return item
        if item.get("type") == "additional_tools" and item.get("role") != "developer":
            return {**item, "role": "developer"}
        if item.get("type") == "computer_call_output" and item.get("status") == "failed":
            return {key: value for key, value in item.items() if key != "status"}
        return item


_KINDS: dict[type, str] = {
    NeMoGymEasyInputMessage: "easy_message",
    NeMoGymMessage: "message",
    NeMoGymResponseOutputMessage: "output_message",
    NeMoGymResponseFunctionToolCall: "function_call",
    NeMoGymFunctionCallOutput: "function_call_output",
    NeMoGymResponseReasoningItem: "reasoning",
    NeMoGymChatMessageItem: "chat_message",
    NeMoGymOpenItem: "other",
    NeMoGymEasyInputMessageForTraining: "easy_message_for_training",
    NeMoGymMessageForTraining: "message_for_training",
    NeMoGymResponseOutputMessageForTraining: "output_message_for_training",
    NeMoGymResponseFunctionToolCallForTraining: "function_call_for_training",
    NeMoGymResponseReasoningItemForTraining: "reasoning_for_training",
}
_OWN_TYPES = frozenset({"function_call", "function_call_output", "reasoning"})


def item_kind(item: Any) -> str | None:
    """Which member of the union an item belongs to; None for what is no item at all."""
    if not isinstance(item, dict):
        return _KINDS.get(type(item)) or next((_KINDS[base] for base in type(item).__mro__ if base in _KINDS), None)
    kind = item.get("type")
    if kind is None or kind == "message":
        kind = _message_kind(item)
    elif not isinstance(kind, str) or kind not in _OWN_TYPES:
        return "other"
    if kind in ("function_call_output", "chat_message"):
        return kind
    return f"{kind}_for_training" if carries_token_fields(item) else kind


def _message_kind(item: dict[str, Any]) -> str:
    role = item.get("role")
    if role == "tool" or (role == "assistant" and item.get("tool_calls")):
        return "chat_message"
    if isinstance(item.get("content"), str):
        return "easy_message"
    if role == "assistant":
        return "output_message" if "id" in item else "easy_message"
    return "message" if "status" in item else "easy_message"


NeMoGymResponseInputItem = Annotated[
    Annotated[NeMoGymEasyInputMessage, Tag("easy_message")]
    | Annotated[NeMoGymMessage, Tag("message")]
    | Annotated[NeMoGymResponseOutputMessage, Tag("output_message")]
    | Annotated[NeMoGymResponseFunctionToolCall, Tag("function_call")]
    | Annotated[NeMoGymFunctionCallOutput, Tag("function_call_output")]
    | Annotated[NeMoGymResponseReasoningItem, Tag("reasoning")]
    | Annotated[NeMoGymEasyInputMessageForTraining, Tag("easy_message_for_training")]
    | Annotated[NeMoGymMessageForTraining, Tag("message_for_training")]
    | Annotated[NeMoGymResponseOutputMessageForTraining, Tag("output_message_for_training")]
    | Annotated[NeMoGymResponseFunctionToolCallForTraining, Tag("function_call_for_training")]
    | Annotated[NeMoGymResponseReasoningItemForTraining, Tag("reasoning_for_training")]
    | Annotated[NeMoGymChatMessageItem, Tag("chat_message")]
    | Annotated[NeMoGymOpenItem, Tag("other")],
    Discriminator(item_kind, custom_error_type="item", custom_error_message="an item must be an object"),
]

NeMoGymResponseInput = list[NeMoGymResponseInputItem]


def _with_type(item: Any) -> Any:
    if isinstance(item, dict) and not isinstance(item.get("type"), str):
        raise PydanticCustomError("missing_item_type", "every item of `output` needs a `type`")
    return item


NeMoGymResponseOutputItem = Annotated[NeMoGymResponseInputItem, BeforeValidator(_with_type)]
