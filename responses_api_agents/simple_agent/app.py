"""The standard loop: ask the model, run the tools it calls, give it their outputs, until it answers."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response
from pydantic import ConfigDict, Field

from nemo_gym.base_resources_server import BaseRunRequest, BaseVerifyResponse
from nemo_gym.base_responses_api_agent import (
    AggregateMetrics,
    AggregateMetricsRequest,
    BaseResponsesAPIAgentConfig,
    SimpleResponsesAPIAgent,
)
from nemo_gym.config_types import ModelServerRef, ResourcesServerRef
from nemo_gym.openai_utils import (
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    NeMoGymResponseFunctionToolCall,
)
from nemo_gym.server_utils import ClientResponse, get_response_json
from responses_api_agents.simple_agent.exchange import (
    Cookies,
    ask_model,
    cookies_of,
    own_answer,
    post,
    set_cookies,
)
from responses_api_agents.simple_agent.loop import DEFAULT_IDLE_TURNS, Conversation, Limits, converse, function_calls
from responses_api_agents.simple_agent.tool_calls import ToolOutcome, call_environment
from responses_api_agents.simple_agent.trajectory import HIDDEN_KEY, PUBLIC_KEY, TrajectoryRecorder, finished


class SimpleAgentConfig(BaseResponsesAPIAgentConfig):
    """Configuration of the agent."""

    resources_server: ResourcesServerRef
    model_server: ModelServerRef
    max_steps: int | None = None
    """Model calls per rollout; null: as many as it takes."""
    max_idle_turns: int = Field(default=DEFAULT_IDLE_TURNS, ge=1)
    """Turns in a row that reach no tool and give no message (reasoning only, say) after which the rollout ends as it is."""
    max_seconds: float | None = Field(default=None, gt=0)
    """Seconds for the loop of one rollout, after which it ends as it is; null: as long as it takes."""


class SimpleAgentRunRequest(BaseRunRequest):
    """A row with whatever fields its environment needs."""

    model_config = ConfigDict(extra="allow")


class SimpleAgentVerifyResponse(BaseVerifyResponse):
    """What the resources server answered, with all its fields."""

    model_config = ConfigDict(extra="allow")


class _Servers:
    """The two servers that a rollout of this agent talks to, with the session's cookies of each."""

    def __init__(self, agent: SimpleAgent, model_path: str, environment_cookies: Cookies) -> None:
        self.agent = agent
        self.model_path = model_path
        self.environment_cookies = environment_cookies
        self.model_cookies: Cookies = {}

    async def ask(self, request: dict[str, Any]) -> NeMoGymResponse:
        server = self.agent.config.model_server.name
        return await ask_model(self.agent.server_client, server, self.model_path, request, self.model_cookies)

    async def call_tool(self, call: NeMoGymResponseFunctionToolCall) -> ToolOutcome:
        server = self.agent.config.resources_server.name
        return await call_environment(self.agent.server_client, server, call, self.environment_cookies)

    def calls_to_run(self, answer: NeMoGymResponse) -> list[NeMoGymResponseFunctionToolCall]:
        return function_calls(answer.output)


class SimpleAgent(SimpleResponsesAPIAgent):
    """An agent for environments whose tools are routes of their resources server."""

    config: SimpleAgentConfig

    async def responses(
        self, request: Request, response: Response, body: NeMoGymResponseCreateParamsNonStreaming
    ) -> NeMoGymResponse:
        """The loop. Returns the last model response with all new items as its output and the usage of all calls.

        The caller's cookies go to the resources server; those that both servers set are set on the reply.
        """
        conversation = Conversation.begin(body)
        servers = _Servers(self, self.url_path_for_request("/v1/responses", request), cookies_of(request))
        recorder = self._recorder(request)
        config = self.config
        limits = Limits(config.max_steps, config.max_idle_turns, config.max_seconds)
        result = await converse(conversation, servers, limits, recorder)
        set_cookies(response, servers.environment_cookies, servers.model_cookies)
        return result.model_copy(update={HIDDEN_KEY: recorder.record(conversation, result)}) if recorder else result

    async def run(self, request: Request, body: SimpleAgentRunRequest) -> SimpleAgentVerifyResponse:
        """One rollout: seed the session, run the loop, verify (or give the configured reward when verification is skipped)."""
        cookies = cookies_of(request)
        await self._post_to_environment("/seed_session", body.model_dump(exclude_unset=True), cookies)

        path, rollout_id = self.url_path_for_run("/v1/responses", body), self.rollout_id_from_run(body)
        result = await own_answer(self, SimpleAgent, request, path, rollout_id, body.responses_create_params, cookies)
        recorded = (result.model_extra or {}).pop(HIDDEN_KEY, None)

        row = body.model_dump()
        judged = {**row, "response": result.model_dump()}
        if self.config.skip_verification:
            judged |= {"reward": self.config.skip_verification_reward, "verification_skipped": True}
        else:
            judged = await get_response_json(await self._post_to_environment("/verify", judged, cookies))
        if recorded is not None:
            judged |= {PUBLIC_KEY: finished(recorded, row, judged.get("resolved"))}
        return SimpleAgentVerifyResponse.model_validate(judged)

    async def aggregate_metrics(self, body: AggregateMetricsRequest) -> AggregateMetrics:
        """What the resources server makes of the rollouts: it knows the environment's own metrics."""
        answer = await self._post_to_environment("/aggregate_metrics", body)
        return AggregateMetrics.model_validate(await get_response_json(answer))

    def _recorder(self, request: Request) -> TrajectoryRecorder | None:
        rollout_id = request.path_params.get("rollout_id")
        if not rollout_id or not self._model_call_capture_enabled():
            return None
        return TrajectoryRecorder(rollout_id, self.config.model_server.model_dump())

    async def _post_to_environment(self, path: str, body: Any, cookies: Cookies | None = None) -> ClientResponse:
        return await post(self.server_client, self.config.resources_server.name, path, body, cookies)


if __name__ == "__main__":
    SimpleAgent.run_webserver()
