"""Judges: what counts as an answer, and that a judge that cannot be asked never looks like a reward of nought."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from pydantic import BaseModel

from backend.io.json_codec import dumps
from backend.rollouts.failures import Destination, destination_of, reason_of
from backend.servers.judge import JudgeError, call_judge, judge_failsafe, reraise_judge_errors
from backend.servers.resources_server import (
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from backend.servers.server_utils import ServerClient
from tests.loopback import Reply, endpoint

RESPONSE = {
    "id": "resp_1", "created_at": 1.0, "model": "m", "object": "response", "output": [], "parallel_tool_calls": True,
    "tool_choice": "auto", "tools": [],
}  # fmt: skip
VERIFY = {"responses_create_params": {"input": "2+2?"}, "response": RESPONSE, "question": "2+2?"}


class Grade(BaseModel):
    grade: str


def client_of(base_url: str) -> ServerClient:
    host, _, port = base_url.removeprefix("http://").removesuffix("/v1").partition(":")
    block = {"host": host, "port": int(port), "entrypoint": "app.py"}
    config = {"judge": {"responses_api_models": {"some_model": block}}}
    return ServerClient(head_server_config=ServerClient.load_head_server_config(config), global_config_dict=config)


async def ask(client: ServerClient) -> Grade:
    return await call_judge(client, server_name="judge", url_path="/v1/responses", json={"input": "?"}, response_model=Grade)


async def test_a_judge_that_answers_is_heard() -> None:
    async with endpoint(Reply(body={"grade": "A"})) as judge:
        assert (await ask(client_of(judge.base_url))).grade == "A"
        assert judge.requests[0].body == {"input": "?"}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(status=503, body={"error": "overloaded"}), ("ClientResponseError: 503", "overloaded")),
        (Reply(body={"mark": 1}), ("ValidationError", "Field required")),
        (Reply(body=b"I think it is right"), ("JSONDecodeError",)),
    ],
)
async def test_whatever_goes_wrong_is_a_judge_error_that_says_what(reply: Reply, said: tuple[str, ...]) -> None:
    async with endpoint(reply) as judge:
        with pytest.raises(JudgeError) as caught:
            await ask(client_of(judge.base_url))
    assert all(piece in str(caught.value) for piece in said)


async def test_other_awaitables_get_the_same_treatment_and_judge_errors_stay_themselves() -> None:
    async def broken(error: Exception) -> None:
        raise error

    async def given_up() -> None:
        raise asyncio.CancelledError

    with pytest.raises(JudgeError, match=r"^KeyError: .grade.$"):
        await reraise_judge_errors(broken(KeyError("grade")))
    own = JudgeError("empty judge response")
    with pytest.raises(JudgeError) as caught:
        await reraise_judge_errors(broken(own))
    assert caught.value is own
    with pytest.raises(asyncio.CancelledError):
        await reraise_judge_errors(given_up())


class JudgedRequest(BaseVerifyRequest):
    question: str


class JudgedServer(SimpleResourcesServer):
    """Three outcomes: no judge, a bug, and a real nought."""

    async def verify(self, request: Request, body: JudgedRequest) -> BaseVerifyResponse:  # type: ignore[override]
        if body.response.id == "no judge":
            raise JudgeError("ConnectionError: refused")
        if body.response.id == "bug":
            raise KeyError("grade")
        return BaseVerifyResponse(**body.model_dump(), reward=0.0)


class OwnRoute(JudgedServer):
    """Registers the documented route anew, with FastAPI."""

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.router.routes = [route for route in app.router.routes if getattr(route, "path", None) != "/verify"]
        app.post("/verify")(judge_failsafe(self.verify))
        return app


async def verdict(kind: type[JudgedServer], response_id: str) -> httpx.Response:
    config = BaseResourcesServerConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="judged")
    server = kind(config=config, server_client=ServerClient.__new__(ServerClient))
    app = server.setup_webserver()
    server.setup_exception_middleware(app)
    body = dumps({**VERIFY, "response": {**RESPONSE, "id": response_id}})
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gym") as client:
        return await client.post("/verify", content=body, headers={"content-type": "application/json"})


@pytest.mark.parametrize("kind", [JudgedServer, OwnRoute])
async def test_no_judge_and_no_reward_are_told_apart(kind: type[JudgedServer]) -> None:
    failed = await verdict(kind, "no judge")
    record: dict[str, Any] = failed.json()
    assert failed.status_code == 200
    assert record["reward"] == 0.0
    assert record["_ng_failure_class"] == "judge_failed"
    assert record["_ng_failure_judge_error"] == "ConnectionError: refused"
    assert record["question"] == "2+2?" and record["responses_create_params"]["input"] == "2+2?"
    assert destination_of(record) is Destination.FAILURES
    assert reason_of(record) == "ConnectionError: refused"

    nought = (await verdict(kind, "wrong")).json()
    assert nought["reward"] == 0.0 and destination_of(nought) is Destination.ROLLOUTS

    bug = await verdict(kind, "bug")
    assert bug.status_code == 500 and bug.json() == "KeyError('grade')"


async def test_invalid_bodies_are_refused_before_any_judge() -> None:
    config = BaseResourcesServerConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="judged")
    app = JudgedServer(config=config, server_client=ServerClient.__new__(ServerClient)).setup_webserver()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gym") as client:
        assert (await client.post("/verify", json={"response": RESPONSE})).status_code == 422


async def test_a_verifier_as_a_function_of_its_class_keeps_the_body_apart_from_the_server() -> None:
    config = BaseResourcesServerConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="judged")
    server = JudgedServer(config=config, server_client=ServerClient.__new__(ServerClient))
    body = JudgedRequest.model_validate({**VERIFY, "response": {**RESPONSE, "id": "no judge"}})
    answer = await judge_failsafe(JudgedServer.verify)(server, None, body)
    assert b'"question":"2+2?"' in answer.body
