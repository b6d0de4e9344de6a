"""A tool that agents may reach as a route or over MCP; the reward needs both the call and its words in the answer."""

from __future__ import annotations

from typing import Any, ClassVar

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field

from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)
from nemo_gym.openai_utils import NeMoGymResponse, NeMoGymResponseOutputMessage, NeMoGymResponseOutputText
from nemo_gym.server_utils import SESSION_ID_KEY
from resources_servers.example_mcp_weather.task_data import TaskData


class ExampleMCPWeatherResourcesServerConfig(BaseResourcesServerConfig):
    """Configuration of the server."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.UNSUPPORTED

    expose_tools_over_mcp: bool = True


class ExampleMCPWeatherSeedSessionRequest(TaskData, BaseSeedSessionRequest):
    """A row."""


class ExampleMCPWeatherGetWeatherRequest(BaseModel):
    """Arguments of the tool."""

    city: str


class ExampleMCPWeatherGetWeatherResponse(BaseModel):
    """What the tool answers."""

    city: str
    weather: str


class ExampleMCPWeatherVerifyRequest(TaskData, BaseVerifyRequest):
    """A row with the response to judge."""


class ExampleMCPWeatherVerifyResponse(ExampleMCPWeatherVerifyRequest, BaseVerifyResponse):
    """The verdict, with all fields of the row."""

    model_config = ConfigDict(extra="allow")

    tool_call_seen: bool
    """The expected city's weather was asked for in this session."""
    final_response_mentions_weather: bool
    """The answer holds what the tool said."""


class ExampleMCPWeatherResourcesServer(SimpleResourcesServer):
    """Offers the tool `get_weather`, and keeps per session what it was asked."""

    config: ExampleMCPWeatherResourcesServerConfig
    session_id_to_state: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Per session `weather_calls`, in order: what the tool was asked and answered."""

    def setup_webserver(self) -> FastAPI:
        """The documented routes and the tool."""
        app = super().setup_webserver()
        app.post("/get_weather")(self.get_weather)
        return app

    async def seed_session(self, request: Request, body: ExampleMCPWeatherSeedSessionRequest) -> BaseSeedSessionResponse:
        """Start a session with no calls."""
        self.session_id_to_state[request.session[SESSION_ID_KEY]] = _new_state()
        return BaseSeedSessionResponse()

    async def get_weather(
        self, request: Request, body: ExampleMCPWeatherGetWeatherRequest
    ) -> ExampleMCPWeatherGetWeatherResponse:
        """Tell the weather of a city."""
        answer = ExampleMCPWeatherGetWeatherResponse(city=body.city, weather=weather_of(body.city))
        state = self.session_id_to_state.setdefault(request.session[SESSION_ID_KEY], _new_state())
        state["weather_calls"].append(answer.model_dump())
        return answer

    async def verify(self, request: Request, body: ExampleMCPWeatherVerifyRequest) -> ExampleMCPWeatherVerifyResponse:
        """1.0 when the tool was asked for the expected city in this session and the answer repeats what it said, else 0.0.

        Upper and lower case do not matter. The session ends with its verdict.
        """
        city = body.verifier_metadata.expected_city.strip()
        state = self.session_id_to_state.pop(request.session[SESSION_ID_KEY], _new_state())
        called = city.casefold() in {call["city"].strip().casefold() for call in state["weather_calls"]}
        mentioned = weather_of(city).casefold() in _answer_text(body.response).casefold()
        return ExampleMCPWeatherVerifyResponse(
            **body.model_dump(),
            reward=float(called and mentioned),
            tool_call_seen=called,
            final_response_mentions_weather=mentioned,
        )


def weather_of(city: str) -> str:
    """What the tool says about a city."""
    return f"The weather in {city} is sunny and 72 F."


def _new_state() -> dict[str, Any]:
    return {"weather_calls": []}


def _answer_text(response: NeMoGymResponse) -> str:
    """The text of all messages of the model, one below the other."""
    messages = [item for item in response.output if isinstance(item, NeMoGymResponseOutputMessage)]
    return "\n".join(
        "".join(part.text for part in message.content if isinstance(part, NeMoGymResponseOutputText)) for message in messages
    ).strip()


if __name__ == "__main__":
    ExampleMCPWeatherResourcesServer.run_webserver()
