"""Rollouts by a scripted service on a loopback port, with a real environment, and every way in which they fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import ValidationError

from nemo_gym.server_utils import global_aiohttp_client_exit
from resources_servers.example_session_state_mgmt.app import StatefulCounterResourcesServer
from responses_api_agents.remote_agent import app as remote_agent
from responses_api_agents.remote_agent import remote_service
from responses_api_agents.remote_agent.app import RemoteAgent
from responses_api_agents.remote_agent.remote_service import normalize_remote_url
from tests.component_servers import application_of, call, client_of, make_server, message, place, response_of
from tests.conftest import unused_port
from tests.loopback import Endpoint, Reply, endpoint, serving

ROW = {
    "responses_create_params": {"input": [{"role": "user", "content": "Add 3."}], "temperature": 0.5},
    "initial_count": 3,
    "expected_count": 6,
    "_ng_task_index": 0,
    "_ng_rollout_index": 1,
}
ADD_3 = call("increment_counter", '{"count": 3}')
USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 1},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": None},
    "total_tokens": 13,
}


def output_of(call_id: str, text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def turn(*items: dict[str, Any], **headers: str) -> Reply:
    return Reply(body=response_of(*items, usage=USAGE), headers=headers)


@asynccontextmanager
async def agent_at(url: str, environment_url: str, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    references = {"agent_base_url": url, "resources_server": {"type": "resources_servers", "name": "env"}}
    agent = make_server(RemoteAgent, references | settings, {"env": place("resources_servers", environment_url)})
    async with client_of(agent) as client:
        yield client
    await global_aiohttp_client_exit()


@asynccontextmanager
async def agent_with(*replies: Any, **settings: Any) -> AsyncIterator[tuple[httpx.AsyncClient, Endpoint]]:
    """A client of an agent whose service gives `replies` and whose environment counts."""
    counter = application_of(make_server(StatefulCounterResourcesServer))
    async with serving(counter) as counter_url, endpoint(*replies) as service:
        root = service.base_url.removesuffix("/v1")
        async with agent_at(f"{root}/", counter_url, **settings) as client:
            yield client, service


def assert_failed(answer: httpx.Response, *told: str, terminal: bool = False) -> None:
    """The answer is a row that goes to the failures file and says `told`."""
    assert answer.status_code == 200, answer.text
    result = answer.json()
    assert (result["reward"], result["_ng_failure_class"]) == (0.0, "remote_agent_error")
    assert result.get("_ng_failure_terminal") == (True if terminal else None)
    assert "_ng_no_persist" not in result
    assert all(words in result["error"] for words in told), result["error"]
    assert result["response"]["output"][0]["type"] == "message"


async def test_tools_run_here_and_the_session_is_judged() -> None:
    replies = [turn(ADD_3, **{"Set-Cookie": "service=1"}), turn(call("get_counter_value", "{}", "c2")), turn(message("It is 6."))]
    async with agent_with(*replies) as (client, service):
        result = (await client.post("/run", json=ROW)).json()
    assert result["reward"] == 1.0 and not any(key.startswith("_ng_failure") for key in result)
    assert [item["type"] for item in result["response"]["output"]] == [*["function_call", "function_call_output"] * 2, "message"]
    assert result["response"]["usage"]["total_tokens"] == 39
    assert [request.path for request in service.requests] == ["/v1/responses"] * 3
    assert service.requests[0].body == ROW["responses_create_params"]
    assert service.requests[2].body["input"][-1] == output_of("c2", '{"count":6}')
    assert [request.headers.get("Cookie") for request in service.requests] == [None, "service=1", "service=1"]


async def test_calls_with_an_output_are_the_services_own() -> None:
    own = [call("web_search", "{}", "s1"), output_of("s1", "found")]
    doubled = call("increment_counter", '{"count": 100}')
    async with agent_with(turn(*own, doubled, ADD_3), turn(message("Done."))) as (client, service):
        result = (await client.post("/run", json=ROW)).json()
    assert result["reward"] == 1.0  # of the two calls with one id, only the last ran
    types = [item["type"] for item in result["response"]["output"]]
    assert types == ["function_call", "function_call_output", "function_call", "function_call", "function_call_output", "message"]
    assert [item["call_id"] for item in service.requests[1].body["input"][-1:]] == ["c1"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (call("web_search", "{}"), "Not Found"),
        (call("increment_counter", "many"), "Invalid tool call arguments"),
        (call("verify", "{}"), "There is no tool named 'verify'"),
    ],
)
async def test_the_service_is_told_of_its_mistakes(asked: dict[str, Any], told: str) -> None:
    async with agent_with(turn(asked), turn(message("Sorry."))) as (client, service):
        result = (await client.post("/run", json=ROW)).json()
    assert (result["reward"], "error" in result) == (0.0, False)
    assert told in service.requests[1].body["input"][-1]["output"]


async def test_max_steps() -> None:
    async with agent_with(turn(ADD_3), max_steps=2) as (client, service):
        result = (await client.post("/run", json=ROW)).json()
        assert len(service.requests) == 2
    assert result["response"]["output"][-1]["type"] == "function_call_output"


async def test_the_loop_alone_and_skipped_verification() -> None:
    async with agent_with(turn(message("Hi.")), skip_verification=True, skip_verification_reward=0.5) as (client, service):
        answer = await client.post("/v1/responses", json={"input": "Hello"})
        assert answer.json()["output"][0]["content"][0]["text"] == "Hi."
        assert service.requests[0].body["input"] == [{"content": "Hello", "role": "user", "type": "message"}]
        result = (await client.post("/run", json=ROW)).json()
    assert (result["reward"], result["verification_skipped"]) == (0.5, True)


@pytest.mark.parametrize(
    ("reply", "told", "terminal"),
    [
        (Reply(500, b"kaboom"), ("answered HTTP 500: kaboom",), False),
        (Reply(301, b"", {"Location": "https://elsewhere.example"}), ("HTTP 301", "https://elsewhere.example"), False),
        (Reply(body=b"<html>"), ("the response body is not valid JSON",), False),
        (Reply(body=b"[1, 2]"), ("expected a JSON object, got list",), False),
        (Reply(body={"id": "r"}), ("invalid Responses API object: created_at: Field required",), True),
    ],
)
async def test_an_answer_that_is_of_no_use(reply: Reply, told: tuple[str, ...], terminal: bool) -> None:
    async with agent_with(turn(ADD_3), reply) as (client, service):
        assert_failed(await client.post("/run", json=ROW), *told, terminal=terminal)
        assert len(service.requests) == 2


async def test_a_slow_service_is_asked_once() -> None:
    async with agent_with(Reply(body={}, delay=2), remote_responses_timeout_secs=0.2) as (client, service):
        assert_failed(await client.post("/run", json=ROW), "timed out after 0.2s")
        assert len(service.requests) == 1


async def test_a_body_that_breaks_off() -> None:
    async def half_an_answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"id": ')
        assert request.transport is not None
        request.transport.close()
        return response

    application = web.Application()
    application.router.add_post("/v1/responses", half_an_answer)
    counter = application_of(make_server(StatefulCounterResourcesServer))
    async with TestServer(application) as server, serving(counter) as url, agent_at(str(server.make_url("")), url) as client:
        assert_failed(await client.post("/run", json=ROW), "reading the response body failed: ClientPayloadError")


async def test_a_service_that_is_not_there_is_tried_three_times(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(remote_service, "SECONDS_BETWEEN_TRIES", 0.01)
    address = f"http://127.0.0.1:{unused_port()}"
    async with serving(application_of(make_server(StatefulCounterResourcesServer))) as url, agent_at(address, url) as client:
        answer = await client.post("/run", json=ROW)
    assert_failed(answer, "cannot be reached", f"Is your service running at {address}?")
    assert sum("trying again" in record.message for record in caplog.records) == 2


async def test_failures_of_the_environment() -> None:
    async with agent_with(turn(message("Hi."))) as (client, service):
        unseeded = {key: value for key, value in ROW.items() if key != "initial_count"}
        assert_failed(await client.post("/run", json=unseeded), "/seed_session of `env` answered HTTP 422", "initial_count")
        assert not service.requests
        unjudged = {key: value for key, value in ROW.items() if key != "expected_count"}
        assert_failed(await client.post("/run", json=unjudged), "/verify of `env` answered HTTP 422")


async def test_a_rollout_has_a_time_limit_of_its_own() -> None:
    async with agent_with(Reply(body={}, delay=2), run_timeout_secs=0.3) as (client, _):
        assert_failed(await client.post("/run", json=ROW), "longer than run_timeout_secs (0.3 s)")


async def test_places_are_limited_and_waiting_is_not_counted() -> None:
    slow = Reply(body=response_of(message("Hi.")), delay=0.6)
    async with agent_with(slow, concurrency=2, run_timeout_secs=2.2) as (client, service):
        answers = await asyncio.gather(*(client.post("/run", json=ROW) for _ in range(8)))
    assert all("error" not in answer.json() for answer in answers)
    assert service.most_in_flight == 2


@pytest.mark.parametrize("works", [True, False])
async def test_rows_that_are_rollouts_of_an_earlier_run(works: bool) -> None:
    earlier = {
        "reward": 0.75, "response": {"stale": True}, "error": "stale", "_ng_failure_class": "stale", "_ng_no_persist": True,
        "_ng_failure_terminal": True, "_ng_failure_message": "stale",
    }  # fmt: skip
    async with agent_with(*([turn(ADD_3), turn(message("6"))] if works else [Reply(500, b"boom")])) as (client, _):
        answer = await client.post("/run", json=ROW | earlier)
    if not works:
        assert_failed(answer, "boom")
        assert "_ng_failure_message" not in answer.json() and answer.json()["_ng_task_index"] == 0
        return
    result = answer.json()
    assert result["reward"] == 1.0
    assert not any(key.startswith("_ng_") or key == "error" for key in result)


async def test_remarks_are_made_once(caplog: pytest.LogCaptureFixture) -> None:
    row = ROW | {"skills_ref": {"path": "skills", "hash": "abc", "skills": []}}
    async with agent_with(Reply(body=response_of(message("Hi.")))) as (client, _):
        for _ in range(3):
            assert "error" not in (await client.post("/run", json=row)).json()
    told = [record.message for record in caplog.records if record.name == remote_agent.__name__]
    assert [text.split(":")[0] for text in told] == ["rows have a skills_ref", "the service reports no usage"]


async def test_metrics_are_the_environments_and_have_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = [{"_ng_task_index": 0, "_ng_rollout_index": n, "reward": float(n)} for n in range(2)]
    async with agent_with(turn(message("Hi."))) as (client, _):
        answer = await client.post("/aggregate_metrics", json={"verify_responses": verdicts})
    assert answer.json()["key_metrics"]["mean/reward"] == 0.5
    monkeypatch.setattr(remote_agent, "AGGREGATE_SECONDS", 0.1)
    async with (
        endpoint(Reply(body={}, delay=2)) as slow,
        agent_at("http://127.0.0.1:1", slow.base_url.removesuffix("/v1")) as client,
    ):
        answer = await client.post("/aggregate_metrics", json={"verify_responses": verdicts})
    assert answer.status_code == 500 and "TimeoutError" in answer.json()


def test_urls_are_normalized() -> None:
    assert normalize_remote_url("http://localhost:9000/") == "http://localhost:9000"
    assert normalize_remote_url("https://agent.example/team/a/") == "https://agent.example/team/a"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h:1",
        "localhost:9000",
        "",
        "http://",
        "http://h:1?token=abc",
        "http://h:1#part",
        "http://user:hunter2@h:1",
        "http://h:1?",
    ],
)
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="agent_base_url") as refusal:
        normalize_remote_url(url)
    assert "hunter2" not in str(refusal.value) and "abc" not in str(refusal.value)


def test_settings_of_nothing_are_refused() -> None:
    references = {"agent_base_url": "http://h:1", "resources_server": {"type": "resources_servers", "name": "env"}}
    for setting in ({"concurrency": 0}, {"run_timeout_secs": 0}, {"remote_responses_timeout_secs": -1}):
        with pytest.raises(ValidationError):
            make_server(RemoteAgent, references | setting)
