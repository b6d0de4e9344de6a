"""The tool by route and over MCP, and the verdict on call and answer, through the real application."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from nemo_gym.mcp_auto_exposure import maybe_auto_expose
from resources_servers.example_mcp_weather.app import ExampleMCPWeatherResourcesServer
from tests.component_servers import client_of, judged, make_server, message

ROW = {"verifier_metadata": {"expected_city": "Oslo", "note": "kept"}, "uuid": "one"}
SENTENCE = "The weather in Oslo is sunny and 72 F."


async def verdict(client: httpx.AsyncClient, text: str, **row: Any) -> dict[str, Any]:
    answer = await client.post("/verify", json=judged(message(text), **(row or ROW)))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize(
    ("asked", "text", "seen", "mentioned"),
    [
        (["Oslo"], f"It says: {SENTENCE}", True, True),
        (["OSLO "], SENTENCE.upper(), True, True),
        (["Rome", "Oslo"], SENTENCE, True, True),
        (["Rome"], SENTENCE, False, True),
        ([], SENTENCE, False, True),
        (["Oslo"], "It is sunny.", True, False),
    ],
)
async def test_call_and_words_are_both_needed(asked: list[str], text: str, seen: bool, mentioned: bool) -> None:
    server = make_server(ExampleMCPWeatherResourcesServer)
    async with client_of(server) as client:
        await client.post("/seed_session", json=ROW)
        for city in asked:
            told = await client.post("/get_weather", json={"city": city})
            assert told.json() == {"city": city, "weather": f"The weather in {city} is sunny and 72 F."}
        found = await verdict(client, text)
    assert (found["reward"], found["tool_call_seen"], found["final_response_mentions_weather"]) == (
        float(seen and mentioned), seen, mentioned,
    )  # fmt: skip
    assert (found["verifier_metadata"], found["uuid"]) == (ROW["verifier_metadata"], "one")
    assert server.session_id_to_state == {}


async def test_a_row_without_a_city_means_paris() -> None:
    async with client_of(make_server(ExampleMCPWeatherResourcesServer)) as client:
        await client.post("/get_weather", json={"city": "Paris"})
        assert (await verdict(client, "The weather in Paris is sunny and 72 F.", uuid="two"))["reward"] == 1.0


async def test_calls_of_another_session_do_not_count() -> None:
    server = make_server(ExampleMCPWeatherResourcesServer)
    async with client_of(server) as one, client_of(server) as other:
        for client in (one, other):
            await client.post("/seed_session", json=ROW)
        await other.post("/get_weather", json={"city": "Oslo"})
        assert (await verdict(one, SENTENCE))["reward"] == 0.0
        assert (await verdict(other, SENTENCE))["reward"] == 1.0


async def test_a_call_over_mcp_counts_for_its_session() -> None:
    server = make_server(ExampleMCPWeatherResourcesServer)
    app = server.setup_webserver()
    maybe_auto_expose(server, app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://mcp") as client,
    ):
        seeded = (await client.post("/seed_session", json=ROW)).json()["mcp"]
        assert (seeded["server_name"], seeded["url_path"], seeded["transport"]) == ("under_test", "/mcp", "http")
        accepted = {"Accept": "application/json, text/event-stream"}
        asked = {
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_weather", "arguments": {"city": "Oslo"}},
        }  # fmt: skip
        refused = (await client.post("/mcp", json=asked, headers=accepted)).json()["result"]
        assert refused["isError"] is True
        told = (await client.post("/mcp", json=asked, headers=accepted | seeded["headers"])).json()["result"]
        assert told["structuredContent"] == {"city": "Oslo", "weather": SENTENCE}
        assert (await verdict(client, SENTENCE))["reward"] == 1.0
