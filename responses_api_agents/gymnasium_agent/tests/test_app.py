"""Episodes against real servers on loopback ports; the model is scripted, the environment is a `GymnasiumServer`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, HTTPException, Request
from pydantic import Field, ValidationError

from nemo_gym.openai_utils import NeMoGymResponseFunctionToolCall
from nemo_gym.server_utils import global_aiohttp_client_exit
from resources_servers.gymnasium import GymnasiumServer, extract_text, tool_output
from responses_api_agents.gymnasium_agent.app import GymnasiumAgent
from tests.component_servers import application_of, call, client_of, make_server, message, place, response_of
from tests.loopback import Endpoint, Reply, endpoint, serving

REFERENCES = {
    "resources_server": {"type": "resources_servers", "name": "env"},
    "model_server": {"type": "responses_api_models", "name": "model"},
}
USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 1},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": None},
    "total_tokens": 13,
}


class Door(GymnasiumServer):
    """Opens for the word of the row; a function call rings its bell. What it may say of itself is in the row, too."""

    closings: list[str] = Field(default_factory=list)
    steps: list[dict[str, Any]] = Field(default_factory=list)
    closing_fails: bool = False

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/close")(self.close)
        return app

    async def close(self, request: Request) -> dict[str, bool]:
        self.closings.append(request.session["session_id"])
        if self.closing_fails:
            raise HTTPException(503, "the hinge is stuck")
        return {"ok": True}

    async def reset(self, metadata: dict[str, Any], session_id: str) -> tuple[str | None, dict[str, Any]]:
        self.session_state[session_id] = 0
        return metadata.get("greeting"), metadata.get("info", {})

    async def step(
        self, action: Any, metadata: dict[str, Any], session_id: str
    ) -> tuple[str | None, float, bool, bool, dict[str, Any]]:
        self.steps.append(metadata)
        self.session_state[session_id] += 1
        said = extract_text(action)
        if said == "break":
            raise RuntimeError("the door broke")
        if said == metadata["word"]:
            return None, 1.0, True, False, {"tries": self.session_state[session_id]}
        calls = [item for item in action.output if isinstance(item, NeMoGymResponseFunctionToolCall)]
        outputs = {"tool_outputs": [tool_output(item, "ding") for item in calls]} if calls else {}
        return "Try again.", -0.25, False, said == "give up", outputs


class Stack:
    def __init__(self, door: Door, model: Endpoint, agent: httpx.AsyncClient) -> None:
        self.door = door
        self.model = model
        self.agent = agent

    async def run(self, **fields: Any) -> httpx.Response:
        params = {"input": [{"role": "user", "content": "Open."}], "temperature": 0.5}
        row = {"responses_create_params": params, "word": "sesame", "_ng_task_index": 3, "_ng_rollout_index": 1, **fields}
        return await self.agent.post("/run", json=row)


@asynccontextmanager
async def stack_with(*turns: Any, observed: bool = False, **settings: Any) -> AsyncIterator[Stack]:
    """Turns are texts, output items or whole replies of the model."""

    def reply_of(turn: Any) -> Reply:
        if isinstance(turn, Reply):
            return turn
        items = [message(turn)] if isinstance(turn, str) else turn
        return Reply(body=response_of(*items, usage=USAGE), headers={"Set-Cookie": "model_session=7"})

    door = make_server(Door)
    async with serving(application_of(door)) as door_url, endpoint(*map(reply_of, turns)) as model:
        others = {
            "model": place("responses_api_models", model.base_url.removesuffix("/v1")),
            "env": place("resources_servers", door_url),
            "observability_enabled": observed,
        }
        async with client_of(make_server(GymnasiumAgent, REFERENCES | settings, others)) as client:
            yield Stack(door, model, client)
        await global_aiohttp_client_exit()


async def test_an_episode_with_tools_observations_and_a_sum_of_rewards() -> None:
    ring = [message("Let me ring."), call("ring", "{}")]
    async with stack_with("please", ring, "sesame") as stack:
        answer = await stack.run(greeting="A door.")
        assert answer.status_code == 200, answer.text
    result = answer.json()
    assert (result["reward"], result["terminated"], result["truncated"], result["info"]) == (0.5, True, False, {"tries": 3})
    assert [item["content"] for item in result["responses_create_params"]["input"]] == ["Open.", "A door."]
    assert "word" not in result
    output = result["response"]["output"]
    assert [(item["type"], item.get("role")) for item in output] == [
        ("message", "assistant"),
        ("message", "user"),
        ("message", "assistant"),
        ("function_call", None),
        ("function_call_output", None),
        ("message", "user"),
        ("message", "assistant"),
    ]
    assert (output[4]["call_id"], output[4]["output"]) == ("c1", '"ding"')
    assert result["response"]["usage"]["total_tokens"] == 39
    last_request = stack.model.requests[-1].body
    assert len(last_request["input"]) == 2 + 6 and last_request["temperature"] == 0.5
    assert [request.headers.get("Cookie") for request in stack.model.requests] == [None, *["model_session=7"] * 2]
    assert "_ng_step_request_id" not in stack.door.steps[0]
    assert not stack.door.closings and not stack.door.session_state


async def test_text_input_without_an_observation() -> None:
    async with stack_with("sesame") as stack:
        result = (await stack.run(responses_create_params={"input": "Open."}, greeting="A door.")).json()
        assert [item["content"] for item in result["responses_create_params"]["input"]] == ["Open.", "A door."]
        result = (await stack.run(responses_create_params={"input": "Open."})).json()
        assert result["responses_create_params"]["input"] == "Open."
        assert stack.model.requests[-1].body["input"] == [{"content": "Open.", "role": "user", "type": "message"}]


async def test_the_limit_of_steps_truncates() -> None:
    async with stack_with("no", max_steps=2) as stack:
        result = (await stack.run(info={"supports_explicit_close": True})).json()
        assert len(stack.door.closings) == 1
    assert (result["terminated"], result["truncated"], result["reward"]) == (False, True, -0.5)
    assert [item["role"] for item in result["response"]["output"]] == ["assistant", "user", "assistant"]


async def test_the_environment_truncates() -> None:
    async with stack_with("give up") as stack:
        result = (await stack.run()).json()
        assert len(stack.model.requests) == 1
    assert (result["terminated"], result["truncated"]) == (False, True)


async def test_steps_carry_an_id_where_that_is_supported() -> None:
    async with stack_with("no", "no", "sesame") as stack:
        await stack.run(info={"supports_step_idempotency": True})
        ids = [step["_ng_step_request_id"] for step in stack.door.steps]
    assert len(set(ids)) == 3 and all(ids)


async def test_a_failure_to_close_is_a_warning_after_a_good_episode() -> None:
    async with stack_with("sesame") as stack:
        stack.door.closing_fails = True
        result = (await stack.run(info={"supports_explicit_close": True})).json()
    assert (result["reward"], result["info"]["tries"]) == (1.0, 1)
    warning = result["info"]["cleanup_warning"]
    assert (warning["operation"], warning["error_type"]) == ("close", "ClientResponseError")
    assert "503" in warning["message"]


@pytest.mark.parametrize(
    ("turn", "told"), [(Reply(500, {"error": "the model broke"}), "the model broke"), ("break", "the door broke")]
)
@pytest.mark.parametrize("closing_fails", [False, True])
async def test_an_episode_that_fails_is_closed(turn: Any, told: str, closing_fails: bool) -> None:
    async with stack_with(turn) as stack:
        stack.door.closing_fails = closing_fails
        answer = await stack.run(info={"supports_explicit_close": True})
        assert len(stack.door.closings) == 1
        assert list(stack.door.session_state) in ([], stack.door.closings)
    assert answer.status_code == 500 and told in answer.json()


async def test_a_reset_of_the_wrong_form_is_closed() -> None:
    reset = Reply(body={"observation": {"no": "text"}, "info": {"supports_explicit_close": True}})
    async with endpoint(reset, Reply(body={})) as environment:
        others = {"env": place("resources_servers", environment.base_url.removesuffix("/v1"))}
        async with client_of(make_server(GymnasiumAgent, REFERENCES, others)) as client:
            answer = await client.post("/run", json={"responses_create_params": {"input": "x"}})
        await global_aiohttp_client_exit()
    assert answer.status_code == 500 and "observation" in answer.json()
    assert [request.path for request in environment.requests] == ["/reset", "/close"]


async def test_a_rollout_that_is_given_up_is_closed() -> None:
    slow = Reply(body=response_of(message("no")), delay=5)
    async with stack_with(slow) as stack:
        task = asyncio.create_task(stack.run(info={"supports_explicit_close": True}))
        while not stack.model.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert len(stack.door.closings) == 1


async def test_cookies_of_the_caller_reach_the_environment() -> None:
    async with endpoint(Reply(500, "no")) as environment:
        others = {"env": place("resources_servers", environment.base_url.removesuffix("/v1"))}
        async with client_of(make_server(GymnasiumAgent, REFERENCES, others)) as client:
            await client.post("/run", json={"responses_create_params": {"input": "x"}}, headers={"cookie": "session=abc"})
        await global_aiohttp_client_exit()
    assert environment.requests[0].headers["Cookie"] == "session=abc"


async def test_calls_of_an_observed_rollout_carry_its_id() -> None:
    async with stack_with("sesame", observed=True) as stack:
        assert (await stack.run()).json()["reward"] == 1.0
        assert [request.path for request in stack.model.requests] == ["/ng-rollout/3-1/v1/responses"]


async def test_the_other_routes() -> None:
    verdicts = [{"_ng_task_index": 0, "_ng_rollout_index": n, "reward": float(n)} for n in range(2)]
    async with stack_with("hello") as stack:
        answer = await stack.agent.post("/v1/responses", json={"input": "Hi"})
        assert answer.json()["output"][0]["content"][0]["text"] == "hello"
        metrics = await stack.agent.post("/aggregate_metrics", json={"verify_responses": verdicts})
        assert metrics.json()["key_metrics"]["mean/reward"] == 0.5
        assert not stack.door.steps


def test_no_steps_are_refused() -> None:
    with pytest.raises(ValidationError):
        make_server(GymnasiumAgent, REFERENCES | {"max_steps": 0})
