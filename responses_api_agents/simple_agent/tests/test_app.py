"""The loop against a real resources server and a real model server on loopback ports; the model's turns are scripted."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Body, FastAPI, Header, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from nemo_gym.openai_utils import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from nemo_gym.rollout_observability import TrajectoryRecord
from nemo_gym.server_utils import SESSION_ID_KEY, global_aiohttp_client_exit
from responses_api_agents.simple_agent.app import SimpleAgent
from tests.component_servers import application_of, make_server, message, place
from tests.loopback import serving, serving_in_thread


class RainRequest(BaseModel):
    city: str


class CountingSeed(BaseSeedSessionRequest):
    model_config = ConfigDict(extra="allow")


class CountingVerifyResponse(BaseVerifyResponse):
    calls: int
    resolved: bool | None = None


class Weather(SimpleResourcesServer):
    """Counts the tool calls of each session; the reward is that count."""

    config: BaseResourcesServerConfig
    calls: dict[str, int] = Field(default_factory=dict)
    seeds: list[dict[str, Any]] = Field(default_factory=list)
    verify_bodies: list[dict[str, Any]] = Field(default_factory=list)
    log: list[str] = Field(default_factory=list)
    resolved: bool | None = None

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/rain")(self.rain)
        app.post("/bytes")(self.raw_bytes)
        app.post("/broken")(self.broken)
        app.post("/slow")(self.slow)
        return app

    async def seed_session(self, request: Request, body: CountingSeed) -> BaseSeedSessionResponse:
        self.seeds.append(await request.json())
        self.calls[request.session[SESSION_ID_KEY]] = 0
        return BaseSeedSessionResponse()

    async def rain(self, request: Request, body: RainRequest) -> dict[str, str]:
        self.log.append(f"begin {body.city}")
        await asyncio.sleep(0.01)
        self.log.append(f"end {body.city}")
        self.calls[request.session[SESSION_ID_KEY]] += 1
        return {"rain": "no", "city": body.city}

    async def raw_bytes(self) -> Response:
        return Response(b"ok \xff\xfe\x00", media_type="application/octet-stream")

    async def slow(self) -> dict[str, str]:
        await asyncio.sleep(2)
        return {}

    async def broken(self) -> None:
        raise KeyError("gone")

    async def verify(self, request: Request, body: BaseVerifyRequest) -> CountingVerifyResponse:
        self.verify_bodies.append(await request.json())
        calls = self.calls[request.session[SESSION_ID_KEY]]
        return CountingVerifyResponse(
            responses_create_params=body.responses_create_params,
            response=body.response,
            reward=float(calls),
            calls=calls,
            resolved=self.resolved,
        )


class ScriptedModel:
    """Answers `/v1/responses` with the next scripted turn (an output list, or a whole answer); keeps the requests."""

    def __init__(self) -> None:
        self.turns: list[Any] = []
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.cookies: list[dict[str, str]] = []
        self.app = FastAPI()
        self.app.post("/{path:path}")(self.answer)

    async def answer(self, request: Request) -> Response:
        self.requests.append(await request.json())
        self.paths.append(request.url.path)
        self.cookies.append(dict(request.cookies))
        turn = self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]
        if isinstance(turn, float):
            await asyncio.sleep(turn)
        if isinstance(turn, Response):
            return turn
        reply = JSONResponse(turn if isinstance(turn, dict) else response_of(turn))
        reply.set_cookie("model_session", str(len(self.requests)))
        return reply


def response_of(output: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 1},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": None},
        "total_tokens": 13,
    }
    return {
        "id": "resp_9",
        "created_at": 1,
        "model": "scripted",
        "object": "response",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
        **fields,
    }


def call(name: str, arguments: Any, call_id: str = "c1") -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"type": "function_call", "name": name, "arguments": text, "call_id": call_id}


REASONING = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}], "status": "completed"}


class Stack:
    """The three servers of a test."""

    def __init__(self, weather: Weather, model: ScriptedModel, urls: dict[str, str]) -> None:
        self.weather = weather
        self.model = model
        self.config = {
            "weather": place("resources_servers", urls["weather"]),
            "model": place("responses_api_models", urls["model"]),
        }

    def application(self, kind: type[SimpleAgent] = SimpleAgent, **settings: Any) -> Any:
        servers = {
            "resources_server": {"type": "resources_servers", "name": "weather"},
            "model_server": {"type": "responses_api_models", "name": "model"},
        }
        return application_of(make_server(kind, {"name": "simple_agent", **servers, **settings}, self.config))

    def agent(self, kind: type[SimpleAgent] = SimpleAgent, **settings: Any) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app=self.application(kind, **settings))
        return httpx.AsyncClient(transport=transport, base_url="http://agent")

    async def respond(self, **settings: Any) -> dict[str, Any]:
        async with self.agent(**settings) as agent:
            answer = await agent.post("/v1/responses", json={"input": "Rain in Oslo?"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def run(self, row: dict[str, Any], **settings: Any) -> httpx.Response:
        async with self.agent(**settings) as agent:
            return await agent.post("/run", json=row)


@pytest.fixture(scope="module")
def servers() -> Iterator[Stack]:
    weather, model = make_server(Weather, {"name": "weather"}), ScriptedModel()
    with serving_in_thread(application_of(weather)) as weather_url, serving_in_thread(model.app) as model_url:
        yield Stack(weather, model, {"weather": weather_url, "model": model_url})


@pytest.fixture
async def stack(servers: Stack) -> AsyncIterator[Stack]:
    for record in (
        servers.model.turns, servers.model.requests, servers.model.paths, servers.model.cookies,
        servers.weather.seeds, servers.weather.verify_bodies, servers.weather.log,
    ):  # fmt: skip
        record.clear()
    for key in ("observability_enabled", "token_id_capture", "simple_agent"):
        servers.config.pop(key, None)
    yield servers
    await global_aiohttp_client_exit()


def row(**fields: Any) -> dict[str, Any]:
    tool = {"type": "function", "name": "rain", "parameters": {"type": "object"}, "strict": True}
    params = {"input": [{"role": "user", "content": "Rain in Oslo?"}], "tools": [tool], "temperature": 0.5}
    return {"responses_create_params": params, "expected": "no", "_ng_task_index": 3, "_ng_rollout_index": 1, **fields}


def outputs(response: dict[str, Any]) -> list[Any]:
    return [item["output"] for item in response["output"] if item["type"] == "function_call_output"]


async def test_run_seeds_loops_and_verifies_in_one_session(stack: Stack) -> None:
    stack.model.turns = [[call("rain", {"city": "Oslo"})], [call("rain", {"city": "Bergen"}, "c2")], [message("No rain.")]]
    answer = await stack.run(row())
    assert answer.status_code == 200, answer.text
    result = answer.json()
    assert stack.weather.seeds == [row()]
    assert (result["reward"], result["calls"], result["failure_reason"]) == (2.0, 2, None)
    kinds = [item["type"] for item in result["response"]["output"]]
    assert kinds == ["function_call", "function_call_output", "function_call", "function_call_output", "message"]
    assert json.loads(outputs(result["response"])[1]) == {"rain": "no", "city": "Bergen"}
    assert result["response"]["id"] == "resp_9"
    assert result["responses_create_params"]["tools"] == row()["responses_create_params"]["tools"]
    assert "expected" not in result  # this server's verify response does not declare it
    verified = stack.weather.verify_bodies[0]
    assert (verified["expected"], verified["_ng_task_index"], verified["response"]["error"]) == ("no", 3, None)


async def test_the_model_gets_everything_so_far_and_its_own_cookies(stack: Stack) -> None:
    stack.model.turns = [[REASONING, call("rain", {"city": "Oslo"})], [message("No.")]]
    await stack.run(row())
    first, second = stack.model.requests
    assert first == row()["responses_create_params"]
    question, reasoning, called, output = second["input"]
    assert question == {"role": "user", "content": "Rain in Oslo?"}
    assert reasoning == {key: value for key, value in REASONING.items() if key != "status"}
    assert called == call("rain", {"city": "Oslo"})
    assert output == {"type": "function_call_output", "call_id": "c1", "output": '{"rain":"no","city":"Oslo"}'}
    assert {key: value for key, value in second.items() if key != "input"} == {
        key: value for key, value in first.items() if key != "input"
    }
    assert [cookies.get("model_session") for cookies in stack.model.cookies] == [None, "1"]


async def test_responses_route_alone(stack: Stack) -> None:
    stack.model.turns = [[message("Hello.")]]
    async with stack.agent() as agent:
        answer = await agent.post("/v1/responses", json={"input": "Hi"})
    assert [item["type"] for item in answer.json()["output"]] == ["message"]
    assert stack.model.requests == [{"input": [{"role": "user", "content": "Hi", "type": "message"}]}]
    assert answer.cookies["model_session"] == "1"


async def test_cookies_of_the_caller_reach_the_tools_and_come_back(stack: Stack) -> None:
    stack.model.turns = [[call("rain", {"city": "Oslo"})], [message("No.")]]
    name = "Weather___weather"
    async with stack.agent() as agent, httpx.AsyncClient() as outside:
        port = stack.config["weather"]["resources_servers"]["any"]["port"]
        seeded = await outside.post(f"http://127.0.0.1:{port}/seed_session", json={})
        session = seeded.cookies[name]
        before = dict(stack.weather.calls)
        answer = await agent.post("/v1/responses", json={"input": "Hi"}, headers={"cookie": f"{name}={session}"})
    changed = [count for key, count in stack.weather.calls.items() if before.get(key) != count]
    assert changed == [1]
    assert answer.cookies[name].strip('"') == session.strip('"')


async def test_a_tool_error_does_not_lose_the_session(stack: Stack) -> None:
    stack.model.turns = [[call("broken", {})], [call("rain", {"city": "Oslo"})], [message("No.")]]
    result = (await stack.run(row())).json()
    assert outputs(result["response"])[0] == "\"KeyError('gone')\""
    assert result["reward"] == 1.0


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (call("rain", "{city"), "Invalid tool call arguments: JSONDecodeError("),
        (call("snow", {}), '{"detail":"Not Found"}'),
        (call("rain", {}), '"Field required"'),
        (call("rain", "[]"), '"detail"'),
        (call("bytes", {}), "ok \ufffd\ufffd\x00"),
        (call("verify", {}), '{"error": "There is no tool named \'verify\'"}'),
        (call("seed_session", {}), "There is no tool named"),
        (call("aggregate_metrics", {"verify_responses": []}), "There is no tool named"),
        (call("../verify", {}), "There is no tool named"),
        (call("rain?x", {}), "There is no tool named"),
        (call("", {}), "There is no tool named"),
    ],
)
async def test_what_the_model_is_told_about_a_call(stack: Stack, asked: dict[str, Any], told: str) -> None:
    stack.model.turns = [[asked], [message("Sorry.")]]
    result = await stack.respond()
    assert told in outputs(result)[0]
    assert [item["type"] for item in result["output"]] == ["function_call", "function_call_output", "message"]
    assert stack.model.requests[1]["input"][-1]["output"] == outputs(result)[0]
    assert not stack.weather.seeds and not stack.weather.verify_bodies


async def test_parallel_calls_run_one_after_another_and_their_outputs_follow_all_calls(stack: Stack) -> None:
    cities = ["Oslo", "Bergen", "Bodø"]
    calls = [call("rain", {"city": city}, city) for city in cities]
    stack.model.turns = [[message("Let me see."), *calls], [message("No.")]]
    result = (await stack.run(row())).json()
    kinds = [item["type"] for item in result["response"]["output"]]
    assert kinds == ["message", *["function_call"] * 3, *["function_call_output"] * 3, "message"]
    assert [item["call_id"] for item in result["response"]["output"][4:7]] == cities
    assert stack.weather.log == [f"{moment} {city}" for city in cities for moment in ("begin", "end")]


async def test_max_steps_keeps_the_last_tool_output(stack: Stack) -> None:
    stack.model.turns = [[call("verify", {})]]
    result = await stack.respond(max_steps=3)
    assert len(stack.model.requests) == 3
    assert [item["type"] for item in result["output"]] == ["function_call", "function_call_output"] * 3


async def test_an_incomplete_answer_ends_the_loop_before_its_calls(stack: Stack) -> None:
    stack.model.turns = [response_of([call("rain", {"city": "Os"})], incomplete_details={"reason": "max_output_tokens"})]
    result = await stack.respond()
    assert [item["type"] for item in result["output"]] == ["function_call"]
    assert result["incomplete_details"] == {"reason": "max_output_tokens"}
    assert not stack.weather.log


async def test_usage_is_summed_and_unknown_stays_unknown(stack: Stack) -> None:
    stack.model.turns = [[call("verify", {})], response_of([call("verify", {})], usage=None), [message("Done.")]]
    result = await stack.respond()
    assert result["usage"] == {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 2},
        "output_tokens": 6,
        "output_tokens_details": {"reasoning_tokens": None},
        "total_tokens": 26,
    }


async def test_usage_is_null_when_no_call_reports_it(stack: Stack) -> None:
    stack.model.turns = [response_of([message("Hi.")], usage=None)]
    assert (await stack.respond())["usage"] is None


async def test_a_turn_of_reasoning_only_is_followed_by_another(stack: Stack) -> None:
    stack.model.turns = [[REASONING], [message("No.")]]
    result = await stack.respond()
    assert [item["type"] for item in result["output"]] == ["reasoning", "message"]
    assert [item.get("type") for item in stack.model.requests[1]["input"]] == ["message", "reasoning"]


async def test_reasoning_only_turns_are_capped_in_a_row(stack: Stack) -> None:
    stack.model.turns = [[REASONING], [call("rain", {"city": "Oslo"})], [REASONING], []]
    await stack.respond(max_idle_turns=2)
    assert len(stack.model.requests) == 4
    stack.model.turns = [[REASONING]]
    result = await stack.respond()
    assert [item["type"] for item in result["output"]] == ["reasoning"] * 8


@pytest.mark.parametrize("name", ["snow", "verify"])
async def test_turns_that_reach_no_tool_are_capped(stack: Stack, name: str) -> None:
    stack.model.turns = [[call(name, {})]]
    result = await stack.respond(max_idle_turns=3)
    assert len(stack.model.requests) == 3
    assert [item["type"] for item in result["output"]] == ["function_call", "function_call_output"] * 3


async def test_skipped_verification(stack: Stack) -> None:
    stack.model.turns = [[message("No.")]]
    result = (await stack.run(row(), skip_verification=True, skip_verification_reward=0.5)).json()
    assert (result["reward"], result["verification_skipped"], result["expected"]) == (0.5, True, "no")
    assert result["_ng_task_index"] == 3
    assert result["response"]["output"][0]["content"][0]["text"] == "No."
    assert not stack.weather.verify_bodies


async def test_an_inner_error_becomes_500_with_the_inner_body(stack: Stack) -> None:
    stack.model.turns = [JSONResponse({"error": "quota is used up"}, status_code=429)]
    answer = await stack.run(row())
    assert answer.status_code == 500
    assert answer.json().startswith("Hit an exception in SimpleAgent___simple_agent calling an inner server: ")
    assert "quota is used up" in answer.json()


@pytest.mark.parametrize(
    ("turn", "reason"),
    [(Response("<html>"), "JSON"), ({"id": "r"}, "created_at: Field required"), (JSONResponse([1]), "valid dictionary")],
)
async def test_an_invalid_answer_of_the_model_server_is_a_runtime_error(stack: Stack, turn: Any, reason: str) -> None:
    stack.model.turns = [turn]
    answer = await stack.run(row())
    assert answer.status_code == 500
    assert answer.json().startswith("RuntimeError(") and "model server `model`" in answer.json()
    assert reason.lower() in answer.json().lower()


async def test_a_row_without_params_gets_422(stack: Stack) -> None:
    assert (await stack.run({"expected": "no"})).status_code == 422


async def test_the_rollout_prefix_is_carried_to_the_model(stack: Stack) -> None:
    stack.model.turns = [[message("No.")]]
    stack.config["observability_enabled"] = True
    await stack.run(row())
    async with stack.agent() as agent:
        await agent.post("/ng-rollout/7-2/v1/responses", json={"input": "Hi"})
    assert stack.model.paths == ["/ng-rollout/3-1/v1/responses", "/ng-rollout/7-2/v1/responses"]


async def test_token_capture_has_a_prefix_of_its_own(stack: Stack) -> None:
    stack.model.turns = [[call("rain", {"city": "Oslo"})], [message("No.")]]
    stack.config["token_id_capture"] = {"enabled": True}
    result = (await stack.run(row(), token_id_capture=True)).json()
    assert stack.model.paths == ["/ng-rollout/3-1/training-token-capture/v1/responses"] * 2
    assert "ng_trajectory" not in result


@pytest.mark.parametrize("resolved", [True, False, None])
async def test_the_trajectory_of_an_observed_rollout(stack: Stack, resolved: bool | None) -> None:
    stack.config["observability_enabled"] = True
    calls = [call("rain", {"city": "Oslo"}), call("snow", {}, "c2"), call("rain", "{", "c3")]
    stack.model.turns = [[REASONING, *calls], response_of([message("No.")], id="resp_10")]
    stack.weather.resolved = resolved
    result = (await stack.run(row(instance_id=0, task_id=None))).json()
    assert "_ng_trajectory" not in result["response"] and "_ng_trajectory" not in stack.weather.verify_bodies[0]["response"]
    trajectory = TrajectoryRecord.model_validate(result["ng_trajectory"])
    assert (trajectory.schema_version, trajectory.task_id, trajectory.rollout_id) == ("1.0", "0", "3-1")
    (invocation,) = trajectory.invocations
    assert invocation.status == "completed" and invocation.duration_ms is not None
    assert [item.type for item in invocation.conversation] == [
        "message", "reasoning", *["function_call"] * 3, *["function_call_output"] * 3, "message",
    ]  # fmt: skip
    first, second = trajectory.turns
    assert [(turn.turn_no, turn.step_count, turn.task_id, turn.resolved) for turn in trajectory.turns] == [
        (1, 3, "0", None),
        (2, 3, "0", resolved),
    ]
    assert first.timestamp <= second.timestamp
    assert first.question == [{"role": "user", "content": "Rain in Oslo?", "type": "message"}]
    assert [item["type"] for item in first.answer] == ["function_call"] * 3
    assert [item["type"] for item in first.reasoning_content] == ["reasoning"]
    assert len(second.question) == 8 and second.reasoning_content == []
    assert [turn.model_calls[0].response_id for turn in trajectory.turns] == ["resp_9", "resp_10"]
    assert invocation.model_calls == [turn.model_calls[0] for turn in trajectory.turns]
    assert [(tool.tool_call_id, tool.status, tool.error_type) for tool in trajectory.tool_calls] == [
        ("c1", "completed", None),
        ("c2", "failed", "http_404"),
        ("c3", "failed", "invalid_arguments"),
    ]
    rain = trajectory.tool_calls[0]
    assert rain.output == '{"rain":"no","city":"Oslo"}' and rain.duration_ms is not None and rain.duration_ms >= 10
    assert ("resolution_unavailable" in {gap.code for gap in trajectory.gaps}) is (resolved is None)


async def test_a_cut_short_rollout_has_an_incomplete_invocation(stack: Stack) -> None:
    stack.config["observability_enabled"] = True
    stack.model.turns = [response_of([message("N")], incomplete_details={"reason": "max_output_tokens"})]
    result = (await stack.run(row(), skip_verification=True)).json()
    assert result["ng_trajectory"]["invocations"][0]["status"] == "incomplete"
    assert result["ng_trajectory"]["task_id"] == "3"


async def test_time_that_is_up_ends_the_rollout_as_it_is(stack: Stack) -> None:
    stack.model.turns = [[call("rain", {"city": "Oslo"})], [call("slow", {}, "c2")]]
    began = time.monotonic()
    result = (await stack.run(row(), max_seconds=0.5)).json()
    assert time.monotonic() - began < 5
    assert [item["type"] for item in result["response"]["output"]] == ["function_call", "function_call_output", "function_call"]
    assert (result["response"]["status"], result["reward"]) == ("incomplete", 1.0)


async def test_time_that_is_up_before_any_answer_is_an_error(stack: Stack) -> None:
    stack.model.turns = [0.5]
    answer = await stack.run(row(), max_seconds=0.1)
    assert answer.status_code == 500
    assert answer.json() == 'TimeoutError("the model gave no answer within the rollout\'s 0.1 s")'


@pytest.mark.parametrize("setting", [{"max_seconds": 0}, {"max_idle_turns": 0}])
async def test_limits_of_nothing_are_refused(stack: Stack, setting: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        stack.agent(**setting)


async def test_aggregate_metrics_is_the_resources_servers(stack: Stack) -> None:
    verdicts = [{"_ng_task_index": 0, "_ng_rollout_index": n, "reward": float(n)} for n in range(2)]
    async with stack.agent() as agent:
        answer = await agent.post("/aggregate_metrics", json={"verify_responses": verdicts})
    assert answer.json()["key_metrics"]["mean/reward"] == 0.5


class Shouting(SimpleAgent):
    async def responses(
        self, request: Request, response: Response, body: NeMoGymResponseCreateParamsNonStreaming
    ) -> NeMoGymResponse:
        """As an existing agent would wrap the loop."""
        assert request.url.path == "/v1/responses" and "Weather___weather" in request.cookies
        answer = await super().responses(request, response, body)
        return answer.model_copy(update={"model": "SHOUTING"})


async def run_served(stack: Stack, kind: type[SimpleAgent]) -> dict[str, Any]:
    """What `/run` answers of an agent that is reached by the name it has in the configuration, as every agent is when it runs."""
    async with serving(stack.application(kind)) as url, httpx.AsyncClient(base_url=url) as client:
        stack.config["simple_agent"] = place("responses_api_agents", url)
        answer = await client.post("/run", json=row())
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_run_uses_a_subclass_own_loop(stack: Stack) -> None:
    stack.model.turns = [[call("rain", {"city": "Oslo"})], [message("No rain.")]]
    result = await run_served(stack, Shouting)
    assert (result["response"]["model"], result["reward"]) == ("SHOUTING", 1.0)


class BodyOnly(SimpleAgent):
    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming = Body()) -> NeMoGymResponse:
        answer = await self.server_client.post(self.config.model_server.name, "/v1/responses", json=body)
        return NeMoGymResponse.model_validate(await answer.json())


class RequestAndBody(SimpleAgent):
    async def responses(self, request: Request, body: NeMoGymResponseCreateParamsNonStreaming = Body()) -> NeMoGymResponse:
        assert request.session[SESSION_ID_KEY] and await request.json() == row()["responses_create_params"]
        answer = await self.server_client.post(self.config.model_server.name, "/v1/responses", json=body)
        return NeMoGymResponse.model_validate(await answer.json())


class PlainJson(SimpleAgent):
    async def responses(
        self, request: Request, response: Response, body: NeMoGymResponseCreateParamsNonStreaming = Body()
    ) -> NeMoGymResponse:
        answer = await self.server_client.post(self.config.model_server.name, "/v1/responses", json=body)
        return await answer.json()


class AnotherHandler(SimpleAgent):
    """Serves the route itself, with a parameter that only FastAPI knows how to fill."""

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.router.routes[:] = [route for route in app.router.routes if getattr(route, "path", None) != "/v1/responses"]
        app.post("/v1/responses")(self.answer)
        return app

    async def answer(self, body: NeMoGymResponseCreateParamsNonStreaming, client: Annotated[str, Header(alias="host")]) -> Any:
        assert client
        answer = await self.server_client.post(self.config.model_server.name, "/v1/responses", json=body)
        return await answer.json()


@pytest.mark.parametrize("kind", [BodyOnly, RequestAndBody, PlainJson, AnotherHandler])
async def test_a_loop_of_its_own_may_have_any_signature(stack: Stack, kind: type[SimpleAgent]) -> None:
    stack.model.turns = [[message("No rain.")]]
    result = await run_served(stack, kind)
    assert result["response"]["output"][0]["content"][0]["text"] == "No rain."
    assert (result["response"]["id"], result["reward"], result["calls"]) == ("resp_9", 0.0, 0)
    (verified,) = stack.weather.verify_bodies
    assert verified["response"]["error"] is None and verified["expected"] == "no"
    assert stack.model.requests == [row()["responses_create_params"]]


class NoResponse(SimpleAgent):
    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming = Body()) -> Any:
        return {"id": "r"}


async def test_a_loop_of_its_own_that_gives_no_response_is_an_error(stack: Stack) -> None:
    async with serving(stack.application(NoResponse)) as url, httpx.AsyncClient(base_url=url) as client:
        stack.config["simple_agent"] = place("responses_api_agents", url)
        answer = await client.post("/run", json=row())
    assert answer.status_code == 500
    assert "agent `simple_agent`" in answer.json() and "created_at: Field required" in answer.json()
