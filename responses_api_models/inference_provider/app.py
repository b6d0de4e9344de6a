"""Model server for endpoints that speak Chat Completions: hosted providers, vLLM, llama.cpp and the like."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import Field, PrivateAttr

from nemo_gym.base_responses_api_model import BaseResponsesAPIModelConfig, Body, SimpleResponsesAPIModel
from nemo_gym.openai_utils import (
    NeMoGymAsyncOpenAI,
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
)
from nemo_gym.responses_converter import ResponsesConverter, chat_completion_body
from nemo_gym.server_utils import is_nemo_gym_fastapi_entrypoint


class InferenceProviderConfig(BaseResponsesAPIModelConfig):
    """Where the endpoint is, and how it is asked."""

    base_url: str
    api_key: str
    model: str
    """Sent in place of whatever model a request names."""
    uses_reasoning_parser: bool = False
    """Whether `<think>…</think>` in the text is reasoning."""
    num_concurrent_requests: int = Field(default=1000, ge=1)
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Added to every request; keys of the request win."""
    retry_budget_seconds: float = Field(default=60.0, ge=0)
    """For how long an overloaded or unreachable endpoint is asked again."""
    timeout_seconds: float = Field(default=3600.0, gt=0)
    """For one attempt, from connecting to the last byte of the answer."""


class InferenceProvider(SimpleResponsesAPIModel):
    """Answers `/v1/responses` by way of the endpoint's `/chat/completions`."""

    config: InferenceProviderConfig

    _client: NeMoGymAsyncOpenAI = PrivateAttr()
    _converter: ResponsesConverter = PrivateAttr()
    _slots: asyncio.Semaphore = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Make the client; nothing is connected before the first request."""
        super().model_post_init(context)
        self._client = NeMoGymAsyncOpenAI(
            base_url=self.config.base_url,
            api_key=self.config.api_key,
            retry_budget_seconds=self.config.retry_budget_seconds,
            timeout_seconds=self.config.timeout_seconds,
        )
        self._converter = ResponsesConverter(
            return_token_id_information=False, uses_reasoning_parser=self.config.uses_reasoning_parser
        )
        self._slots = asyncio.Semaphore(self.config.num_concurrent_requests)

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming = Body()) -> NeMoGymResponse:
        """One call in the Responses dialect."""
        body.model = self.config.model
        completion = await self._complete(self._converter.responses_to_chat_completion_create_params(body))
        return self._converter.chat_completion_to_response(body, completion)

    async def chat_completions(self, body: NeMoGymChatCompletionCreateParamsNonStreaming = Body()) -> NeMoGymChatCompletion:
        """One call in the Chat-Completions dialect."""
        return await self._complete(body)

    async def _complete(self, params: NeMoGymChatCompletionCreateParamsNonStreaming) -> NeMoGymChatCompletion:
        body = chat_completion_body(params, model=self.config.model, extra_body=self.config.extra_body)
        async with self._slots:
            answer = await self._client.create_chat_completion(**body)
        return self._client.validated(NeMoGymChatCompletion, answer)


if __name__ == "__main__":
    InferenceProvider.run_webserver()
elif is_nemo_gym_fastapi_entrypoint(__file__):
    app = InferenceProvider.run_webserver()
