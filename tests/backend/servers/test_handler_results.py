"""What becomes of a handler's result: the annotation is the response model, as with FastAPI. All values were observed there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.testclient import TestClient
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field, model_serializer, model_validator

from backend.responses.schema import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from backend.servers.agent_server import BaseResponsesAPIAgentConfig, SimpleResponsesAPIAgent
from backend.servers.handlers import to_response, typed_handler
from backend.servers.resources_server import (
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from backend.servers.server_utils import ServerClient
from tests.odd_servers import CLIENT, PLACE, RESPONSE, VERIFY

ECHOED = {"responses_create_params", "response"}
WRONG = "ResponseValidationError()"


class Odd(BaseVerifyResponse):
    kind: str = "odd"


class OddMore(Odd):
    more: float = 9.0


class Open(BaseVerifyResponse):
    model_config = ConfigDict(extra="allow")


class Closed(BaseVerifyResponse):
    model_config = ConfigDict(extra="forbid")


class Aliased(BaseVerifyResponse):
    model_config = ConfigDict(populate_by_name=True)

    inner: int = Field(default=1, alias="in-ner")


class Part(BaseModel):
    a: int = 1


class PartMore(Part):
    b: int = 2


class Nested(BaseVerifyResponse):
    one: Part
    several: list[Part]
    named: dict[str, Part]
    whatever: Any


class Doubled(BaseVerifyResponse):
    @computed_field  # type: ignore[prop-decorator]
    @property
    def twice(self) -> float:
        return self.reward * 2


class Counted(BaseVerifyResponse):
    validations: int = 0

    @model_validator(mode="after")
    def count(self) -> Counted:
        self.__dict__["validations"] += 1
        return self


class Checked(BaseVerifyResponse):
    model_config = ConfigDict(revalidate_instances="always")


class Written(BaseVerifyResponse):
    @model_serializer(mode="wrap")
    def write(self, inner: Any) -> dict[str, Any]:
        return {"reward": inner(self)["reward"], "written": True}

    def model_dump_json(self, **_options: Any) -> str:
        raise AssertionError("FastAPI writes by the type, not by this method")


def spoiled(made: BaseVerifyResponse) -> BaseVerifyResponse:
    made.__dict__["reward"] = "much"
    return made


def verdict(annotation: Any, make: Callable[[dict[str, Any]], Any]) -> Any:
    """The answer to `/verify` of a handler with that annotation that returns what `make` makes of the body's fields."""

    async def verify(self: Any, body: BaseVerifyRequest) -> Any:
        return make(body.model_dump())

    verify.__annotations__["return"] = annotation
    cls = type("Odd___", (SimpleResourcesServer,), {"verify": verify, "__module__": __name__})
    server = cls(config=BaseResourcesServerConfig(**PLACE), server_client=CLIENT)
    app = server.setup_webserver()
    server.setup_exception_middleware(app)
    return TestClient(app, raise_server_exceptions=False).post("/verify", json=VERIFY)


