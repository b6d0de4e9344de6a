"""Model server for endpoints that speak the OpenAI Responses API."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from aiohttp import ClientResponseError
from pydantic import Field, PrivateAttr

from nemo_gym.base_responses_api_model import BaseResponsesAPIModelConfig, Body, SimpleResponsesAPIModel
from nemo_gym.openai_utils import (
    NeMoGymAsyncOpenAI,
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    complete_usage,
)
from nemo_gym.responses_converter import chat_completion_body, without_empty_tools, without_row_extra
from nemo_gym.server_utils import is_nemo_gym_fastapi_entrypoint

NO_RESPONSES_ROUTE = b" (an endpoint that speaks only Chat Completions needs --model-type inference_provider)"


class SimpleModelServerConfig(BaseResponsesAPIModelConfig):
    """Where the endpoint is, and how it is asked."""

    openai_base_url: str
    openai_api_key: str
    openai_model: str
    """Sent in place of whatever model a request names."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Added to every request; keys of the request win."""
    openai_default_headers: dict[str, str] = Field(default_factory=dict)
    max_concurrent_requests: int | None = Field(default=None, ge=1)
    drop_input_reasoning_items: bool = False
    """Leave reasoning out of the history: endpoints that keep no state refuse reasoning items they do not know."""
    retry_budget_seconds: float = Field(default=60.0, ge=0)
    """For how long an overloaded or unreachable endpoint is asked again."""
    timeout_seconds: float = Field(default=3600.0, gt=0)
    """For one attempt, from connecting to the last byte of the answer."""


class SimpleModelServer(SimpleResponsesAPIModel):
    """Passes both dialects on to the endpoint's route of the same name."""

    config: SimpleModelServerConfig

    _client: NeMoGymAsyncOpenAI = PrivateAttr()
    _slots: AbstractAsyncContextManager[None] = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Make the client; nothing is connected before the first request."""
        super().model_post_init(context)
        self._client = NeMoGymAsyncOpenAI(
            base_url=self.config.openai_base_url,
            api_key=self.config.openai_api_key,
            default_headers=self.config.openai_default_headers,
            retry_budget_seconds=self.config.retry_budget_seconds,
            timeout_seconds=self.config.timeout_seconds,
        )
        limit = self.config.max_concurrent_requests
        self._slots = asyncio.Semaphore(limit) if limit else nullcontext()

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming = Body()) -> NeMoGymResponse:
        """One call in the Responses dialect."""
        wanted, row_extra = without_row_extra(self._request(body))
        request = self.config.extra_body | row_extra | wanted | {"model": self.config.openai_model}
        async with self._slots:
            try:
                answer = await self._client.create_response(**request)
            except ClientResponseError as error:
                if error.status == 404:
                    error.response_content += NO_RESPONSES_ROUTE  # type: ignore[attr-defined]
                raise
        return self._client.validated(NeMoGymResponse, {**answer, "usage": complete_usage(answer.get("usage"))})

    async def chat_completions(self, body: NeMoGymChatCompletionCreateParamsNonStreaming = Body()) -> NeMoGymChatCompletion:
        """One call in the Chat-Completions dialect."""
        request = chat_completion_body(body, model=self.config.openai_model, extra_body=self.config.extra_body)
        async with self._slots:
            answer = await self._client.create_chat_completion(**request)
        return self._client.validated(NeMoGymChatCompletion, answer)

    def _request(self, body: NeMoGymResponseCreateParamsNonStreaming) -> dict[str, Any]:
        """The keys that were set and are not null. Items lose null fields: they come from full dumps of earlier answers."""
        request = {key: value for key, value in body.model_dump(exclude_unset=True).items() if value is not None}
        if not isinstance(body.input, str):
            request["input"] = [
                item.model_dump(exclude_unset=True, exclude_none=True)
                for item in body.input
                if not (self.config.drop_input_reasoning_items and getattr(item, "type", None) == "reasoning")
            ]
        return without_empty_tools(request)


if __name__ == "__main__":
    SimpleModelServer.run_webserver()
elif is_nemo_gym_fastapi_entrypoint(__file__):
    app = SimpleModelServer.run_webserver()
