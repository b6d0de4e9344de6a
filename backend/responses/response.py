"""The answer of `/v1/responses`."""

from __future__ import annotations

from typing import Any, Literal

from backend.responses.base import OpenObject, SchemaModel, TaggedModel
from backend.responses.items import NeMoGymResponseOutputItem, NeMoGymResponseOutputMessage
from backend.responses.parts import NeMoGymResponseOutputText
from backend.responses.usage import NeMoGymResponseUsage


class NeMoGymResponseError(SchemaModel):
    code: str | None = None
    message: str


class NeMoGymIncompleteDetails(SchemaModel):
    reason: str | None = None
    """`max_output_tokens` or `content_filter`, or an endpoint's own word."""


class NeMoGymResponse(TaggedModel):
    """A response object; values of endpoints outside the standard enumerations are kept as they are."""

    id: str
    created_at: float
    """Unix time in seconds."""
    model: str
    object: Literal["response"] = "response"
    output: list[NeMoGymResponseOutputItem]
    parallel_tool_calls: bool
    tool_choice: str | OpenObject
    tools: list[OpenObject]
    background: bool | None = None
    completed_at: float | None = None
    conversation: OpenObject | None = None
    error: NeMoGymResponseError | None = None
    incomplete_details: NeMoGymIncompleteDetails | None = None
    instructions: str | list[Any] | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    metadata: dict[str, Any] | None = None
    moderation: OpenObject | None = None
    previous_response_id: str | None = None
    prompt: OpenObject | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    reasoning: OpenObject | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    status: str | None = None
    temperature: float | None = None
    text: OpenObject | None = None
    top_logprobs: int | None = None
    top_p: float | None = None
    truncation: str | None = None
    usage: NeMoGymResponseUsage | None = None
    user: str | None = None

    @property
    def output_text(self) -> str:
        """The text of all generated messages, joined without separator."""
        return "".join(
            part.text
            for item in self.output
            if isinstance(item, NeMoGymResponseOutputMessage)
            for part in item.content
            if isinstance(part, NeMoGymResponseOutputText)
        )
