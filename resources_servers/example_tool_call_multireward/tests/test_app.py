"""The three parts of the reward, through the real application."""

from __future__ import annotations

from typing import Any

import pytest

from resources_servers.example_tool_call_multireward.app import ToolCallMultiRewardResourcesServer
from tests.component_servers import call, client_of, judged, make_server, message

TOOLS = [
    {"type": "function", "name": "get_weather", "parameters": {"type": "object", "required": ["city"]}, "strict": True},
    {"type": "function", "name": "anything", "parameters": None, "strict": None},
]
RIGHT = call("get_weather", '{"city": "Oslo"}')
ROW = {"expected_call": {"name": "get_weather", "arguments": {"city": "Oslo"}}}


@pytest.mark.parametrize(
    ("output", "correctness", "schema_valid", "form"),
    [
        ([RIGHT], 1, 1, 1),
        ([call("get_weather", '{"city": "Rome"}')], 0, 1, 1),
        ([call("get_weather", '{"city": "Oslo", "day": 1}')], 0, 1, 1),
        ([call("get_weather", '{"town": "Oslo"}')], 0, 0, 1),
        ([call("get_weather", "{")], 0, 0, 1),
        ([call("get_weather", '["city"]')], 0, 0, 1),
        ([call("get_weather", "[" * 100_000)], 0, 0, 1),
        ([call("get_snow", '{"city": "Oslo"}')], 0, 0, 1),
        ([call("anything", "{}")], 0, 1, 1),
        ([message("Wait."), RIGHT], 1, 1, 0),
        ([call("get_weather", "{}"), RIGHT], 1, 0, 0),
        ([RIGHT, call("get_weather", "{}")], 1, 1, 0),
        ([RIGHT, {"type": "function_call_output", "call_id": "c1", "output": "{}"}], 1, 1, 1),
        ([message("It is cold.")], 0, 0, 0),
        ([], 0, 0, 0),
    ],
)
async def test_parts(output: list[dict[str, Any]], correctness: float, schema_valid: float, form: float) -> None:
    async with client_of(make_server(ToolCallMultiRewardResourcesServer)) as client:
        answer = await client.post("/verify", json=judged(*output, tools=TOOLS, **ROW))
    assert answer.status_code == 200, answer.text
    verdict = answer.json()
    parts = {"correctness": correctness, "schema_valid": schema_valid, "format": form}
    assert verdict["reward_components"] == parts
    assert {key: verdict[key] for key in parts} == parts
    assert verdict["reward"] == sum(parts.values())
    assert verdict["expected_call"] == ROW["expected_call"]


async def test_predicted_calls_are_told() -> None:
    async with client_of(make_server(ToolCallMultiRewardResourcesServer)) as client:
        verdict = (await client.post("/verify", json=judged(RIGHT, call("x", "{"), **ROW))).json()
    assert verdict["predicted_calls"] == [ROW["expected_call"], {"name": "x", "arguments": "{"}]
    assert verdict["schema_valid"] == 0.0  # the row offers no tools


async def test_tool() -> None:
    async with client_of(make_server(ToolCallMultiRewardResourcesServer)) as client:
        told = await client.post("/get_weather", json={"city": "Oslo"})
    assert told.json() == {"city": "Oslo", "weather_description": "The weather in Oslo is sunny."}
