"""What servers say about their work, asked of real servers while they work."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict

from backend.config.config_types import BaseServerConfig
from backend.responses.schema import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from backend.servers.agent_server import BaseResponsesAPIAgentConfig, SimpleResponsesAPIAgent
from backend.servers.http_client import close_http_session
from backend.servers.inflight import InflightWork, current_rollout_key
from backend.servers.resources_server import (
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from backend.servers.rollout_correlation import rollout_context
from backend.servers.server_utils import ServerClient, request
from tests.loopback import responses_answer, serving


class AnyRow(BaseRunRequest):
    model_config = ConfigDict(extra="allow")


class Gate:
    """Holds requests until they are let on."""

    def __init__(self) -> None:
        self.entered = asyncio.Semaphore(0)
        self.let_on = asyncio.Semaphore(0)

    async def passed(self) -> None:
        self.entered.release()
        await self.let_on.acquire()


class Environment(SimpleResourcesServer):
    config: BaseResourcesServerConfig
    gate: Any

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/look_up")(self.look_up)
        return app

    async def look_up(self) -> str:
        await self.gate.passed()
        return "found"

    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        if body.response.id == "broken":
            raise RuntimeError("no verdict")
        return BaseVerifyResponse(**body.model_dump(), reward=1.0)


class Agent(SimpleResponsesAPIAgent):
    config: BaseResponsesAPIAgentConfig

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        answer = await self.server_client.post("environment", "/look_up", headers={"X-Own": "kept"})
        await answer.read()
        return NeMoGymResponse.model_validate(responses_answer())

    async def run(self, body: AnyRow) -> BaseVerifyResponse:
        row = body.model_dump(exclude_unset=True)
        if row.get("over_http"):
            answer = await self.server_client.post("agent", "/v1/responses", json=row["responses_create_params"])
            response = await answer.json()
        else:
            response = (await self.responses(body.responses_create_params)).model_dump()
            await self.responses(body.responses_create_params)
        judged = await self.server_client.post("environment", "/verify", json={**row, "response": response})
        return BaseVerifyResponse.model_validate(await judged.json())


@dataclass
class Pair:
    """An agent and its environment."""

    agent: str
    environment: str
    gate: Gate

    async def work(self, base: str) -> list[dict[str, Any]]:
        async with httpx.AsyncClient() as client:
            answer = (await client.get(f"{base}/inflight")).json()
        assert set(answer) == {"server", "now", "requests", "errors", "work"}
        assert all(0 <= answer["now"] - item["since"] < 10 for item in answer["work"])
        return [{key: item[key] for key in ("rollout_id", "run", "what", "count")} for item in answer["work"]]


def entry(rollout_id: str | None, what: str, count: int = 1, run: str | None = None) -> dict[str, Any]:
    return {"rollout_id": rollout_id, "run": run, "what": what, "count": count}


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    config: dict[str, Any] = {}
    client = ServerClient(BaseServerConfig(host="127.0.0.1", port=1), config)
    gate = Gate()
    common = {"host": "127.0.0.1", "port": 1, "entrypoint": "app.py"}
    environment = Environment(config=BaseResourcesServerConfig(name="environment", **common), server_client=client, gate=gate)
    agent = Agent(config=BaseResponsesAPIAgentConfig(name="agent", **common), server_client=client)
    async with AsyncExitStack() as stack:
        urls = []
        for server, kind in ((agent, "responses_api_agents"), (environment, "resources_servers")):
            app = server.setup_webserver()
            server.setup_exception_middleware(app)
            server.setup_inflight(app)
            url = await stack.enter_async_context(serving(app))
            config[server.config.name] = {kind: {"x": {"host": "127.0.0.1", "port": urlsplit(url).port}}}
            urls.append(url)
        yield Pair(*urls, gate)
        await close_http_session()


def row(**fields: Any) -> dict[str, Any]:
    return {"responses_create_params": {"input": "?"}, "_ng_task_index": 3, "_ng_rollout_index": 1, **fields}


async def post(url: str, body: Any, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(
        timeout=20, headers={name.replace("_", "-"): value for name, value in headers.items()}
    ) as client:
        return await client.post(url, json=body)


async def test_a_rollout_is_followed_by_the_id_of_its_run_body(pair: Pair) -> None:
    running = asyncio.create_task(post(f"{pair.agent}/run", row()))
    await pair.gate.entered.acquire()
    assert await pair.work(pair.agent) == [entry("3-1", "POST /run")]
    assert await pair.work(pair.environment) == [entry("3-1", "POST /look_up")]
    pair.gate.let_on.release()
    await pair.gate.entered.acquire()
    assert await pair.work(pair.environment) == [entry("3-1", "POST /look_up", count=2)]
    pair.gate.let_on.release()
    assert (await running).json()["reward"] == 1.0
    assert await pair.work(pair.agent) == await pair.work(pair.environment) == []


async def test_the_collectors_header_travels_with_the_runs_tag(pair: Pair) -> None:
    running = asyncio.create_task(
        post(f"{pair.agent}/run", row(_ng_attempt_index=2, over_http=True), x_gym_rollout_id="3-1-a2@5e")
    )
    await pair.gate.entered.acquire()
    assert await pair.work(pair.agent) == [
        entry("3-1-a2", "POST /run", run="5e"),
        entry("3-1-a2", "POST /v1/responses", run="5e"),
    ]
    assert await pair.work(pair.environment) == [entry("3-1-a2", "POST /look_up", run="5e")]
    pair.gate.let_on.release()
    await running


async def test_another_run_counts_from_one_again(pair: Pair) -> None:
    for tag in ("a1", "a2"):
        running = asyncio.create_task(post(f"{pair.agent}/run", row(), x_gym_rollout_id=f"3-1@{tag}"))
        for count in (1, 2):
            await pair.gate.entered.acquire()
            assert await pair.work(pair.environment) == [entry("3-1", "POST /look_up", count=count, run=tag)]
            pair.gate.let_on.release()
        await running


async def test_the_path_prefix_names_the_rollout_and_work_without_one_counts_under_null(pair: Pair) -> None:
    prefixed = asyncio.create_task(post(f"{pair.environment}/ng-rollout/9-9/look_up", None))
    await pair.gate.entered.acquire()
    plain = asyncio.create_task(post(f"{pair.environment}/look_up?secret=1", None, x_gym_rollout_id="../no id"))
    await pair.gate.entered.acquire()
    assert await pair.work(pair.environment) == [entry("9-9", "POST /look_up"), entry(None, "POST /look_up")]
    for _ in range(2):
        pair.gate.let_on.release()
    assert {(await prefixed).status_code, (await plain).status_code} == {200}


async def test_failed_and_abandoned_requests_leave_nothing(pair: Pair) -> None:
    body = row(response={**responses_answer(), "id": "broken"})
    assert (await post(f"{pair.environment}/verify", body)).status_code == 500
    assert (await post(f"{pair.environment}/verify", {"no": "body"})).status_code == 422
    assert (await post(f"{pair.environment}/nowhere", {})).status_code == 404
    assert (await post(f"{pair.agent}/run", row(_ng_rollout_id="no id"))).status_code == 500
    abandoned = asyncio.create_task(post(f"{pair.environment}/look_up", None))
    await pair.gate.entered.acquire()
    abandoned.cancel()
    await asyncio.gather(abandoned, return_exceptions=True)
    pair.gate.let_on.release()
    for base in (pair.environment, pair.agent):
        async with asyncio.timeout(5):
            while await pair.work(base):
                await asyncio.sleep(0.01)


CALLER = "import sys, urllib.request as u; u.urlopen(u.Request(sys.argv[1], b'', {'x-gym-rollout-id': '5-0@cd'}))"


async def test_a_killed_agent_leaves_nothing(pair: Pair) -> None:
    caller = await asyncio.create_subprocess_exec(sys.executable, "-c", CALLER, f"{pair.environment}/look_up")
    await pair.gate.entered.acquire()
    assert await pair.work(pair.environment) == [entry("5-0", "POST /look_up", run="cd")]
    caller.kill()
    await caller.wait()
    pair.gate.let_on.release()
    async with asyncio.timeout(5):
        while await pair.work(pair.environment):
            await asyncio.sleep(0.01)


async def test_a_cancelled_handler_leaves_nothing() -> None:
    async def endless(_scope: Any, _receive: Any, _send: Any) -> None:
        await asyncio.Event().wait()

    watched = InflightWork(endless, "x")
    task = asyncio.create_task(call(watched, "/tool"))
    await asyncio.sleep(0)
    assert len(watched.snapshot()["work"]) == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert watched.snapshot()["work"] == []


async def test_an_own_route_of_that_name_stays_the_authors() -> None:
    config = BaseResourcesServerConfig(name="e", host="127.0.0.1", port=1, entrypoint="app.py")
    server = Environment(config=config, server_client=ServerClient(BaseServerConfig(host="127.0.0.1", port=1), {}), gate=None)
    app = server.setup_webserver()
    app.get("/inflight")(lambda: "mine")
    server.setup_inflight(app)
    async with serving(app) as url, httpx.AsyncClient() as client:
        assert (await client.get(f"{url}/inflight")).json() == "mine"


async def test_the_header_goes_to_our_servers_only(pair: Pair) -> None:
    seen: list[dict[bytes, bytes]] = []

    async def application(scope: Any, _receive: Any, send: Any) -> None:
        seen.append(dict(scope["headers"]))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async with serving(application) as url:
        config = {"own": {"resources_servers": {"x": {"host": "127.0.0.1", "port": urlsplit(url).port}}}}
        client = ServerClient(BaseServerConfig(host="127.0.0.1", port=1), config)
        with rollout_context("4-2"):
            assert current_rollout_key() == "4-2"
            await (await client.post("own", "/tool", headers=[("X-Own", "kept")], data=b"1")).read()
            await (await client.post("own", "/tool", json={"a": 1})).read()
            await (await request("GET", url)).read()
        await (await client.post("own", "/tool")).read()
        await close_http_session()
    assert [headers.get(b"x-gym-rollout-id") for headers in seen] == [b"4-2", b"4-2", None, None]
    assert seen[0][b"x-own"] == b"kept"


async def call(app: InflightWork, path: str, header: str | None = None) -> None:
    headers = [(b"x-gym-rollout-id", header.encode())] if header is not None else []
    await app({"type": "http", "method": "POST", "path": path, "headers": headers}, None, None)  # type: ignore[arg-type]


async def nothing(_scope: Any, _receive: Any, _send: Any) -> None:
    return None


async def test_counts_are_bounded() -> None:
    watched = InflightWork(nothing, "x")
    for number in range(12_000):
        await call(watched, "/tool", f"{number}-0@ab")
    for number in range(1_000):
        await call(watched, f"/items/{number}", "0-0@ab")
    assert len(watched._counts) == 10_000
    assert max(map(len, watched._counts.values())) <= 64


async def test_the_counts_of_a_rollout_go_with_its_run() -> None:
    watched = InflightWork(nothing, "agent")
    await call(watched, "/v1/responses", "0-0@ab")
    await call(watched, "/run", "0-0@ab")
    assert dict(watched._counts) == {}


@given(st.lists(st.tuples(st.sampled_from(["/a", "/b", "/ng-rollout/1-1/a"]), st.none() | st.text(max_size=12)), max_size=30))
def test_whatever_the_requests_nothing_stays_in_flight(calls: list[tuple[str, str | None]]) -> None:
    watched = InflightWork(nothing, "x")

    async def make() -> None:
        for path, header in calls:
            await call(watched, path, header)

    asyncio.run(make())
    assert watched.snapshot()["work"] == []
