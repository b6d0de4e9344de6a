"""Episodes through the real application: what reset and step are given, what they give, and when an episode is forgotten."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from pydantic import Field

from nemo_gym.openai_utils import NeMoGymResponse, NeMoGymResponseFunctionToolCall
from resources_servers.gymnasium import GymnasiumServer, extract_text, tool_output
from tests.component_servers import client_of, make_server, message, response_of

ROW = {"responses_create_params": {"input": "Count."}, "limit": 2, "_ng_task_index": 4}


class Counting(GymnasiumServer):
    """Ends after `limit` steps, or truncates when the model says so."""

    closed: list[str] = Field(default_factory=list)

    async def reset(self, metadata: dict[str, Any], session_id: str) -> tuple[str | None, dict[str, Any]]:
        self.session_state[session_id] = 0
        return f"limit {metadata['limit']}", {"seen": sorted(metadata)}

    async def step(
        self, action: NeMoGymResponse, metadata: dict[str, Any], session_id: str
    ) -> tuple[str | None, float, bool, bool, dict[str, Any]]:
        self.session_state[session_id] += 1
        count = self.session_state[session_id]
        cut_off = extract_text(action) == "stop"
        return f"step {count}", 0.5, count >= metadata["limit"], cut_off, {"count": count}

    async def close_session(self, session_id: str) -> None:
        self.closed.append(session_id)
        await super().close_session(session_id)


class Plain(GymnasiumServer):
    async def step(self, action: Any, metadata: Any, session_id: str) -> tuple[str | None, float, bool, bool, dict[str, Any]]:
        return None, 1.0, True, False, {}


def step_of(text: str) -> dict[str, Any]:
    return {**ROW, "response": response_of(message(text))}


@pytest.mark.parametrize("prefix", ["", "/ng-rollout/4-0"])
async def test_an_episode(prefix: str) -> None:
    server = make_server(Counting)
    async with client_of(server) as client:
        started = await client.post(f"{prefix}/reset", json=ROW)
        assert started.json() == {"observation": "limit 2", "info": {"seen": ["_ng_task_index", "limit"]}}
        first = await client.post(f"{prefix}/step", json=step_of("one"))
        assert first.json() == {
            "observation": "step 1", "reward": 0.5, "terminated": False, "truncated": False, "info": {"count": 1},
        }  # fmt: skip
        (session,) = server.session_state
        second = await client.post(f"{prefix}/step", json=step_of("two"))
    assert (second.json()["terminated"], second.json()["observation"]) == (True, "step 2")
    assert server.session_state == {}
    assert server.closed == [session]


async def test_a_truncated_episode_is_forgotten_too() -> None:
    server = make_server(Counting)
    async with client_of(server) as client:
        await client.post("/reset", json=ROW)
        answer = await client.post("/step", json=step_of("stop"))
    assert (answer.json()["terminated"], answer.json()["truncated"]) == (False, True)
    assert server.session_state == {}


async def test_episodes_do_not_mix() -> None:
    server = make_server(Counting)
    async with client_of(server) as one, client_of(server) as other:
        for client in (one, other):
            await client.post("/reset", json={**ROW, "limit": 9})
        await one.post("/step", json=step_of("x"))
        answer = await other.post("/step", json=step_of("x"))
    assert answer.json()["info"] == {"count": 1}
    assert sorted(server.session_state.values()) == [1, 1]


async def test_routes_and_defaults() -> None:
    async with client_of(make_server(Plain)) as client:
        assert (await client.post("/reset", json=ROW)).json() == {"observation": None, "info": {}}
        assert (await client.post("/step", json=step_of("x"))).json()["reward"] == 1.0
        for path in ("/verify", "/seed_session"):
            assert (await client.post(path, json=step_of("x"))).status_code == 404
        metrics = await client.post("/aggregate_metrics", json={"verify_responses": []})
        assert metrics.status_code == 200
        assert (await client.get("/reverify_mode")).json() == "unsupported"
        assert (await client.post("/step", json=ROW)).json()["detail"][0]["loc"] == ["body", "response"]


async def test_an_error_of_the_environment_is_named() -> None:
    async with client_of(make_server(Counting)) as client:
        answer = await client.post("/step", json=step_of("never reset"))
    assert answer.status_code == 500 and answer.json().startswith("KeyError(")


def test_verify_is_not_for_episodes() -> None:
    import asyncio

    with pytest.raises(NotImplementedError, match="Plain gives its rewards in /step"):
        asyncio.run(make_server(Plain).verify(None))


def test_helpers() -> None:
    call = NeMoGymResponseFunctionToolCall(name="rain", arguments="{}", call_id="c7")
    assert tool_output(call, {"rain": "nö"}) == {"call_id": "c7", "output": '{"rain": "nö"}'}
    assert json.loads(tool_output(call, "text")["output"]) == "text"
    assert make_server(Plain).tool_output(call, [1, None]) == {"call_id": "c7", "output": "[1, null]"}
    assert GymnasiumServer.tool_output(call, date(2020, 1, 1))["output"] == '"2020-01-01"'
    response = NeMoGymResponse.model_validate(response_of(message("a"), message("b")))
    assert extract_text(response) == "ab"
    assert extract_text(NeMoGymResponse.model_validate(response_of())) == ""


INPUT = {"type": "input_text", "text": "in"}


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ([{"type": "message", "role": "assistant", "content": "hello"}], "hello"),
        ([{"type": "message", "role": "assistant", "content": "a"}, message("b")], "ab"),
        ([{"type": "message", "role": "user", "content": "asked"}, message("b")], "b"),
        ([{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "c", "annotations": []}]}], "c"),
        ([{"type": "message", "role": "assistant", "content": [INPUT, {"type": "input_image", "detail": "auto"}]}], "in"),
        ([{"type": "message", "role": "user", "content": [INPUT]}], ""),
        ([{"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]}], ""),
    ],
)
def test_the_text_of_an_answer(output: list[dict[str, Any]], text: str) -> None:
    assert extract_text(NeMoGymResponse.model_validate(response_of(*output))) == text


def test_a_refusal_is_no_text() -> None:
    refusal = {**message(""), "content": [{"type": "refusal", "refusal": "no"}]}
    assert extract_text(NeMoGymResponse.model_validate(response_of(refusal))) == ""


async def test_an_episode_can_be_led_without_a_session() -> None:
    server = make_server(Plain)
    assert await server.reset({}) == (None, {})
    await server.close_session(None)
