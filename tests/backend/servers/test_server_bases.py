"""What stands around every server: sessions, error envelopes, prefixes, validation, liveness."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import aiohttp
import httpx
import pytest
from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel, Field

from backend.config.config_types import AggregateMetricsRequest, BaseServerConfig
from backend.servers.resources_server import (
    BaseResourcesServerConfig,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)
from backend.servers.server_utils import SESSION_ID_KEY, ServerClient, apply_rollout_prefix
from tests.loopback import serving_in_thread

RESPONSE = {
    "id": "resp_1", "created_at": 1.0, "model": "m", "object": "response", "output": [], "parallel_tool_calls": True,
    "tool_choice": "auto", "tools": [],
}  # fmt: skip
VERIFY = {"responses_create_params": {"input": "2+2?"}, "response": RESPONSE}


class CountRequest(BaseModel):
    count: int


class CountingConfig(BaseResourcesServerConfig):
    REVERIFY_MODE = ReverifyMode.STATELESS


class CountingServer(SimpleResourcesServer):
    """Counts per session; fails in several ways on request."""

    config: CountingConfig
    counts: dict[str, int] = Field(default_factory=dict)

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/count")(self.count)
        app.post("/fail/{how}")(self.fail)
        return app

    async def seed_session(self, request: Request, body: BaseSeedSessionRequest) -> BaseSeedSessionResponse:  # type: ignore[override]
        self.counts[request.session[SESSION_ID_KEY]] = 0
        return BaseSeedSessionResponse()

    async def count(self, request: Request, body: CountRequest) -> dict[str, int]:
        session = request.session[SESSION_ID_KEY]
        self.counts[session] = self.counts.get(session, 0) + body.count
        return {"count": self.counts[session]}

    async def fail(self, how: str) -> None:
        if how == "http":
            raise HTTPException(status_code=409, detail="taken")
        if how == "inner":
            error = aiohttp.ClientResponseError(None, (), status=429)  # type: ignore[arg-type]
            error.response_content = b'{"error":"slow down"}'  # type: ignore[attr-defined]
            raise error
        raise KeyError("gone")

    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        return BaseVerifyResponse(**body.model_dump(), reward=float("nan") if body.response.id == "nan" else 0.5)


def application(name: str = "counter") -> FastAPI:
    client = ServerClient.__new__(ServerClient)
    server = CountingServer(config=CountingConfig(host="127.0.0.1", port=1, entrypoint="app.py", name=name), server_client=client)
    app = server.setup_webserver()
    server.setup_liveness(app)
    server.setup_exception_middleware(app)
    return app


@pytest.fixture
def url() -> Any:
    with serving_in_thread(application()) as base:
        yield base


def test_sessions_are_kept_by_their_cookie(url: str) -> None:
    with httpx.Client(base_url=url) as one, httpx.Client(base_url=url) as other:
        assert one.post("/seed_session", json={"any": "row"}).json() == {}
        assert one.post("/count", json={"count": 2}).json() == {"count": 2}
        assert one.post("/count", json={"count": 3}).json() == {"count": 5}
        assert other.post("/count", json={"count": 1}).json() == {"count": 1}


def test_the_cookie_has_the_documented_form(url: str) -> None:
    answer = httpx.get(url)
    header = answer.headers["set-cookie"]
    name, _, rest = header.partition("=")
    value, *attributes = rest.split("; ")
    assert name == "CountingServer___counter"
    assert attributes == ["path=/", "Max-Age=1209600", "httponly", "samesite=lax"]
    assert answer.headers["vary"] == "Cookie"
    session = json.loads(base64.b64decode(value.split(".")[0]))
    assert list(session) == ["session_id"]


def test_a_forged_cookie_is_a_new_session(url: str) -> None:
    forged = base64.b64encode(b'{"session_id": "me"}').decode() + ".abc.def"
    answer = httpx.get(url, headers={"Cookie": f"CountingServer___counter={forged}"})
    assert forged not in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    ("how", "status", "body"),
    [
        ("http", 409, {"detail": "taken"}),
        ("other", 500, "KeyError('gone')"),
        ("inner", 500, 'Hit an exception in CountingServer___counter calling an inner server: b\'{"error":"slow down"}\''),
    ],
)
def test_error_envelopes(url: str, how: str, status: int, body: Any) -> None:
    answer = httpx.post(f"{url}/fail/{how}")
    assert answer.status_code == status
    assert answer.json() == body
    assert answer.headers.get("x-gym-upstream-status") == ("429" if how == "inner" else None)
    assert ("set-cookie" in answer.headers) == (status != 500)


def test_verify_answers_request_and_reward(url: str) -> None:
    answer = httpx.post(f"{url}/verify", json=VERIFY).json()
    assert answer["reward"] == 0.5
    assert answer["failure_reason"] is None
    assert answer["response"]["id"] == "resp_1"
    assert answer["responses_create_params"]["input"] == "2+2?"


def test_a_reward_that_is_no_number_is_null_and_not_an_error(url: str) -> None:
    answer = httpx.post(f"{url}/verify", json=VERIFY | {"response": RESPONSE | {"id": "nan"}})
    assert (answer.status_code, answer.json()["reward"]) == (200, None)


@pytest.mark.parametrize(
    ("content", "location"),
    [
        (b'{"responses_create_params": {"input": "a"}}', ["body", "response"]),
        (
            b'{"responses_create_params": {"input": "a", "nonsense": 1}, "response": {}}',
            ["body", "responses_create_params", "nonsense"],
        ),
        (b"{", ["body", 1]),
        (b"", ["body", 0]),
    ],
)
def test_bodies_that_do_not_validate_get_422(url: str, content: bytes, location: list[Any]) -> None:
    answer = httpx.post(f"{url}/verify", content=content)
    assert answer.status_code == 422
    assert location in [entry["loc"] for entry in answer.json()["detail"]]


def test_the_rollout_prefix_reaches_every_route(url: str) -> None:
    assert httpx.post(f"{url}/ng-rollout/3-1-a2/verify", json=VERIFY).json()["reward"] == 0.5
    assert httpx.post(f"{url}/ng-rollout/-bad/verify", json=VERIFY).status_code == 404
    assert httpx.get(f"{url}/ng-rollout/3-1/reverify_mode").json() == "stateless"


def test_liveness_names_the_server(url: str) -> None:
    answer = httpx.get(url)
    assert answer.json() == {"status": "ok"}
    assert answer.headers["x-gym-server"] == "counter"


def test_aggregate_metrics(url: str) -> None:
    records = [{"_ng_task_index": task, "_ng_rollout_index": 0, "reward": reward} for task, reward in enumerate([1.0, 0.0])]
    answer = httpx.post(f"{url}/aggregate_metrics", json=AggregateMetricsRequest(verify_responses=records).model_dump()).json()
    assert answer["agent_metrics"]["mean/reward"] == 0.5
    assert answer["key_metrics"] == {"mean/reward": 0.5}
    assert [group["_ng_task_index"] for group in answer["group_level_metrics"]] == [0, 1]


@pytest.mark.parametrize(
    ("url", "rollout", "capture", "expected"),
    [
        ("/v1/responses", "0-1", False, "/ng-rollout/0-1/v1/responses"),
        ("/v1/responses", None, False, "/v1/responses"),
        ("http://h:1", "0-1", False, "http://h:1/ng-rollout/0-1"),
        ("http://h:1/v1", "0-1", True, "http://h:1/ng-rollout/0-1/training-token-capture/v1"),
    ],
)
def test_rollout_prefixes(url: str, rollout: str | None, capture: bool, expected: str) -> None:
    assert apply_rollout_prefix(url, rollout, capture) == expected


def test_the_innermost_error_is_found_at_any_depth() -> None:
    from backend.servers.middleware import innermost_error

    bottom = '{"error": {"message": "it\'s \\"401\\""}}'
    middle = json.dumps(f"Hit an exception in Model___policy_model calling an inner server: {bottom.encode()!r}")
    top = json.dumps(f"Hit an exception in Agent___a calling an inner server: {middle.encode()!r}")
    assert innermost_error(top) == innermost_error(middle) == innermost_error(bottom) == bottom
    assert innermost_error(json.dumps("KeyError('x')")) == "KeyError('x')"
    assert innermost_error(top[:-3]) == top[:-3]
    assert innermost_error("plain") == "plain"


@pytest.mark.parametrize(
    ("mode", "status", "said"),
    [
        ("stateless", 200, "stateless"),
        (ReverifyMode.UNSUPPORTED, 200, "unsupported"),
        ("later", 500, "ResponseValidationError()"),
    ],
)
def test_an_environment_may_say_how_it_is_verified_again(mode: Any, status: int, said: str) -> None:
    class Saying(CountingServer):
        async def get_reverify_mode(self) -> ReverifyMode:
            return mode

    client = ServerClient(BaseServerConfig(host="127.0.0.1", port=1), {})
    server = Saying(config=CountingConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="s"), server_client=client)
    app = server.setup_webserver()
    server.setup_exception_middleware(app)
    with serving_in_thread(app) as url:
        answer = httpx.get(f"{url}/reverify_mode")
    assert (answer.status_code, answer.json()) == (status, said)
    assert asyncio.run(CountingServer.get_reverify_mode(server)) is ReverifyMode.STATELESS
