"""Handlers of every form that FastAPI knows: plain functions, injected parameters, embedded bodies. Values were observed there."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from fastapi import BackgroundTasks, Body, Cookie, Depends, Header, Query, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from pydantic import BaseModel
from starlette.routing import Route

from backend.config.config_types import AggregateMetrics, AggregateMetricsRequest
from backend.responses.schema import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from backend.servers.agent_server import BaseResponsesAPIAgentConfig, SimpleResponsesAPIAgent
from backend.servers.judge import JudgeError
from backend.servers.resources_server import (
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from backend.servers.rollout_correlation import current_rollout_id
from tests.odd_servers import CLIENT, PLACE, RESPONSE, VERIFY

ROW = {"responses_create_params": {"input": "hi"}, "_ng_task_index": 4, "_ng_rollout_index": 2}


class Environment(SimpleResourcesServer):
    """Never asked itself; subclasses replace what they test."""

    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        raise NotImplementedError


def client_of(base: type, config: Any, **methods: Any) -> TestClient:
    server = type("Odd", (base,), methods)(config=config, server_client=CLIENT)
    app = server.setup_webserver()
    server.setup_exception_middleware(app)
    return TestClient(app, raise_server_exceptions=False)


def environment(**methods: Any) -> TestClient:
    return client_of(Environment, BaseResourcesServerConfig(**PLACE), **methods)


def in_another_thread() -> bool:
    """TestClient's loop has a thread of its own, which is named so."""
    return threading.current_thread().name.startswith("AnyIO worker")


def test_plain_functions_run_in_a_thread() -> None:
    ran = []

    def seed_session(self: Any, body: BaseSeedSessionRequest) -> BaseSeedSessionResponse:
        ran.append(in_another_thread())
        return BaseSeedSessionResponse()

    def aggregate_metrics(self: Any, body: AggregateMetricsRequest) -> AggregateMetrics:
        ran.append(in_another_thread())
        return AggregateMetrics(agent_metrics={"rows": len(body.verify_responses)})

    def verify(self: Any, body: BaseVerifyRequest) -> BaseVerifyResponse:
        ran.append(in_another_thread())
        if body.response.id == "judge":
            raise JudgeError("no judge")
        return BaseVerifyResponse(**body.model_dump(), reward=0.5)

    def get_reverify_mode(self: Any) -> str:
        ran.append(in_another_thread())
        return "stateless"

    client = environment(
        seed_session=seed_session, aggregate_metrics=aggregate_metrics, verify=verify, get_reverify_mode=get_reverify_mode
    )
    assert client.post("/seed_session", json={}).json() == {}
    assert client.post("/aggregate_metrics", json={"verify_responses": [{}, {}]}).json()["agent_metrics"] == {"rows": 2}
    assert client.post("/verify", json=VERIFY).json()["reward"] == 0.5
    judged = client.post("/verify", json={**VERIFY, "response": {**RESPONSE, "id": "judge"}})
    assert (judged.status_code, judged.json()["_ng_failure_class"]) == (200, "judge_failed")
    assert client.get("/reverify_mode").json() == "stateless"
    assert ran == [True] * 5


class Agent(SimpleResponsesAPIAgent):
    """Never asked itself."""

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        raise NotImplementedError

    async def run(self, body: BaseRunRequest) -> BaseVerifyResponse:
        raise NotImplementedError


def sync_run(self: Any, body: BaseRunRequest) -> dict[str, Any]:
    return {"rollout": current_rollout_id()}


async def run_of_a_dict(self: Any, request: Request, body: dict) -> dict[str, Any]:  # type: ignore[type-arg]
    return {"rollout": current_rollout_id(), "keys": sorted(body)}


async def run_of_a_request(self: Any, request: Request) -> dict[str, Any]:
    return {"rollout": current_rollout_id(), "keys": sorted(await request.json())}


async def run_with_more(self: Any, body: BaseRunRequest, q: int = 3) -> dict[str, Any]:
    return {"rollout": current_rollout_id(), "q": q}


KEYS = ["_ng_rollout_index", "_ng_task_index", "responses_create_params"]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (sync_run, {}),
        (run_of_a_dict, {"keys": KEYS}),
        (run_of_a_request, {"keys": KEYS}),
        (run_with_more, {"q": 3}),
    ],
)
def test_every_form_of_run_works_for_its_rollout(run: Any, said: dict[str, Any]) -> None:
    client = client_of(Agent, BaseResponsesAPIAgentConfig(**PLACE), run=run)
    assert client.post("/run", json=ROW).json() == {"rollout": "4-2", **said}


