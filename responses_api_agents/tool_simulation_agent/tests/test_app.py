"""The agent against real servers on loopback ports; model and verifier are scripted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from nemo_gym.server_utils import global_aiohttp_client_exit
from responses_api_agents.tool_simulation_agent.app import ToolSimulationAgent
from tests.component_servers import call, client_of, make_server, place, response_of
from tests.loopback import Endpoint, Reply, Request, endpoint

REFERENCES = {
    "resources_server": {"type": "resources_servers", "name": "verifier"},
    "model_server": {"type": "responses_api_models", "name": "model"},
}
ROW = {"responses_create_params": {"input": "Ring the bell."}, "expected": "ring", "_ng_task_index": 3, "_ng_rollout_index": 1}
RING = call("ring", "{}")


def verdict(request: Request) -> Reply:
    return Reply(body={**request.body, "reward": 0.5, "note": "close"})


@asynccontextmanager
async def agent_with(
    model: Reply, verifier: Any = verdict, observed: bool = False, **settings: Any
) -> AsyncIterator[tuple[httpx.AsyncClient, Endpoint, Endpoint]]:
    """A client of the agent, and the two endpoints behind it."""
    async with endpoint(model) as model_server, endpoint(verifier) as verifier_server:
        others = {
            "model": place("responses_api_models", model_server.base_url.removesuffix("/v1")),
            "verifier": place("resources_servers", verifier_server.base_url.removesuffix("/v1")),
            "observability_enabled": observed,
        }
        agent = make_server(ToolSimulationAgent, REFERENCES | settings, others)
        async with client_of(agent) as client:
            yield client, model_server, verifier_server
        await global_aiohttp_client_exit()


async def test_one_model_call_then_the_verdict() -> None:
    async with agent_with(Reply(body=response_of(RING), headers={"Set-Cookie": "m=1"})) as (client, model, verifier):
        answer = await client.post("/run", json=ROW, headers={"cookie": "mine=1"})
    assert answer.status_code == 200, answer.text
    result = answer.json()
    assert (result["reward"], result["note"], result["expected"]) == (0.5, "close", "ring")
    assert [item["type"] for item in result["response"]["output"]] == ["function_call"]
    assert [request.path for request in model.requests] == ["/v1/responses"]
    assert model.requests[0].body == {"input": "Ring the bell."}
    assert [request.path for request in verifier.requests] == ["/verify"]
    assert verifier.requests[0].body["response"]["output"][0]["name"] == "ring"
    assert not [name for seen in (*model.requests, *verifier.requests) for name in seen.headers if name.lower() == "cookie"]


async def test_the_model_route_alone() -> None:
    async with agent_with(Reply(body=response_of(RING))) as (client, model, verifier):
        answer = await client.post("/ng-rollout/7-2/v1/responses", json={"input": "Ring."})
    assert answer.json()["output"][0]["name"] == "ring"
    assert [request.path for request in model.requests] == ["/ng-rollout/7-2/v1/responses"]
    assert not verifier.requests


async def test_calls_of_an_observed_rollout_carry_its_id() -> None:
    async with agent_with(Reply(body=response_of(RING)), observed=True) as (client, model, _):
        await client.post("/run", json=ROW)
    assert [request.path for request in model.requests] == ["/ng-rollout/3-1/v1/responses"]


async def test_skipped_verification() -> None:
    settings = {"skip_verification": True, "skip_verification_reward": 0.25}
    async with agent_with(Reply(body=response_of(RING)), **settings) as (client, _, verifier):
        result = (await client.post("/run", json=ROW)).json()
    assert (result["reward"], result["verification_skipped"], result["expected"]) == (0.25, True, "ring")
    assert not verifier.requests


@pytest.mark.parametrize(
    ("model", "verifier", "told"),
    [
        (Reply(429, {"error": "no quota"}), verdict, "no quota"),
        (Reply(body={"id": "r"}), verdict, "the answer of model server `model` is no response object: created_at"),
        (Reply(body=response_of(RING)), Reply(500, "the verifier broke"), "the verifier broke"),
        (Reply(body=response_of(RING)), Reply(body={"reward": 1.0}), "ToolSimulationAgentVerifyResponse"),
    ],
)
async def test_failures_are_errors_that_say_what_happened(model: Reply, verifier: Any, told: str) -> None:
    async with agent_with(model, verifier) as (client, _, _):
        answer = await client.post("/run", json=ROW)
    assert answer.status_code == 500 and told in answer.json()


async def test_metrics_are_the_general_ones() -> None:
    verdicts = [{"_ng_task_index": 0, "_ng_rollout_index": n, "reward": float(n)} for n in range(2)]
    async with agent_with(Reply(body=response_of(RING))) as (client, _, verifier):
        answer = await client.post("/aggregate_metrics", json={"verify_responses": verdicts})
    assert answer.json()["key_metrics"]["mean/reward"] == 0.5
    assert not verifier.requests
