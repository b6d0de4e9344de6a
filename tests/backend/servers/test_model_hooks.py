"""The methods of a model server between its routes and the author's two handlers may be replaced, and called."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import Body, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from pydantic import BaseModel

from backend.config.config_types import BaseServerConfig
from backend.responses.schema import (
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
)
from backend.responses.streaming import sanitize_streaming_responses_body, synthesize_responses_sse
from backend.servers.model_server import BaseResponsesAPIModelConfig, SimpleResponsesAPIModel
from backend.servers.server_utils import ServerClient
from tests.loopback import chat_answer, responses_answer

HELLO = {"messages": [{"role": "user", "content": "hi"}]}


class ResponseParams(NeMoGymResponseCreateParamsNonStreaming):
    """The dialect with a field of the server's own."""

    prefix_ids: list[int] | None = None


class Model(SimpleResponsesAPIModel):
    """Says what it was asked, as the id of its answer."""

    async def responses(self, request: Request, body: ResponseParams = Body()) -> NeMoGymResponse:  # type: ignore[override]
        return NeMoGymResponse.model_validate(responses_answer() | {"id": f"{body.input} {body.prefix_ids}"})

    async def chat_completions(self, body: NeMoGymChatCompletionCreateParamsNonStreaming) -> NeMoGymChatCompletion:
        return NeMoGymChatCompletion.model_validate(chat_answer())


def made(cls: type[SimpleResponsesAPIModel]) -> Any:
    config = BaseResponsesAPIModelConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="policy_model")
    return cls(config=config, server_client=ServerClient(BaseServerConfig(host="127.0.0.1", port=1), {}))


def client_of(cls: type[SimpleResponsesAPIModel]) -> TestClient:
    server = made(cls)
    app = server.setup_webserver()
    server.setup_exception_middleware(app)
    return TestClient(app, raise_server_exceptions=False)


