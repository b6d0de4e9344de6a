"""The tool and the constant reward, through the real application."""

from __future__ import annotations

from resources_servers.example_single_tool_call.app import SimpleWeatherResourcesServer
from tests.component_servers import client_of, judged, make_server, message


async def test_tool_and_verdict() -> None:
    async with client_of(make_server(SimpleWeatherResourcesServer)) as client:
        told = await client.post("/get_weather", json={"city": "Oslo"})
        assert told.json() == {"city": "Oslo", "weather_description": "The weather in Oslo is cold."}
        assert (await client.post("/get_weather", json={"town": "Oslo"})).status_code == 422
        for output in ([], [message("It is warm.")]):
            verdict = (await client.post("/verify", json=judged(*output))).json()
            assert (verdict["reward"], verdict["failure_reason"]) == (1.0, None)
        assert (await client.get("/reverify_mode")).json() == "stateless"
