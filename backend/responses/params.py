"""The body of a request to `/v1/responses`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Tag, with_config
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from backend.responses.base import KEEP_UNKNOWN, text_or_list
from backend.responses.items import NeMoGymResponseInput

ServiceTier = Literal["auto", "default", "flex", "scale", "priority"]
CacheRetention = Literal["in_memory", "24h"]


def _not_streaming(value: Any) -> Any:
    if value is True:
        raise PydanticCustomError("stream_unsupported", "streaming is not supported here: leave `stream` out, or send false")
    return value


def _none_means_none(value: Any) -> Any:
    return [] if value is None else value


NoStream = Annotated[Literal[False] | None, BeforeValidator(_not_streaming)]


@with_config(KEEP_UNKNOWN)
class NeMoGymToolParam(TypedDict):
    """A tool the model may use; `type: function` has `name`, `description`, `parameters` and `strict` beside it."""

    type: str


@with_config(KEEP_UNKNOWN)
class NeMoGymFunctionToolParam(TypedDict):
    """A function in flat form."""

    name: str
    parameters: dict[str, Any] | None
    strict: bool | None
    type: Literal["function"]
    description: NotRequired[str | None]


class NeMoGymResponseCreateParamsNonStreaming(BaseModel):
    """Exactly the keys of the Responses API; any other key is an error, so that a typo in a row does not go unnoticed."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    input: Annotated[Annotated[str, Tag("text")] | Annotated[NeMoGymResponseInput, Tag("list")], Discriminator(text_or_list)]
    background: bool | None = None
    context_management: list[dict[str, Any]] | None = None
    conversation: str | dict[str, Any] | None = None
    include: list[str] | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    metadata: dict[str, str] | None = None
    model: str | None = None
    moderation: dict[str, Any] | None = None
    parallel_tool_calls: bool | None = True
    previous_response_id: str | None = None
    prompt: dict[str, Any] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: CacheRetention | None = None
    reasoning: dict[str, Any] | None = None
    safety_identifier: str | None = None
    service_tier: ServiceTier | None = None
    store: bool | None = None
    stream: NoStream = None
    stream_options: dict[str, Any] | None = None
    temperature: float | None = None
    text: dict[str, Any] | None = None
    tool_choice: str | dict[str, Any] = "auto"
    tools: Annotated[list[NeMoGymToolParam], BeforeValidator(_none_means_none)] = []
    top_logprobs: int | None = None
    top_p: float | None = None
    truncation: Literal["auto", "disabled"] | None = None
    user: str | None = None