def test_an_agents_plain_functions_run_in_a_thread() -> None:
    def responses(self: Any, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        return NeMoGymResponse.model_validate({**RESPONSE, "id": str(in_another_thread())})

    def aggregate_metrics(self: Any, body: AggregateMetricsRequest = Body()) -> AggregateMetrics:
        return AggregateMetrics(agent_metrics={"thread": in_another_thread()})

    client = client_of(Agent, BaseResponsesAPIAgentConfig(**PLACE), responses=responses, aggregate_metrics=aggregate_metrics)
    assert client.post("/ng-rollout/1-1/v1/responses", json={"input": "q"}).json()["id"] == "True"
    assert client.post("/aggregate_metrics", json={"verify_responses": []}).json()["agent_metrics"] == {"thread": True}


def method_of(request: Request) -> str:
    return request.method


class Part(BaseModel):
    a: int = 1


async def embedded(self: Any, body: BaseVerifyRequest = Body(embed=True)) -> BaseVerifyResponse:
    return BaseVerifyResponse(**body.model_dump(), reward=1)


async def optional(self: Any, body: BaseVerifyRequest | None = None) -> dict[str, bool]:
    return {"given": body is not None}


async def defaulted(self: Any, body: BaseVerifyRequest = None) -> dict[str, bool]:  # type: ignore[assignment]
    return {"given": body is not None}


async def with_parameters(
    self: Any, body: BaseVerifyRequest, request: Request, q: int = Query(3), h: str = Header("z"), c: str = Cookie("y")
) -> dict[str, Any]:
    return {"q": q, "h": h, "c": c, "path": request.url.path}


async def depending(self: Any, body: BaseVerifyRequest, d: str = Depends(method_of)) -> dict[str, str]:
    return {"d": d}


async def two_bodies(self: Any, body: BaseVerifyRequest, part: Part) -> dict[str, int]:
    return {"a": part.a}


async def keyword_only(self: Any, *, body: BaseVerifyRequest) -> dict[str, str]:
    return {"id": body.response.id}


async def of_a_dict(self: Any, body: dict) -> dict[str, Any]:  # type: ignore[type-arg]
    return {"keys": sorted(body)}


async def of_nothing(self: Any) -> int:
    return 3


FORMS = {
    "embedded": (embedded, {"body": VERIFY}, {}, 200, {"reward": 1.0}),
    "not embedded": (embedded, VERIFY, {}, 422, {"detail": [{"type": "missing", "loc": ["body", "body"], "msg": "Field required", "input": None}]}),
    "optional": (optional, None, {}, 200, {"given": False}),
    "defaulted": (defaulted, None, {}, 200, {"given": False}),
    "defaulted and given": (defaulted, VERIFY, {}, 200, {"given": True}),
    "parameters": (with_parameters, VERIFY, {}, 200, {"q": 3, "h": "z", "c": "y", "path": "/verify"}),
    "parameters given": (
        with_parameters, VERIFY, {"params": {"q": 5}, "headers": {"h": "hh", "cookie": "c=cc"}}, 200, {"q": 5, "h": "hh", "c": "cc"},
    ),
    "a dependency": (depending, VERIFY, {}, 200, {"d": "POST"}),
    "two bodies": (two_bodies, {"body": VERIFY, "part": {"a": 4}}, {}, 200, {"a": 4}),
    "keyword only": (keyword_only, VERIFY, {}, 200, {"id": "r"}),
    "a dict": (of_a_dict, VERIFY, {}, 200, {"keys": ["response", "responses_create_params"]}),
    "a list for a dict": (
        of_a_dict, [1], {}, 422, {"detail": [{"type": "dict_type", "loc": ["body"], "msg": "Input should be a valid dictionary", "input": [1]}]},
    ),
    "nothing": (of_nothing, VERIFY, {}, 200, 3),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_verifier_of_any_form(form: str) -> None:
    verify, body, options, status, expected = FORMS[form]
    answer = environment(verify=verify).post("/verify", json=body, **options)
    assert answer.status_code == status
    said = answer.json()
    assert said == expected or said.items() >= expected.items()


def test_only_plain_forms_are_served_without_fastapi() -> None:
    kinds = {}
    for form, (verify, *_rest) in FORMS.items():
        app: Any = environment(verify=verify).app
        kinds[form] = next(type(route) for route in app.routes if route.path == "/verify")
    plain = {form for form, kind in kinds.items() if kind is Route}
    assert plain == {"keyword only", "a dict", "a list for a dict", "nothing"}
    assert {kinds[form] for form in kinds if form not in plain} == {APIRoute}


def test_background_tasks_run_after_the_answer() -> None:
    ran = []

    async def verify(self: Any, body: BaseVerifyRequest, tasks: BackgroundTasks) -> dict[str, int]:
        tasks.add_task(ran.append, 1)
        return {"ran": len(ran)}

    verify.__annotations__["tasks"] = BackgroundTasks
    assert environment(verify=verify).post("/verify", json=VERIFY).json() == {"ran": 0}
    assert ran == [1]


@pytest.mark.parametrize(
    ("status", "own", "answered", "body", "header"),
    [
        (None, False, 200, b'{"status":"None"}', "1"),
        (201, False, 201, b'{"status":"201"}', "1"),
        (204, False, 204, b"", "1"),
        (201, True, 202, b"[]", None),
    ],
)
def test_what_a_handler_sets_goes_with_its_result(
    status: int | None, own: bool, answered: int, body: bytes, header: str | None
) -> None:
    async def verify(self: Any, body: BaseVerifyRequest, response: Response) -> dict[str, str]:
        if status:
            response.status_code = status
        response.headers["x-a"] = "1"
        return JSONResponse([], 202) if own else {"status": str(response.status_code)}  # type: ignore[return-value]

    answer = environment(verify=verify).post("/verify", json=VERIFY)
    assert (answer.status_code, answer.content, answer.headers.get("x-a")) == (answered, body, header)


@pytest.mark.parametrize("run", [sync_run, run_of_a_dict, run_with_more])
def test_what_is_no_json_is_refused(run: Any) -> None:
    client = client_of(Agent, BaseResponsesAPIAgentConfig(**PLACE), run=run)
    answer = client.post("/run", content=b"{", headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["detail"][0]["type"]) == (422, "json_invalid")
