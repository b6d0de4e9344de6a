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
    NeMoGymEasyInputMessage,
    NeMoGymMessage,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    NeMoGymResponseFunctionToolCall,
    NeMoGymResponseOutputMessage,
)
from nemo_gym.server_utils import SESSION_ID_KEY

Info = dict[str, Any]

_MESSAGES = (NeMoGymResponseOutputMessage, NeMoGymEasyInputMessage, NeMoGymMessage)
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


def tool_output(call: NeMoGymResponseFunctionToolCall, result: Any) -> dict[str, str]:
    """An entry for `info["tool_outputs"]`: what a tool that the model called has to say, as JSON; what JSON cannot express, as text."""
    return {"call_id": call.call_id, "output": json.dumps(result, ensure_ascii=False, default=str)}


def extract_text(response: NeMoGymResponse) -> str:
    """The text of all messages of the model in an answer, joined without separator; a message's content may be parts or text."""
    said = (item for item in response.output if isinstance(item, _MESSAGES) and item.role == "assistant")
    return "".join(_text_of(item.content) for item in said)


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = (part if isinstance(part, dict) else part.model_dump() for part in content)
    return "".join(part["text"] for part in parts if part.get("type") in ("output_text", "input_text"))


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

    async def reset(self, metadata: dict[str, Any], session_id: str | None = None) -> tuple[str | None, Info]:
        """Begin an episode; gives the first observation, if there is one, and info.

        `metadata` holds the row's own fields, `session_id` names the episode until it ends.
        """
        return None, {}

    @abstractmethod
    async def step(
        self, action: NeMoGymResponse, metadata: dict[str, Any], session_id: str | None = None
    ) -> tuple[str | None, float, bool, bool, Info]:
        """Take one answer of the model; gives observation, reward, terminated, truncated and info."""

    async def close_session(self, session_id: str | None) -> None:
        """Forget an episode that has ended."""
        if session_id is not None:
            self.session_state.pop(session_id, None)

    @staticmethod
    def tool_output(call: NeMoGymResponseFunctionToolCall, result: Any) -> dict[str, str]:
        """As the function of the same name."""
        return tool_output(call, result)

    async def _reset_endpoint(self, body: EnvResetRequest, request: Request) -> EnvResetResponse:
        observation, info = await self.reset(body.model_extra or {}, request.session.get(SESSION_ID_KEY))
        return EnvResetResponse(observation=observation, info=info)

    async def _step_endpoint(self, body: EnvStepRequest, request: Request) -> EnvStepResponse:
        session_id = request.session.get(SESSION_ID_KEY)
        observation, reward, terminated, truncated, info = await self.step(body.response, body.model_extra or {}, session_id)
        if terminated or truncated:
            await self.close_session(session_id)
        return EnvStepResponse(observation=observation, reward=reward, terminated=terminated, truncated=truncated, info=info)

    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        """Never asked: rewards come from the steps."""
        raise NotImplementedError(f"{type(self).__name__} gives its rewards in /step; run it with gymnasium_agent")

    async def get_reverify_mode(self) -> ReverifyMode:
        """An episode cannot be judged again after it has ended."""
        return ReverifyMode.UNSUPPORTED