def request_of(path: str = "/v1/responses") -> Request:
    return Request({"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""})


class Untyped(SimpleResponsesAPIModel):
    """Takes plain dictionaries."""

    async def responses(self, body: dict = Body()) -> Any:  # type: ignore[override, type-arg]
        return responses_answer() | {"id": f"{body.get('input')} {'stream' in body}"}

    async def chat_completions(self, body: dict = Body()) -> Any:  # type: ignore[override, type-arg]
        return chat_answer() | {"id": body["messages"][0]["content"]}


@pytest.mark.parametrize("stream", [False, True])
def test_handlers_that_take_a_dictionary_get_one(stream: bool) -> None:
    with client_of(Untyped) as client:
        answer = client.post("/v1/responses", json={"input": "hi", "stream": stream})
        assert answer.status_code == 200
        assert f"hi {not stream}" in answer.text and "failed" not in answer.text
        answer = client.post("/v1/chat/completions", json=HELLO | {"stream": stream})
        assert (answer.status_code, '"id":"hi"' in answer.text.replace(" ", "")) == (200, True)


class Dispatching(Model):
    """Replaces what stands at the routes, in the way that shipped servers do."""

    async def responses_dispatch(self, request: Request, body: dict = Body()) -> Any:  # type: ignore[type-arg]
        if not body.get("stream"):
            return await self._invoke_responses(request, ResponseParams(input="own", prefix_ids=body["ids"]))
        clean, names = sanitize_streaming_responses_body({key: body[key] for key in body if key != "ids"})
        result = await self._invoke_responses(request, ResponseParams.model_validate(clean))
        return StreamingResponse(synthesize_responses_sse(result.model_dump(mode="json"), names), media_type="text/event-stream")

    async def chat_completions_dispatch(self, request: Request, body: dict = Body()) -> Any:  # type: ignore[type-arg]
        params = NeMoGymChatCompletionCreateParamsNonStreaming.model_validate(HELLO)
        return {"asked": sorted(body), "model": (await self._invoke_chat_completions(request, params)).model}

    async def messages(self, request: Request, body: dict = Body()) -> dict[str, Any]:  # type: ignore[type-arg]
        return {"mine": sorted(body)}


@pytest.mark.parametrize("prefix", ["", "/ng-rollout/3-1"])
def test_replaced_methods_serve_their_routes(prefix: str) -> None:
    client = client_of(Dispatching)
    assert client.post(f"{prefix}/v1/responses", json={"ids": [1, 2], "own": 1}).json()["id"] == "own [1, 2]"
    stream = client.post(f"{prefix}/v1/responses", json={"input": "q", "stream": True, "ids": []})
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert [line for line in stream.text.splitlines() if line.startswith("event: ")][-1] == "event: response.completed"
    asked = client.post(f"{prefix}/v1/chat/completions", json={"b": 1, "a": 2})
    assert asked.json() == {"asked": ["a", "b"], "model": chat_answer()["model"]}
    assert client.post(f"{prefix}/v1/messages", json={"q": 1}).json() == {"mine": ["q"]}


def test_a_replaced_method_gets_an_object_or_nothing() -> None:
    answer = client_of(Dispatching).post("/v1/responses", json=[1])
    assert answer.status_code == 422
    assert answer.json()["detail"] == [
        {"type": "dict_type", "loc": ["body"], "msg": "Input should be a valid dictionary", "input": [1]}
    ]


def test_replacing_one_method_leaves_the_others() -> None:
    class One(Model):
        async def responses_dispatch(self, request: Request, body: dict = Body()) -> Any:  # type: ignore[type-arg]
            return {"own": True}

    client = client_of(One)
    assert client.post("/v1/responses", json={}).json() == {"own": True}
    assert client.post("/v1/messages", json={"max_tokens": 4, **HELLO}).json()["type"] == "message"
    assert client.post("/v1/chat/completions", json=HELLO).json()["object"] == "chat.completion"


def test_a_method_that_changes_the_body_and_passes_it_on() -> None:
    class Passing(Model):
        async def responses_dispatch(self, request: Request, body: dict = Body()) -> Any:  # type: ignore[type-arg]
            return await super().responses_dispatch(request, {"input": "passed on", **body})

        async def messages(self, request: Request, body: dict = Body()) -> Any:  # type: ignore[type-arg]
            answer = await super().messages(request=request, body=body)
            answer.headers["x-passed"] = "on"
            return answer

    client = client_of(Passing)
    assert client.post("/v1/responses", json={}).json()["id"] == "passed on None"
    assert client.post("/v1/responses", json={"weird": 1}).json()["detail"][0]["loc"] == ["body", "weird"]
    assert client.post("/v1/messages", json={"max_tokens": 4, **HELLO}).headers["x-passed"] == "on"


def test_how_the_handlers_are_called_may_be_replaced() -> None:
    class Calling(Model):
        async def _invoke_responses(self, request: Request, params: Any) -> NeMoGymResponse:
            return NeMoGymResponse.model_validate(responses_answer() | {"id": "called"})

        async def _invoke_chat_completions(self, request: Request, params: Any) -> NeMoGymChatCompletion:
            return NeMoGymChatCompletion.model_validate(chat_answer() | {"id": "called"})

    client = client_of(Calling)
    for stream in (False, True):
        assert "called" in client.post("/v1/responses", json={"input": "q", "stream": stream}).text
        assert "called" in client.post("/v1/chat/completions", json={**HELLO, "stream": stream}).text
        assert "called" in client.post("/v1/messages", json={"max_tokens": 4, **HELLO, "stream": stream}).text


async def test_the_methods_can_be_called_outside_a_server() -> None:
    server = made(Model)
    plain = await server.responses_dispatch(request_of(), {"input": "q", "prefix_ids": [7]})
    assert isinstance(plain, Response) and b'"id":"q [7]"' in plain.body
    with pytest.raises(RequestValidationError, match="Field required"):
        await server.responses_dispatch(request=request_of(), body={})
    result = await server._invoke_responses(request_of(), ResponseParams(input="q"))
    assert (type(result), result.id) == (NeMoGymResponse, "q None")
    chat = await server._invoke_chat_completions(
        request_of(), NeMoGymChatCompletionCreateParamsNonStreaming.model_validate(HELLO)
    )
    assert type(chat) is NeMoGymChatCompletion
    said = await server.messages(request_of(), {"max_tokens": 4, **HELLO})
    assert isinstance(said, Response) and b'"type":"message"' in said.body


@pytest.mark.parametrize("named", [True, False])
async def test_a_handler_gets_the_request_wherever_it_takes_it(named: bool) -> None:
    class First(Model):
        async def responses(self, http: Request, params: ResponseParams) -> NeMoGymResponse:  # type: ignore[override]
            return NeMoGymResponse.model_validate(responses_answer() | {"id": http.url.path})

    class Last(Model):
        def responses(self, body: ResponseParams, request: Request) -> NeMoGymResponse:  # type: ignore[override]
            return NeMoGymResponse.model_validate(responses_answer() | {"id": request.url.path})

    server = made(First if named else Last)
    assert (await server._invoke_responses(request_of("/here"), ResponseParams(input="q"))).id == "/here"


def test_what_a_handler_sets_goes_with_its_answer_in_every_dialect() -> None:
    class Setting(Model):
        async def responses(self, body: ResponseParams, response: Response) -> Any:  # type: ignore[override]
            response.headers["x-set"] = "1"
            return responses_answer()

    client = client_of(Setting)
    for stream in (False, True):
        assert client.post("/v1/responses", json={"input": "q", "stream": stream}).headers["x-set"] == "1"
        assert client.post("/v1/messages", json={"max_tokens": 4, **HELLO, "stream": stream}).headers["x-set"] == "1"


def test_results_of_models_are_not_checked_against_their_annotation() -> None:
    """Neither are the reference's: what an endpoint says reaches the caller whole."""

    class Free(Model):
        async def responses(self, body: ResponseParams) -> NeMoGymResponse:  # type: ignore[override]
            return {"id": 1, "new": True}  # type: ignore[return-value]

    assert client_of(Free).post("/v1/responses", json={"input": "q"}).json() == {"id": 1, "new": True}


def test_a_replaced_method_with_a_model_for_its_body() -> None:
    class Small(BaseModel):
        n: int

    class Typed(Model):
        async def responses_dispatch(self, body: Small) -> Small:  # type: ignore[override]
            return {"n": body.n + 1, "more": 1}  # type: ignore[return-value]

    Typed.responses_dispatch.__annotations__.update(body=Small, **{"return": Small})
    client = client_of(Typed)
    assert client.post("/v1/responses", json={"n": 2}).json() == {"n": 3}
    assert client.post("/v1/responses", json={}).status_code == 422