CASES = {
    "its own class": (Odd, lambda f: Odd(**f, reward=1), {"kind": "odd", "reward": 1.0, "failure_reason": None}),
    "a subclass": (Odd, lambda f: OddMore(**f, reward=1), {"kind": "odd", "reward": 1.0, "failure_reason": None}),
    "as text": ("Odd", lambda f: OddMore(**f, reward=1), {"kind": "odd", "reward": 1.0, "failure_reason": None}),
    "a dict": (Odd, lambda f: {**f, "reward": 1, "more": 3}, {"kind": "odd", "reward": 1.0, "failure_reason": None}),
    "its base class": (Odd, lambda f: BaseVerifyResponse(**f, reward=1), {"kind": "odd", "reward": 1.0, "failure_reason": None}),
    "extra fields": (Open, lambda f: Open(**f, reward=1, x=5), {"reward": 1.0, "failure_reason": None, "x": 5}),
    "a dict with extra fields": (Open, lambda f: {**f, "reward": 1, "x": 5}, {"reward": 1.0, "failure_reason": None, "x": 5}),
    "a union": (Odd | Open, lambda f: Open(**f, reward=1, x=5), {"reward": 1.0, "failure_reason": None, "x": 5}),
    "an alias": (Aliased, lambda f: Aliased(**f, reward=1, inner=3), {"reward": 1.0, "failure_reason": None, "in-ner": 3}),
    "an aliased dict": (Aliased, lambda f: {**f, "reward": 1, "in-ner": 4}, {"reward": 1.0, "failure_reason": None, "in-ner": 4}),
    "no number": (Odd, lambda f: Odd(**f, reward=math.nan), {"kind": "odd", "reward": None, "failure_reason": None}),
    "nested subclasses": (
        Nested,
        lambda f: Nested(**f, reward=1, one=PartMore(), several=[PartMore()], named={"k": PartMore()}, whatever=PartMore()),
        {
            "reward": 1.0,
            "failure_reason": None,
            "one": {"a": 1},
            "several": [{"a": 1}],
            "named": {"k": {"a": 1}},
            "whatever": {"a": 1, "b": 2},
        },
    ),
    "a computed field": (Doubled, lambda f: Doubled(**f, reward=2), {"reward": 2.0, "failure_reason": None, "twice": 4.0}),
    "validated when made and when answered": (
        Counted,
        lambda f: Counted(**f, reward=1),
        {"reward": 1.0, "failure_reason": None, "validations": 2},
    ),
    "set without validation": (
        Odd,
        lambda f: spoiled(Odd(**f, reward=1)),
        {"kind": "odd", "reward": "much", "failure_reason": None},
    ),
    "its own serializer": (Written, lambda f: Written(**f, reward=2), {"reward": 2.0, "written": True}),
    "made without fields": (Odd, lambda f: Odd.model_construct(reward=2), {"kind": "odd", "reward": 2, "failure_reason": None}),
    "Any": (Any, lambda f: OddMore(**f, reward=math.nan), {"kind": "odd", "more": 9.0, "reward": None, "failure_reason": None}),
    "None is no model": (None, lambda f: {"x": 1}, {"x": 1}),
    "a dict of anything": (dict, lambda f: {"a": Part(), "b": PartMore()}, {"a": {"a": 1}, "b": {"a": 1, "b": 2}}),
    "infinity": (dict[str, float], lambda f: {"a": math.inf}, {"a": None}),
    "a list": (list[int], lambda f: ("1", 2), [1, 2]),
    "a list of models": (list[Part], lambda f: [PartMore()], [{"a": 1}]),
    "a root model": (RootModel[list[int]], lambda f: [1], [1]),
    "a truth": (bool, lambda f: 1, True),
    "maybe nothing": (Odd | None, lambda f: None, None),
    "what pydantic does not know": (ServerClient, lambda f: {"a": 1}, {"a": 1}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_result_is_answered_by_its_annotation(case: str) -> None:
    annotation, make, expected = CASES[case]
    answer = verdict(annotation, make)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    said = answer.json()
    assert ({key: said[key] for key in said if key not in ECHOED} if isinstance(said, dict) else said) == expected


WRONG_CASES = {
    "nothing": (Odd, lambda f: None),
    "missing fields": (Odd, lambda f: {"reward": 1.0}),
    "a forbidden field": (Closed, lambda f: {**f, "reward": 1, "x": 5}),
    "a model for a dict": (dict, lambda f: Part()),
    "the class itself": (Odd, lambda f: OddMore),
    "a class that wants its instances checked": (Checked, lambda f: spoiled(Checked(**f, reward=1))),
}


@pytest.mark.parametrize("case", WRONG_CASES)
def test_a_result_that_does_not_fit_is_an_error(case: str) -> None:
    answer = verdict(*WRONG_CASES[case])
    assert (answer.status_code, answer.json()) == (500, WRONG)


def test_finished_responses_stay_as_they_are_whatever_is_annotated() -> None:
    for annotation in (Odd, Response, PlainTextResponse, Odd | None):
        answer = verdict(annotation, lambda f: JSONResponse({"x": 1}, 202, {"q": "1"}))
        assert (answer.status_code, answer.json(), answer.headers["q"]) == (202, {"x": 1}, "1")
    assert verdict(JSONResponse, lambda f: {"x": 1}).json() == {"x": 1}


def test_without_an_annotation_everything_is_answered_that_json_can_express() -> None:
    async def free(self: Any, body: BaseVerifyRequest):  # type: ignore[no-untyped-def]  # that is the point
        return {"kinds": {1}, "bytes": b"x", 3: OddMore(**body.model_dump(), reward=1).more}

    async def nan(self: Any, body: BaseVerifyRequest):  # type: ignore[no-untyped-def]
        return {"reward": math.nan}

    answers = []
    for verify in (free, nan):
        cls = type("Free", (SimpleResourcesServer,), {"verify": verify})
        server = cls(config=BaseResourcesServerConfig(**PLACE), server_client=CLIENT)
        app = server.setup_webserver()
        server.setup_exception_middleware(app)
        answers.append(TestClient(app, raise_server_exceptions=False).post("/verify", json=VERIFY))
    assert answers[0].json() == {"kinds": [1], "bytes": "x", "3": 9.0}
    assert answers[1].status_code == 500
    assert "not JSON compliant" in answers[1].json()


class DictAgent(SimpleResponsesAPIAgent):
    """Answers plain dicts."""

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        return {"id": "x"} if body.input == "short" else {**RESPONSE, "more": 1}  # type: ignore[return-value]

    async def run(self, body: BaseRunRequest) -> BaseVerifyResponse:
        short = body.responses_create_params.input == "short"
        return {"reward": 1.0} if short else {**VERIFY, "reward": 1, "leak": 2}  # type: ignore[return-value]


def test_an_agents_results_are_checked_too() -> None:
    server = DictAgent(config=BaseResponsesAPIAgentConfig(**PLACE), server_client=CLIENT)
    app = server.setup_webserver()
    server.setup_exception_middleware(app)
    client = TestClient(app, raise_server_exceptions=False)
    run = client.post("/run", json={"responses_create_params": {"input": "q"}}).json()
    assert (run["reward"], "leak" in run, run["failure_reason"]) == (1.0, False, None)
    assert client.post("/v1/responses", json={"input": "q"}).json()["more"] == 1  # of responses, unknown keys are kept
    for path, body in (("/run", {"responses_create_params": {"input": "short"}}), ("/v1/responses", {"input": "short"})):
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.json()) == (500, WRONG)


def test_a_seed_may_say_more_by_its_own_class() -> None:
    class Seeded(BaseSeedSessionResponse):
        env_id: str

    class Seeding(SimpleResourcesServer):
        async def seed_session(self, body: BaseSeedSessionRequest) -> Seeded:
            return {"env_id": "7"}  # type: ignore[return-value]

        async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
            raise NotImplementedError

    Seeding.seed_session.__annotations__["return"] = Seeded
    server = Seeding(config=BaseResourcesServerConfig(**PLACE), server_client=CLIENT)
    assert TestClient(server.setup_webserver()).post("/seed_session", json={}).json() == {"env_id": "7"}


def test_an_instance_of_the_annotated_class_is_not_validated_again() -> None:
    """Its response is the very object, so nothing is copied or checked: 34 kinds of items would have to be tried for each."""

    async def verify(body: BaseVerifyRequest) -> BaseVerifyResponse:
        raise NotImplementedError

    typed = typed_handler(verify)
    assert typed is not None and typed.form.result is not None
    made = BaseVerifyResponse.model_validate({**VERIFY, "reward": 1})
    assert typed.form.result.validate_python(made, from_attributes=True) is made
    assert to_response(made, typed.form.result).body == made.model_dump_json().encode()
