"""The smallest environment with a tool: the model may ask for the weather, and every rollout is worth 1.0."""

from __future__ import annotations

from typing import ClassVar

from fastapi import FastAPI
from pydantic import BaseModel

from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)


class SimpleWeatherResourcesServerConfig(BaseResourcesServerConfig):
    """Configuration of the server."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS


class GetWeatherRequest(BaseModel):
    """Arguments of the tool."""

    city: str


class GetWeatherResponse(BaseModel):
    """What the tool answers."""

    city: str
    weather_description: str


class SimpleWeatherResourcesServer(SimpleResourcesServer):
    """Offers the tool `get_weather`."""

    config: SimpleWeatherResourcesServerConfig

    def setup_webserver(self) -> FastAPI:
        """The documented routes and the tool."""
        app = super().setup_webserver()
        app.post("/get_weather")(self.get_weather)
        return app

    async def get_weather(self, body: GetWeatherRequest) -> GetWeatherResponse:
        """Tell the weather of a city."""
        return GetWeatherResponse(city=body.city, weather_description=f"The weather in {body.city} is cold.")

    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        """Full reward, whatever happened: this environment shows how a tool is called, not how an answer is judged."""
        return BaseVerifyResponse(responses_create_params=body.responses_create_params, response=body.response, reward=1.0)


if __name__ == "__main__":
    SimpleWeatherResourcesServer.run_webserver()
