"""Chat Completions: requests (messages stay plain dicts, unknown keys kept) and answers (objects)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired
from uuid import uuid4

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, with_config
from typing_extensions import TypedDict

from backend.responses.base import (
    KEEP_UNKNOWN,
    OpenObject,
    SchemaModel,
    TaggedModel,
    TokenIDLogProbMixin,
    carries_token_fields,
    text_or_list,
)
from backend.responses.params import CacheRetention, NoStream, ServiceTier


@with_config(KEEP_UNKNOWN)
class NeMoGymChatCompletionContentPartTextParam(TypedDict):
    text: str
    type: Literal["text"]


@with_config(KEEP_UNKNOWN)
class NeMoGymChatCompletionContentPartOtherParam(TypedDict):
    """`image_url`, `input_audio`, `video_url`, `file` or `refusal`, each with its value under the key of the same name."""

    type: Literal["image_url", "input_audio", "video_url", "file", "refusal", "audio_url"]


NeMoGymChatCompletionContentPartParam = Annotated[
    NeMoGymChatCompletionContentPartTextParam | NeMoGymChatCompletionContentPartOtherParam, Field(discriminator="type")
]
ChatContent = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[NeMoGymChatCompletionContentPartParam], Tag("list")], Discriminator(text_or_list)
]


@with_config(KEEP_UNKNOWN)
class NeMoGymChatCompletionDeveloperMessageParam(TypedDict):
    content: ChatContent
    role: Literal["developer"]


@with_config(KEEP_UNKNOWN)
class NeMoGymChatCompletionSystemMessageParam(TypedDict):
    content: ChatContent
    role: Literal["system"]


@with_config(KEEP_UNKNOWN)
class NeMoGymChatCompletionUserMessageParam(TypedDict):
    content: ChatContent
    role: Literal["user"]


@with_config(KEEP_UNKNOWN)
class NeMoGymChatCompletionMessageToolCallFunctionParam(TypedDict):
    arguments: str
    name: str


@with_config(KEEP_UNKNOWN)
class NeMoGymChatCompletionMessageToolCallParam(TypedDict):
    id: str
    type: str
    function: NotRequired[NeMoGymChatCompletionMessageToolCallFunctionParam]


@with_config(KEEP_UNKNOWN)
class NeMoGymChatCompletionAssistantMessageParam(TypedDict):
    role: Literal["assistant"]
    content: NotRequired[ChatContent | None]
    tool_calls: NotRequired[list[NeMoGymChatCompletionMessageToolCallParam] | None]


class NeMoGymChatCompletionAssistantMessageForTrainingParam(NeMoGymChatCompletionAssistantMessageParam):
    prompt_token_ids: list[int]
    generation_token_ids: list[int]
    generation_log_probs: list[float]
    routed_experts: NotRequired[str | list[list[list[int]]] | None]


@with_config(KEEP_UNKNOWN)
class NeMoGymChatCompletionToolMessageParam(TypedDict):
    content: ChatContent
    role: Literal["tool"]
    tool_call_id: str


def _message_kind(message: Any) -> str | None:
    if not isinstance(message, dict):
        return None
    role = message.get("role")
    if not isinstance(role, str):
        return None
    return "assistant_for_training" if role == "assistant" and carries_token_fields(message) else role


NeMoGymChatCompletionMessageParam = Annotated[
    Annotated[NeMoGymChatCompletionDeveloperMessageParam, Tag("developer")]
    | Annotated[NeMoGymChatCompletionSystemMessageParam, Tag("system")]
    | Annotated[NeMoGymChatCompletionUserMessageParam, Tag("user")]
    | Annotated[NeMoGymChatCompletionAssistantMessageParam, Tag("assistant")]
    | Annotated[NeMoGymChatCompletionAssistantMessageForTrainingParam, Tag("assistant_for_training")]
    | Annotated[NeMoGymChatCompletionToolMessageParam, Tag("tool")],
    Discriminator(
        _message_kind,
        custom_error_type="chat_message",
        custom_error_message="a message needs a `role`: developer, system, user, assistant or tool",
    ),
]


@with_config(KEEP_UNKNOWN)
class NeMoGymChatCompletionToolParam(TypedDict):
    """A tool in nested form: `{"type": "function", "function": {"name": …, "parameters": …}}`, or `custom` likewise."""

    type: str


class NeMoGymChatCompletionCreateParamsNonStreaming(BaseModel):
    """Exactly the keys of the Chat Completions API (without the two retired ones); any other key is an error."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=(), defer_build=True)

    messages: list[NeMoGymChatCompletionMessageParam]
    model: str | None = None
    audio: dict[str, Any] | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, int] | None = None
    logprobs: bool | None = None
    max_completion_tokens: int | None = None
    max_tokens: int | None = None
    metadata: dict[str, str] | None = None
    modalities: list[Literal["text", "audio"]] | None = None
    moderation: dict[str, Any] | None = None
    n: int | None = None
    parallel_tool_calls: bool | None = True
    prediction: dict[str, Any] | None = None
    presence_penalty: float | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: CacheRetention | None = None
    reasoning_effort: str | None = None
    response_format: dict[str, Any] | None = None
    safety_identifier: str | None = None
    seed: int | None = None
    service_tier: ServiceTier | None = None
    stop: str | list[str] | None = None
    store: bool | None = None
    stream: NoStream = None
    stream_options: dict[str, Any] | None = None
    temperature: float | None = None
    tool_choice: str | dict[str, Any] | None = None
    tools: list[NeMoGymChatCompletionToolParam] | None = None
    top_logprobs: int | None = None
    top_p: float | None = None
    user: str | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    web_search_options: dict[str, Any] | None = None


