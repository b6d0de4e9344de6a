"""The state of a conversion to chat messages, for code that converts its own items step by step."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from backend.responses.base import TOKEN_FIELDS, TokenIDLogProbMixin


class ResponsesConverterState(BaseModel):
    """Chat messages so far, and what the assistant message has that is still being put together from several items."""

    return_token_id_information: bool
    messages: list[Any] = Field(default_factory=list)
    content_buffer: str = ""
    tool_calls_buffer: list[Any] = Field(default_factory=list)
    assistant_item_buffered: bool = False
    """Whether an item of the assistant's was seen; it becomes a message even when it is empty."""
    token_information: TokenIDLogProbMixin | None = None

    def flush_assistant(self) -> None:
        """Append what was put together as one assistant message, if there is anything, and begin anew."""
        if not (self.assistant_item_buffered or self.content_buffer or self.tool_calls_buffer):
            return
        message: dict[str, Any] = {"role": "assistant", "content": self.content_buffer or None}
        if self.tool_calls_buffer:
            message["tool_calls"] = self.tool_calls_buffer
        if self.return_token_id_information and self.token_information is not None:
            values = {key: getattr(self.token_information, key, None) for key in TOKEN_FIELDS}
            message |= {key: value for key, value in values.items() if value is not None}
        self.messages.append(message)
        self.content_buffer, self.tool_calls_buffer = "", []
        self.assistant_item_buffered, self.token_information = False, None
