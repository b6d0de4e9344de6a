"""The loop of environments that lead the conversation: reset once, then step with each answer of the model until it is over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from fastapi import Request
from pydantic import ConfigDict, Field

from nemo_gym.base_resources_server import BaseRunRequest, BaseVerifyRequest
from nemo_gym.base_responses_api_agent import (
    AggregateMetrics,
    AggregateMetricsRequest,
    BaseResponsesAPIAgentConfig,
    SimpleResponsesAPIAgent,
)
from nemo_gym.config_types import ModelServerRef, ResourcesServerRef
from nemo_gym.openai_utils import (
    NeMoGymEasyInputMessage,
    NeMoGymFunctionCallOutput,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
)
from nemo_gym.server_utils import ClientResponse, get_response_json
from resources_servers.gymnasium import EnvResetResponse, EnvStepResponse
from responses_api_agents.simple_agent.exchange import Cookies, ask_model, cookies_of, post
from responses_api_agents.simple_agent.loop import Conversation

CLOSE_SECONDS = 10.0
"""How long an environment may take to close an episode."""

_log = logging.getLogger(__name__)


class GymnasiumAgentConfig(BaseResponsesAPIAgentConfig):
    """Configuration of the agent."""

    resources_server: ResourcesServerRef
    model_server: ModelServerRef
    max_steps: int = Field(default=10, ge=1)
    """Steps after which an episode that goes on is cut off."""


class GymnasiumAgentRunRequest(BaseRunRequest):
    """A row with whatever fields its environment needs."""

    model_config = ConfigDict(extra="allow")


class GymnasiumAgentRunResponse(BaseVerifyRequest):
    """An episode. The row's own fields are not repeated."""

    reward: float
    """The sum over all steps."""
    terminated: bool
    """It came to its end."""
    truncated: bool
    """It was cut off, by the environment or by the limit of steps."""
    info: dict[str, Any]
    """Of the last step."""


@dataclass(slots=True)
class _Episode:
    """What is known of a running episode."""

    row: dict[str, Any]
    """The row's own fields, as the environment gets them with every call."""
    environment_cookies: Cookies
    model_cookies: Cookies = field(default_factory=dict)
    closable: bool = False
    idempotent: bool = False
    close_failure: Exception | None = None


class GymnasiumAgent(SimpleResponsesAPIAgent):
    """An agent for servers that are built on `resources_servers.gymnasium`."""

    config: GymnasiumAgentConfig

    async def responses(self, request: Request, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        """One model call: without an episode there is nothing to loop over."""
        path = self.url_path_for_request("/v1/responses", request)
        return await ask_model(self.server_client, self.config.model_server.name, path, body)

    async def run(self, request: Request, body: GymnasiumAgentRunRequest) -> GymnasiumAgentRunResponse:
        """One episode. The reward is the sum over its steps; an environment that asks for it is closed, whatever happens."""
        episode = _Episode(body.model_dump(exclude_unset=True), cookies_of(request))
        async with self._closing(episode):
            start = await self._reset(episode)
            params = body.responses_create_params
            if start.observation is not None:
                params = _with_message(params, start.observation)
            result = await self._play(episode, params, self.url_path_for_run("/v1/responses", body))
        if episode.close_failure is not None:
            failure = episode.close_failure
            result.info["cleanup_warning"] = {
                "operation": "close", "error_type": type(failure).__name__, "message": str(failure)
            }  # fmt: skip
        return result

    async def aggregate_metrics(self, body: AggregateMetricsRequest) -> AggregateMetrics:
        """What the environment makes of the rollouts: it knows its own metrics."""
        answer = await post(self.server_client, self.config.resources_server.name, "/aggregate_metrics", body)
        return AggregateMetrics.model_validate(await get_response_json(answer))

    async def _reset(self, episode: _Episode) -> EnvResetResponse:
        answer = await get_response_json(await self._ask_environment("/reset", episode.row, episode))
        info = answer.get("info") if isinstance(answer, dict) else None
        if isinstance(info, dict):
            # Before the rest is checked: an episode that has begun must be closed even when its first answer is of no use.
            episode.closable = info.get("supports_explicit_close") is True
            episode.idempotent = info.get("supports_step_idempotency") is True
        return EnvResetResponse.model_validate(answer)

    async def _play(
        self, episode: _Episode, params: NeMoGymResponseCreateParamsNonStreaming, model_path: str
    ) -> GymnasiumAgentRunResponse:
        conversation = Conversation.begin(params)
        reward, step = 0.0, EnvStepResponse()
        for turn in range(self.config.max_steps):
            if turn and step.observation is not None:
                conversation.add([NeMoGymEasyInputMessage(role="user", content=step.observation, type="message")])
            answer = await ask_model(
                self.server_client, self.config.model_server.name, model_path, conversation.request, episode.model_cookies
            )
            conversation.take(answer)
            step = await self._step(episode, answer)
            reward += step.reward
            conversation.add(
                NeMoGymFunctionCallOutput.model_validate({**output, "type": "function_call_output"})
                for output in step.info.get("tool_outputs") or ()
            )
            if step.terminated or step.truncated:
                break
        return GymnasiumAgentRunResponse(
            responses_create_params=params,
            response=conversation.result(),
            reward=reward,
            terminated=step.terminated,
            truncated=step.truncated or not step.terminated,
            info=step.info,
        )

    async def _step(self, episode: _Episode, answer: NeMoGymResponse) -> EnvStepResponse:
        body = {**episode.row, "response": answer.model_dump()}
        if episode.idempotent:
            body["_ng_step_request_id"] = uuid4().hex
        return EnvStepResponse.model_validate(await get_response_json(await self._ask_environment("/step", body, episode)))

    @asynccontextmanager
    async def _closing(self, episode: _Episode) -> AsyncIterator[None]:
        """Close the episode in the end, also when it fails or is given up; a failure to close is noted, never raised."""
        try:
            yield
        finally:
            if episode.closable:
                try:
                    async with asyncio.timeout(CLOSE_SECONDS):
                        await self._ask_environment("/close", {}, episode)
                except Exception as failure:
                    _log.warning("environment `%s` could not close an episode: %r", self.config.resources_server.name, failure)
                    episode.close_failure = failure

    async def _ask_environment(self, path: str, body: dict[str, Any], episode: _Episode) -> ClientResponse:
        return await post(self.server_client, self.config.resources_server.name, path, body, episode.environment_cookies)


def _with_message(params: NeMoGymResponseCreateParamsNonStreaming, text: str) -> NeMoGymResponseCreateParamsNonStreaming:
    """`params` with one more message of the user at the end of the input."""
    given = params.input
    if isinstance(given, str):
        given = [NeMoGymEasyInputMessage(role="user", content=given, type="message")]
    message = NeMoGymEasyInputMessage(role="user", content=text, type="message")
    return params.model_copy(update={"input": [*given, message]})


if __name__ == "__main__":
    GymnasiumAgent.run_webserver()
