"""One model call per rollout: tools are offered and their calls are judged, but nobody runs them."""

from __future__ import annotations

from fastapi import Request
from pydantic import ConfigDict

from nemo_gym.base_resources_server import BaseRunRequest, BaseVerifyResponse
from nemo_gym.base_responses_api_agent import BaseResponsesAPIAgentConfig, SimpleResponsesAPIAgent
from nemo_gym.config_types import ModelServerRef, ResourcesServerRef
from nemo_gym.openai_utils import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from nemo_gym.server_utils import get_response_json
from responses_api_agents.simple_agent.exchange import answers_as, ask_agent, ask_model, post, request_to_self


class ToolSimulationAgentConfig(BaseResponsesAPIAgentConfig):
    """Configuration of the agent."""

    resources_server: ResourcesServerRef
    model_server: ModelServerRef


class ToolSimulationAgentRunRequest(BaseRunRequest):
    """A row with whatever fields its verifier needs."""

    model_config = ConfigDict(extra="allow")


class ToolSimulationAgentVerifyResponse(BaseVerifyResponse):
    """What the resources server answered, with all its fields."""

    model_config = ConfigDict(extra="allow")


class ToolSimulationAgent(SimpleResponsesAPIAgent):
    """An agent for data sets of single next actions. Sessions are neither seeded nor kept, metrics are the general ones."""

    config: ToolSimulationAgentConfig

    async def responses(self, request: Request, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        """The model's answer as it is."""
        path = self.url_path_for_request("/v1/responses", request)
        return await ask_model(self.server_client, self.config.model_server.name, path, body)

    async def run(self, request: Request, body: ToolSimulationAgentRunRequest) -> ToolSimulationAgentVerifyResponse:
        """One rollout: one model call, then the verdict (or the configured reward when verification is skipped)."""
        path = self.url_path_for_run("/v1/responses", body)
        if answers_as(self, ToolSimulationAgent):
            inner = request_to_self(request, path, self.rollout_id_from_run(body), {})
            answer = await self.responses(inner, body.responses_create_params)
        else:
            answer = await ask_agent(self.server_client, self.config.name, path, body.responses_create_params)
        judged = {**body.model_dump(), "response": answer.model_dump()}
        if self.config.skip_verification:
            judged |= {"reward": self.config.skip_verification_reward, "verification_skipped": True}
        else:
            verified = await post(self.server_client, self.config.resources_server.name, "/verify", judged)
            judged = await get_response_json(verified)
        return ToolSimulationAgentVerifyResponse.model_validate(judged)


if __name__ == "__main__":
    ToolSimulationAgent.run_webserver()
