import asyncio

import aiohttp
import httpx
import pytest
from fastapi import HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse

from backend.config.config_types import BaseServerConfig
from backend.responses.schema import (
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
)
from backend.responses.sse import read_events
from backend.servers.model_call_capture import CaptureStore
from backend.servers.model_server import BaseResponsesAPIModelConfig, SimpleResponsesAPIModel
from backend.servers.server_utils import ServerClient
from tests.loopback import chat_answer, responses_answer, serving

HELLO = {"messages": [{"role": "user", "content": "hi"}]}
CALL = {"type": "function_call", "name": "ns__g", "arguments": '{"a":1}', "call_id": "c1"}


def upstream_error(status, content):
    error = aiohttp.ClientResponseError(None, (), status=status, message="Bad")
    error.response_content = content
    return error


class ScriptedModel(SimpleResponsesAPIModel):
    """Answers, or raises, what the test put into it, and keeps what it was asked."""

    config: BaseResponsesAPIModelConfig
    result: object = None
    asked: list
    finished: list

    async def responses(self, request: Request, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        return await self.answer(body)

    async def chat_completions(self, body: NeMoGymChatCompletionCreateParamsNonStreaming) -> NeMoGymChatCompletion:
        return await self.answer(body)

    async def answer(self, body):
        self.asked.append(body.model_dump(exclude_unset=True))
        if isinstance(self.result, float):
            await asyncio.sleep(self.result)
            self.finished.append(True)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def model(result, folder=None):
    config = {"observability_enabled": True, "model_call_capture_dir": str(folder)} if folder else {}
    return ScriptedModel(
        config=BaseResponsesAPIModelConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="policy_model"),
        server_client=ServerClient(BaseServerConfig(host="127.0.0.1", port=1), config),
        result=result,
        asked=[],
        finished=[],
    )


def application(server):
    app = server.setup_webserver()
    server.setup_liveness(app)
    server.setup_exception_middleware(app)
    return app


async def post(server, path, body):
    async with serving(application(server)) as url, httpx.AsyncClient() as client:
        return await client.post(url + path, json=body)


def events(answer):
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    return list(read_events(answer.text))


def response(**fields):
    return NeMoGymResponse.model_validate(responses_answer(**fields))


@pytest.mark.parametrize("stream", [True, "yes", 1])
async def test_a_truthy_stream_replays_the_response(stream):
    server = model(response(output=[CALL]))
    namespace = {"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "g", "parameters": {}}]}
    body = {"input": "hi", "stream": stream, "client_metadata": {}, "tools": [namespace]}
    answer = await post(server, "/v1/responses", body)
    names = [event.name for event in events(answer)]
    assert names == ["response.created", "response.output_item.done", "response.completed"]
    done = events(answer)[1].json()["item"]
    assert (done["name"], done["namespace"]) == ("g", "ns")
    assert server.asked == [{"input": "hi", "tools": [{"type": "function", "name": "ns__g", "parameters": {}}]}]
    assert "set-cookie" in answer.headers


@pytest.mark.parametrize("stream", [False, None])
async def test_a_falsy_stream_is_an_ordinary_answer(stream):
    answer = await post(model(response()), "/v1/responses", {"input": "hi", "stream": stream})
    assert answer.json()["output"][0]["content"][0]["text"] == "Hello"


async def test_a_wrong_streaming_request_is_refused_before_the_stream():
    server = model(response())
    answer = await post(server, "/v1/responses", {"input": "hi", "stream": True, "temperature": "hot"})
    assert answer.status_code == 422
    [detail] = answer.json()["detail"]
    assert detail["loc"] == ["body", "temperature"]
    assert detail["url"].startswith("https://errors.pydantic.dev/")
    assert server.asked == []


@pytest.mark.parametrize(
    ("failure", "message", "status"),
    [
        (ValueError("boom"), "boom", None),
        (KeyError(), "KeyError()", None),
        (HTTPException(409, detail="taken"), "taken", None),
        (upstream_error(429, b'{"error":"slow down"}'), 'the model endpoint answered 429: {"error":"slow down"}', "429"),
        (upstream_error(503, b""), "the model endpoint answered 503: Bad", "503"),
    ],
)
async def test_a_failed_call_is_told_in_the_stream(failure, message, status):
    answer = await post(model(failure), "/v1/responses", {"input": "hi", "stream": True})
    created, failed = events(answer)
    assert (created.name, failed.name) == ("response.created", "response.failed")
    assert failed.json()["response"]["error"] == {"code": "server_error", "message": message}
    assert answer.headers.get("x-gym-upstream-status") == status


async def test_a_chat_stream_and_its_usage():
    body = HELLO | {"stream": True, "stream_options": {"include_usage": True}, "weird": 1}
    server = model(NeMoGymChatCompletion.model_validate(chat_answer("hey")))
    *chunks, done = events(await post(server, "/v1/chat/completions", body))
    assert done.data == "[DONE]"
    assert chunks[1].json()["choices"][0]["delta"] == {"content": "hey"}
    assert chunks[-1].json()["usage"]["total_tokens"] == 28
    assert server.asked == [HELLO]


async def test_a_chat_stream_that_fails_is_a_plain_500():
    answer = await post(model(upstream_error(400, b"no")), "/v1/chat/completions", HELLO | {"stream": True})
    assert (answer.status_code, answer.headers["x-gym-upstream-status"]) == (500, "400")
    assert answer.json() == "Hit an exception in ScriptedModel___policy_model calling an inner server: b'no'"


MESSAGES = {"model": "claude", "max_tokens": 9, **HELLO}


async def test_messages_go_through_the_responses_handler():
    server = model(response(output=[CALL | {"name": "f"}], incomplete_details=None))
    answer = await post(server, "/v1/messages", MESSAGES | {"top_k": 3, "system": "s"})
    said = answer.json()
    assert (said["model"], said["stop_reason"], said["usage"]) == ("claude", "tool_use", {"input_tokens": 20, "output_tokens": 8})
    assert said["content"] == [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]
    [asked] = server.asked
    assert (asked["instructions"], asked["max_output_tokens"], asked["model"]) == ("s", 9, "claude")


async def test_messages_stream():
    names = [event.name for event in events(await post(model(response()), "/v1/messages", MESSAGES | {"stream": True}))]
    assert names == [
        "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ([], 422, "valid dictionary"),
        (MESSAGES | {"max_tokens": "x"}, 422, "max_output_tokens"),
        ({"messages": [{"role": "user", "content": [{"type": "document"}]}]}, 500, "NotImplementedError"),
    ],
)
async def test_messages_that_cannot_be_asked(body, status, named):
    answer = await post(model(response()), "/v1/messages", body)
    assert answer.status_code == status
    assert named in answer.text


