"""One tool call, judged in three parts, so that training can tell a wrong argument from a wrong form.

The tool is that of `example_single_tool_call`, written out again: each example stands alone, to be copied as the start of another environment.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from fastapi import FastAPI
from pydantic import BaseModel

from nemo_gym.base_resources_server import (
    BaseMultiRewardVerifyResponse,
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    ReverifyMode,
    SimpleResourcesServer,
)
from nemo_gym.openai_utils import NeMoGymResponseFunctionToolCall, NeMoGymResponseOutputMessage
from resources_servers.example_tool_call_multireward.task_data import ExpectedCall, TaskData


class ToolCallMultiRewardResourcesServerConfig(BaseResourcesServerConfig):
    """Configuration of the server."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS


class GetWeatherRequest(BaseModel):
    """Arguments of the tool."""

    city: str


class GetWeatherResponse(BaseModel):
    """What the tool answers."""

    city: str
    weather_description: str


class ToolCallMultiRewardVerifyRequest(TaskData, BaseVerifyRequest):
    """A row with the response to judge."""


class ToolCallMultiRewardVerifyResponse(BaseMultiRewardVerifyResponse):
    """The verdict; each part also stands beside the sum, so that it is aggregated."""

    expected_call: ExpectedCall
    predicted_calls: list[dict[str, Any]]
    """Name and arguments of each call; arguments that are no JSON object as the text they are."""
    correctness: float
    schema_valid: float
    format: float


class ToolCallMultiRewardResourcesServer(SimpleResourcesServer):
    """Offers the tool `get_weather`, and compares the calls with the expected one."""

    config: ToolCallMultiRewardResourcesServerConfig

    def setup_webserver(self) -> FastAPI:
        """The documented routes and the tool."""
        app = super().setup_webserver()
        app.post("/get_weather")(self.get_weather)
        return app

    async def get_weather(self, body: GetWeatherRequest) -> GetWeatherResponse:
        """Tell the weather of a city."""
        return GetWeatherResponse(city=body.city, weather_description=f"The weather in {body.city} is sunny.")

    async def verify(self, body: ToolCallMultiRewardVerifyRequest) -> ToolCallMultiRewardVerifyResponse:
        """The sum of three parts, each 0.0 or 1.0.

        `correctness`: some call has the expected name and arguments. `schema_valid`: the first call's arguments are an object with
        all keys that its tool requires. `format`: one call and no message.
        """
        output = body.response.output
        calls = [item for item in output if isinstance(item, NeMoGymResponseFunctionToolCall)]
        predicted = [{"name": call.name, "arguments": _arguments(call)} for call in calls]
        talked = any(isinstance(item, NeMoGymResponseOutputMessage) for item in output)
        correctness = float(body.expected_call.model_dump() in predicted)
        schema_valid = float(bool(predicted) and _has_required(predicted[0], body.responses_create_params.tools))
        form = float(len(calls) == 1 and not talked)
        return ToolCallMultiRewardVerifyResponse(
            responses_create_params=body.responses_create_params,
            response=body.response,
            reward=correctness + schema_valid + form,
            reward_components={"correctness": correctness, "schema_valid": schema_valid, "format": form},
            expected_call=body.expected_call,
            predicted_calls=predicted,
            correctness=correctness,
            schema_valid=schema_valid,
            format=form,
        )


def _arguments(call: NeMoGymResponseFunctionToolCall) -> Any:
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call.arguments
    return arguments if isinstance(arguments, dict) else call.arguments


def _has_required(call: dict[str, Any], tools: list[Any]) -> bool:
    """Whether a call is of one of `tools` and its arguments hold the keys that this tool requires."""
    for tool in tools:
        if tool.get("name") == call["name"]:
            required = (tool.get("parameters") or {}).get("required") or []
            return isinstance(call["arguments"], dict) and all(key in call["arguments"] for key in required)
    return False


if __name__ == "__main__":
    ToolCallMultiRewardResourcesServer.run_webserver()
