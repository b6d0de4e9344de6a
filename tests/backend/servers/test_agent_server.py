"""What agents ask their base class about the rollout that they work for."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import Request

from backend.config.config_types import AggregateMetricsRequest, BaseServerConfig
from backend.responses.schema import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from backend.servers.agent_server import BaseResponsesAPIAgentConfig, SimpleResponsesAPIAgent
from backend.servers.resources_server import BaseRunRequest, BaseVerifyResponse
from backend.servers.server_utils import ServerClient
from tests.loopback import serving_in_thread

BODY = {"responses_create_params": {"input": "q"}, "_ng_task_index": 4, "_ng_rollout_index": 1, "_ng_attempt_index": 2}
ANSWER = {
    "id": "resp_1", "created_at": 1.0, "model": "m", "object": "response", "output": [], "parallel_tool_calls": True,
    "tool_choice": "auto", "tools": [],
}  # fmt: skip
CAPTURE = {"token_id_capture": {"enabled": True}}


class Agent(SimpleResponsesAPIAgent):
    async def responses(self, request: Request, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:  # type: ignore[override]
        return NeMoGymResponse.model_validate({**ANSWER, "id": self.url_path_for_request("/v1/responses", request)})

    async def run(self, body: BaseRunRequest) -> BaseVerifyResponse:
        raise NotImplementedError


def agent(config: dict[str, Any], **fields: Any) -> Agent:
    place = {"host": "127.0.0.1", "port": 1, "entrypoint": "app.py", "name": "agent"}
    client = ServerClient(BaseServerConfig(host="127.0.0.1", port=1), config)
    return Agent(config=BaseResponsesAPIAgentConfig(**place, **fields), server_client=client)


@pytest.mark.parametrize(
    ("config", "fields", "path"),
    [
        ({}, {}, "/v1/responses"),
        ({"observability_enabled": True}, {}, "/ng-rollout/4-1-a2/v1/responses"),
        (CAPTURE, {}, "/v1/responses"),
        (CAPTURE, {"token_id_capture": True}, "/ng-rollout/4-1-a2/training-token-capture/v1/responses"),
        (
            {"token_id_capture": {"enabled": True, "all_agents": True}},
            {},
            "/ng-rollout/4-1-a2/training-token-capture/v1/responses",
        ),
        ({"token_id_capture": {"enabled": False, "all_agents": True}}, {"token_id_capture": True}, "/v1/responses"),
    ],
)
def test_the_path_of_a_model_call(config: dict[str, Any], fields: dict[str, Any], path: str) -> None:
    server = agent(config, **fields)
    assert server.url_path_for_run("/v1/responses", BODY) == path
    assert server.base_url_for_run("http://h:1", BODY) == "http://h:1" + path.removesuffix("/v1/responses")
    assert server.rollout_id_from_run(BODY) == ("4-1-a2" if "ng-rollout" in path else None)


def test_a_model_servers_base_url() -> None:
    server = agent({"m": {"responses_api_models": {"impl": {"host": "127.0.0.1", "port": 8000}}}})
    assert server.resolve_model_base_url("m") == "http://127.0.0.1:8000/v1"
    assert server.resolve_model_base_url("m", "4-1") == "http://127.0.0.1:8000/ng-rollout/4-1/v1"


def test_a_client_without_a_configuration_asks_for_nothing() -> None:
    server = agent({})
    del server.server_client.global_config_dict
    assert server.url_path_for_run("/v1/responses", BODY) == "/v1/responses"


@pytest.mark.parametrize("prefix", ["", "/ng-rollout/7-0", "/ng-rollout/7-0/training-token-capture"])
def test_the_prefix_of_a_request_is_carried_on(prefix: str) -> None:
    with serving_in_thread(agent({}).setup_webserver()) as url:
        answer = httpx.post(f"{url}{prefix}/v1/responses", json={"input": "q"})
    assert answer.json()["id"] == f"{prefix}/v1/responses"


async def test_skipped_verification_has_no_metrics() -> None:
    server = agent({}, skip_verification=True)
    with pytest.warns(RuntimeWarning, match="skipped"):
        metrics = await server._aggregate_unless_skipped(AggregateMetricsRequest(verify_responses=[{"reward": 1.0}]))
    assert metrics.agent_metrics == {}
