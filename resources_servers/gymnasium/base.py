"""Base class of environments that lead the conversation: they say what the model sees next, what it earned and when it is over."""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import Any

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field

from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)
from nemo_gym.openai_utils import (
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    NeMoGymResponseFunctionToolCall,
)
from nemo_gym.server_utils import SESSION_ID_KEY

Info = dict[str, Any]

_WITHOUT_A_PLACE_HERE = ("/seed_session", "/verify")


class EnvResetRequest(BaseModel):
    """A row, which begins an episode."""

    model_config = ConfigDict(extra="allow")

    responses_create_params: NeMoGymResponseCreateParamsNonStreaming


class EnvResetResponse(BaseModel):
    """What the model is told first, beside the row's own input."""

    observation: str | None = None
    info: Info = Field(default_factory=dict)


class EnvStepRequest(EnvResetRequest):
    """A row and the model's answer of this turn."""

    response: NeMoGymResponse


class EnvStepResponse(BaseModel):
    """What came of one answer."""

    observation: str | None = None
    reward: float = 0.0
    """Of this step alone; the agent adds them up."""
    terminated: bool = False
    """The episode came to its end."""
    truncated: bool = False
    """The episode was cut off."""
    info: Info = Field(default_factory=dict)
    """`tool_outputs` of it (see `tool_output`) become items of the conversation."""


class GymnasiumServer(SimpleResourcesServer):
    """A resources server with `/reset` and `/step` in place of `/seed_session` and `/verify`; a subclass implements `step`."""

    config: BaseResourcesServerConfig
    session_state: dict[str, Any] = Field(default_factory=dict)
    """Whatever an environment keeps of a running episode, by session id."""

    def setup_webserver(self) -> FastAPI:
        """An application with `/reset`, `/step` and `/aggregate_metrics`."""
        app = super().setup_webserver()
        app.router.routes[:] = [route for route in app.router.routes if getattr(route, "path", None) not in _WITHOUT_A_PLACE_HERE]
        app.post("/reset")(self._reset_endpoint)
        app.post("/step")(self._step_endpoint)
        return app

    async def reset(self, metadata: dict[str, Any], session_id: str) -> tuple[str | None, Info]:
        """Begin an episode; gives the first observation, if there is one, and info.

        `metadata` holds the row's own fields, `session_id` names the episode until it ends.
        """
        return None, {}

    @abstractmethod
    async def step(
        self, action: NeMoGymResponse, metadata: dict[str, Any], session_id: str
    ) -> tuple[str | None, float, bool, bool, Info]:
        """Take one answer of the model; gives observation, reward, terminated, truncated and info."""

    async def close_session(self, session_id: str) -> None:
        """Forget an episode that has ended."""
        self.session_state.pop(session_id, None)

    async def _reset_endpoint(self, body: EnvResetRequest, request: Request) -> EnvResetResponse:
        observation, info = await self.reset(body.model_extra or {}, request.session[SESSION_ID_KEY])
        return EnvResetResponse(observation=observation, info=info)

    async def _step_endpoint(self, body: EnvStepRequest, request: Request) -> EnvStepResponse:
        session_id = request.session[SESSION_ID_KEY]
        observation, reward, terminated, truncated, info = await self.step(body.response, body.model_extra or {}, session_id)
        if terminated or truncated:
            await self.close_session(session_id)
        return EnvStepResponse(observation=observation, reward=reward, terminated=terminated, truncated=truncated, info=info)

    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        """Never asked: rewards come from the steps."""
        raise NotImplementedError(f"{type(self).__name__} gives its rewards in /step; run it with gymnasium_agent")

    async def reverify_mode(self) -> str:
        """An episode cannot be judged again after it has ended."""
        return ReverifyMode.UNSUPPORTED.value


def tool_output(call: NeMoGymResponseFunctionToolCall, result: Any) -> dict[str, str]:
    """An entry for `info["tool_outputs"]`: what a tool that the model called has to say, as JSON."""
    return {"call_id": call.call_id, "output": json.dumps(result, ensure_ascii=False)}


def extract_text(response: NeMoGymResponse) -> str:
    """The text of all messages of an answer, joined without separator."""
    return response.output_text