def _as_json_text(arguments: Any) -> Any:
    """Some endpoints send the arguments as an object, or null for a call without any."""
    if isinstance(arguments, dict):
        return orjson.dumps(arguments).decode()
    return "{}" if arguments is None else arguments


def _or_new_call_id(value: Any) -> Any:
    return value or f"call_{uuid4().hex}"


class NeMoGymFunction(SchemaModel):
    arguments: Annotated[str, BeforeValidator(_as_json_text)]
    name: str


class NeMoGymChatCompletionMessageToolCall(TaggedModel):
    id: Annotated[str, BeforeValidator(_or_new_call_id)] = Field(default="", validate_default=True)
    """Endpoints that leave it out or empty get a new one: a tool's answer must be able to name its call."""
    function: NeMoGymFunction
    type: Literal["function"] = "function"


class NeMoGymChatCompletionMessageCustomToolCall(TaggedModel):
    id: str
    custom: OpenObject
    type: Literal["custom"] = "custom"


def _tool_call_kind(call: Any) -> str:
    kind = call.get("type") if isinstance(call, dict) else call.type
    return "custom" if kind == "custom" else "function"


NeMoGymToolCall = Annotated[
    Annotated[NeMoGymChatCompletionMessageToolCall, Tag("function")]
    | Annotated[NeMoGymChatCompletionMessageCustomToolCall, Tag("custom")],
    Discriminator(_tool_call_kind),
]


class NeMoGymChatCompletionMessage(TaggedModel):
    content: str | None = None
    role: Literal["assistant"] = "assistant"
    refusal: str | None = None
    annotations: list[Any] | None = None
    audio: OpenObject | None = None
    function_call: NeMoGymFunction | None = None
    tool_calls: list[NeMoGymToolCall] | None = None


class NeMoGymChatCompletionMessageForTraining(NeMoGymChatCompletionMessage, TokenIDLogProbMixin):
    pass


def _answer_kind(message: Any) -> str:
    if isinstance(message, dict):
        return "training" if carries_token_fields(message) else "plain"
    return "training" if isinstance(message, NeMoGymChatCompletionMessageForTraining) else "plain"


class NeMoGymChoice(SchemaModel):
    finish_reason: str | None = None
    """`stop`, `length`, `tool_calls` or `content_filter`, or an endpoint's own word."""
    index: int = 0
    logprobs: OpenObject | None = None
    message: Annotated[
        Annotated[NeMoGymChatCompletionMessage, Tag("plain")]
        | Annotated[NeMoGymChatCompletionMessageForTraining, Tag("training")],
        Discriminator(_answer_kind),
    ]


class NeMoGymCompletionUsage(SchemaModel):
    completion_tokens: int
    prompt_tokens: int
    total_tokens: int
    completion_tokens_details: OpenObject | None = None
    prompt_tokens_details: OpenObject | None = None


def _usable_usage(usage: Any) -> Any:
    """Counts that an endpoint leaves null make its usage unknown, not the whole answer invalid."""
    if not isinstance(usage, dict):
        return usage
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not isinstance(read, int) or not isinstance(written, int):
        return None
    return usage if isinstance(usage.get("total_tokens"), int) else {**usage, "total_tokens": read + written}


class NeMoGymChatCompletion(TaggedModel):
    id: str
    choices: list[NeMoGymChoice]
    created: int
    """Unix time in seconds."""
    model: str
    object: Literal["chat.completion"] = "chat.completion"
    moderation: OpenObject | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    usage: Annotated[NeMoGymCompletionUsage | None, BeforeValidator(_usable_usage)] = None