async def test_an_authors_finished_response_stays_as_it_is():
    for path, body in (("/v1/responses", {"input": "a"}), ("/v1/chat/completions", HELLO), ("/v1/messages", MESSAGES)):
        answer = await post(model(PlainTextResponse("mine", 418)), path, body | {"stream": True})
        assert (answer.status_code, answer.text) == (418, "mine")


async def test_handlers_of_another_form_are_served_without_streaming():
    class Odd(ScriptedModel):
        async def responses(self, request: Request) -> JSONResponse:
            return JSONResponse({"got": await request.json()})

        async def chat_completions(self, first: int = 0, second: int = 0) -> dict:
            return {"sum": first + second}

    server = Odd(**dict(model(None)))
    async with serving(application(server)) as url, httpx.AsyncClient() as client:
        assert (await client.post(url + "/v1/responses", json={"x": 1})).json() == {"got": {"x": 1}}
        assert (await client.post(url + "/v1/chat/completions?first=2&second=3")).json() == {"sum": 5}
        assert (await client.post(url + "/v1/messages", json={})).status_code == 404


STREAMS = {
    "responses": ("/v1/responses", {"input": "hi"}, lambda: response()),
    "chat": ("/v1/chat/completions", HELLO, lambda: NeMoGymChatCompletion.model_validate(chat_answer())),
    "messages": ("/v1/messages", MESSAGES, lambda: response()),
}


@pytest.mark.parametrize("dialect", STREAMS)
async def test_a_stream_is_recorded_with_the_answer_and_as_it_was(tmp_path, dialect):
    path, body, result = STREAMS[dialect]
    answer = await post(model(result(), tmp_path), f"/ng-rollout/r/{path[1:]}", body | {"stream": True})
    [record] = CaptureStore(tmp_path).read("r")
    assert (record["dialect"], record["status_code"], record["error_category"]) == (dialect, 200, None)
    assert record["request"] == body | {"stream": True}
    assert record["response_raw"] == answer.text
    assert "Hello" in str(record["response"])
    assert 0 < record["latency_ttft_ms"] <= record["latency_ms"]


async def test_a_failed_stream_is_recorded_with_the_upstream_status(tmp_path):
    body = {"input": "hi", "stream": True}
    await post(model(upstream_error(429, b"slow"), tmp_path), "/ng-rollout/r/v1/responses", body)
    await post(model(ValueError("boom"), tmp_path), "/ng-rollout/r/v1/responses", body)
    first, second = CaptureStore(tmp_path).read("r")
    assert (first["status_code"], first["error_category"]) == (429, "rate_limit")
    assert (second["status_code"], second["error_category"]) == (200, "upstream_error")
    assert second["response"]["error"]["message"] == "boom"


async def test_the_event_that_ends_a_stream_comes_after_its_record(tmp_path):
    """A client may hang up as soon as it has that event, and the collector may read the records then."""
    async with (
        serving(application(model(response(), tmp_path))) as url,
        aiohttp.ClientSession() as session,
        session.post(f"{url}/ng-rollout/r/v1/responses", json={"input": "hi", "stream": True}) as answer,
    ):
        async for line in answer.content:
            if line.startswith(b"event: response.completed"):
                assert len(CaptureStore(tmp_path).read("r")) == 1
                return
    raise AssertionError("the stream had no end")


async def test_a_caller_that_leaves_takes_the_call_along(tmp_path):
    server = model(30.0, tmp_path)
    async with serving(application(server)) as url, aiohttp.ClientSession() as session:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await session.post(f"{url}/ng-rollout/r/v1/responses", json={"input": "hi"})
        async with asyncio.timeout(3):
            while not CaptureStore(tmp_path).path_for("r").exists():
                await asyncio.sleep(0.02)
        assert (await session.get(url)).status == 200
    [record] = CaptureStore(tmp_path).read("r")
    assert (record["error_category"], record["status_code"], record["response"]) == ("incomplete", None, None)
    assert server.finished == []


async def test_a_caller_that_stays_has_its_answer():
    server = model(0.2)
    server.result = 0.2
    answer = await post(server, "/v1/responses", {"input": "hi"})
    assert (answer.status_code, answer.json(), server.finished) == (200, 0.2, [True])


def test_the_document_names_the_bodies_of_the_dialects():
    document = model(None).setup_webserver().openapi()
    bodies = {
        path: route["post"]["requestBody"]["content"]["application/json"]["schema"].get("$ref", "").rpartition("/")[2]
        for path, route in document["paths"].items()
    }
    assert bodies == {
        "/v1/responses": "NeMoGymResponseCreateParamsNonStreaming",
        "/v1/chat/completions": "NeMoGymChatCompletionCreateParamsNonStreaming",
        "/v1/messages": "",
    }
