import asyncio
import json
import os
import stat

import aiohttp
import httpx
import pytest
from fastapi import Request

from backend.config.config_types import BaseServerConfig
from backend.errors import GymError
from backend.responses.schema import (
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
)
from backend.servers.model_call_capture import CaptureStore, ModelCallCaptureConfig
from backend.servers.model_call_line import error_category
from backend.servers.model_call_records import (
    merge_model_call_capture_into_record,
    read_model_calls,
    record_from_line,
    sums_over_calls,
)
from backend.servers.model_server import BaseResponsesAPIModelConfig, SimpleResponsesAPIModel
from backend.servers.server_utils import ServerClient
from tests.loopback import chat_answer, responses_answer, serving


class EchoModel(SimpleResponsesAPIModel):
    """Answers with what it got, or fails as the input says."""

    config: BaseResponsesAPIModelConfig

    async def responses(self, request: Request, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        if body.input == "upstream 400":
            error = aiohttp.ClientResponseError(None, (), status=400, message="Bad")
            error.response_content = b"too long"
            raise error
        if body.input == "refused":
            raise ConnectionRefusedError("nobody there")
        if body.input == "slow":
            raise TimeoutError
        if body.input == "bug":
            raise KeyError("x")
        return NeMoGymResponse.model_validate(responses_answer(str(body.input), metadata={"path": request.url.path}))

    async def chat_completions(self, body: NeMoGymChatCompletionCreateParamsNonStreaming) -> NeMoGymChatCompletion:
        return NeMoGymChatCompletion.model_validate(chat_answer("chat", reasoning_content="why"))


def application(config=None):
    server = EchoModel(
        config=BaseResponsesAPIModelConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="policy_model"),
        server_client=ServerClient(BaseServerConfig(host="127.0.0.1", port=1), config or {}),
    )
    app = server.setup_webserver()
    server.setup_liveness(app)
    server.setup_exception_middleware(app)
    return app


def observing(folder):
    return {"observability_enabled": True, "model_call_capture_dir": str(folder)}


async def post(base_url, path, body, **arguments):
    async with httpx.AsyncClient() as client:
        content = body if isinstance(body, bytes) else json.dumps(body)
        return await client.post(f"{base_url}{path}", content=content, **arguments)


async def test_both_dialects_also_below_the_prefix():
    async with serving(application()) as url:
        for prefix in ("", "/ng-rollout/3-1", "/ng-rollout/3-1/training-token-capture", "/ng-rollout/odd!id"):
            answer = await post(url, f"{prefix}/v1/responses", {"input": "hi"})
            assert answer.status_code == 200
            assert answer.json()["output"][0]["content"][0]["text"] == "hi"
            assert answer.json()["metadata"] == {"path": "/v1/responses"}
            answer = await post(url, f"{prefix}/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]})
            assert answer.json()["choices"][0]["message"]["content"] == "chat"
        async with httpx.AsyncClient() as client:
            assert (await client.get(url + "/")).json() == {"status": "ok"}
            for path in ("/v1/models", "/ng-rollout/3-1/nothing", "/ng-rollout/"):
                assert (await client.get(url + path)).status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "location"),
    [
        ("/v1/responses", {"input": "a", "temprature": 1}, ["body", "temprature"]),
        ("/v1/responses", [], ["body"]),
        ("/v1/chat/completions", {"messages": [], "stream": 1}, ["body", "stream"]),
        ("/v1/chat/completions", {"messages": [], "stream": "false"}, ["body", "stream"]),
        ("/v1/chat/completions", {"messages": [], "functions": []}, ["body", "functions"]),
    ],
)
async def test_bodies_are_strict(path, body, location):
    async with serving(application()) as url:
        answer = await post(url, path, body)
    assert answer.status_code == 422
    [detail] = answer.json()["detail"]
    assert detail["loc"] == location


async def test_an_upstream_failure_is_500_with_its_status_in_a_header():
    async with serving(application()) as url:
        answer = await post(url, "/v1/responses", {"input": "upstream 400"})
    assert answer.status_code == 500
    assert answer.headers["x-gym-upstream-status"] == "400"
    assert answer.json() == "Hit an exception in EchoModel___policy_model calling an inner server: b'too long'"


async def test_a_call_is_recorded_in_the_documented_form(tmp_path):
    async with serving(application(observing(tmp_path / "new"))) as url:
        answer = await post(url, "/ng-rollout/3-1/v1/responses", {"input": "hi"})
        await post(url, "/v1/responses", {"input": "not part of a rollout"})
        [line] = (tmp_path / "new" / "3-1.capture.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert list(record) == [
        "model_call_id",
        "dialect",
        "model_ref",
        "started_at",
        "completed_at",
        "latency_ms",
        "latency_ttft_ms",
        "status_code",
        "error_category",
        "request",
        "response",
    ]
    assert len(record["model_call_id"]) == 32
    assert record["dialect"] == "responses"
    assert record["model_ref"] == {"type": "responses_api_models", "name": "policy_model"}
    assert record["request"] == {"input": "hi"}
    assert record["response"] == answer.json()
    assert (record["status_code"], record["error_category"]) == (200, None)
    assert 0 < record["latency_ttft_ms"] <= record["latency_ms"] < 5000
    assert record["completed_at"] == pytest.approx(record["started_at"] + record["latency_ms"] / 1000)
    assert os.listdir(tmp_path / "new") == ["3-1.capture.jsonl"]


@pytest.mark.parametrize(
    ("said", "client_status", "status", "category", "raw"),
    [
        ("upstream 400", 500, 400, "client_error", "too long"),
        ("refused", 500, None, "connection", "ConnectionRefusedError('nobody there')"),
        ("slow", 500, None, "timeout", "TimeoutError()"),
        ("bug", 500, None, "exception", "KeyError('x')"),
    ],
)
async def test_failures_are_recorded_with_the_upstream_status(tmp_path, said, client_status, status, category, raw):
    async with serving(application(observing(tmp_path))) as url:
        answer = await post(url, "/ng-rollout/a/v1/responses", {"input": said})
    assert answer.status_code == client_status
    [record] = CaptureStore(tmp_path).read("a")
    assert (record["status_code"], record["error_category"]) == (status, category)
    assert (record["request"], record["response"], record["response_raw"]) == ({"input": said}, None, raw)


async def test_an_unreadable_request_is_kept_as_text(tmp_path):
    async with serving(application(observing(tmp_path))) as url:
        assert (await post(url, "/ng-rollout/a/v1/responses", b"{nonsense")).status_code == 422
    [record] = CaptureStore(tmp_path).read("a")
    assert (record["request"], record["request_raw"]) == (None, "{nonsense")
    assert (record["status_code"], record["error_category"]) == (422, "client_error")
    assert "detail" in record["response"]


async def test_many_calls_of_one_rollout_are_all_there(tmp_path):
    async with serving(application(observing(tmp_path))) as url, httpx.AsyncClient() as client:
        await asyncio.gather(*(client.post(f"{url}/ng-rollout/r/v1/responses", json={"input": str(i)}) for i in range(40)))
    lines = CaptureStore(tmp_path).read("r")
    assert sorted(int(line["request"]["input"]) for line in lines) == list(range(40))


async def test_a_record_that_cannot_be_written_costs_nothing_but_the_record(tmp_path):
    (tmp_path / "r.capture.jsonl").mkdir()
    async with serving(application(observing(tmp_path))) as url:
        assert (await post(url, "/ng-rollout/r/v1/responses", {"input": "a"})).status_code == 200
    store = CaptureStore(tmp_path)
    assert store.is_incomplete("r")
    assert stat.S_ISREG((tmp_path / "r.capture.incomplete").stat().st_mode)
    assert read_model_calls(store, "r")[1][0]["code"] == "model_call_capture_unreadable"


def test_capture_needs_an_absolute_folder():
    for folder in (None, "relative"):
        with pytest.raises(GymError, match="folder"):
            ModelCallCaptureConfig.from_global_config({"observability_enabled": True, "model_call_capture_dir": folder})
        with pytest.raises(ValueError, match="absolute"):
            ModelCallCaptureConfig(observability_enabled=True, model_call_capture_dir=folder)
    assert not ModelCallCaptureConfig.from_global_config({}).observability_enabled


@pytest.mark.parametrize(
    ("status", "category"),
    [
        (200, None),
        (401, "auth"),
        (403, "auth"),
        (404, "not_found"),
        (408, "timeout"),
        (504, "timeout"),
        (429, "rate_limit"),
        (422, "client_error"),
        (500, "upstream_error"),
        (503, "upstream_error"),
    ],
)
def test_error_categories(status, category):
    assert error_category(status) == category


def line(dialect, response, **fields):
    base = {"model_call_id": "1" * 32, "dialect": dialect, "started_at": 2.0, "completed_at": 3.0, "latency_ms": 1000.0}
    return base | {"status_code": 200, "error_category": None, "request": {"model": "asked"}, "response": response} | fields


def test_records_read_each_dialect():
    usage = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13, "input_tokens_details": {"cached_tokens": 2}}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    thought = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]}
    first = record_from_line(line("responses", responses_answer(usage=usage, output=[thought, call])), 0)
    assert (first.tokens_in, first.tokens_out, first.tokens_total, first.tokens_reasoning) == (9, 4, 13, None)
    assert (first.cached_tokens, first.cache_hit, first.response_id, first.model) == (2, True, "resp_1", "upstream")
    assert (first.response_status, first.reasoning_content) == ("completed", "hm")
    assert first.tool_calls == [{"call_id": "c", "name": "f", "arguments": {}}]
    assert (first.call_index, first.latency_total_ms) == (0, 1000.0)

    second = record_from_line(line("chat", chat_answer("a", reasoning_content="why")), 1)
    assert (second.tokens_in, second.finish_reason, second.reasoning_content) == (20, "stop", "why")
    assert (second.cached_tokens, second.cache_hit) == (None, None)

    usage = {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4}
    third = record_from_line(line("messages", {"id": "m", "content": [], "stop_reason": "end_turn", "usage": usage}), 2)
    assert (third.tokens_in, third.tokens_total, third.cached_tokens, third.cache_creation_tokens) == (12, 14, 3, 4)

    failed = record_from_line(line("responses", None, status_code=429, error_category="rate_limit"), 3)
    assert (failed.model, failed.tokens_in, failed.error_category) == ("asked", None, "rate_limit")

    assert sums_over_calls([first, second, third, failed]) == {
        "tokens_in": 41,
        "tokens_out": 14,
        "tokens_reasoning": None,
        "tokens_total": 55,
        "cached_tokens": 5,
        "latency_total_ms": 4000.0,
        "num_calls": 4,
    }


def test_the_block_of_a_rollouts_record(tmp_path):
    store = CaptureStore(tmp_path)
    store.record("r", line("chat", chat_answer("late"), started_at=9.0))
    store.record("r", line("chat", chat_answer("early"), started_at=1.0))
    row = {"_ng_rollout_id": "r", "reward": 1.0}
    record = merge_model_call_capture_into_record(dict(row), [tmp_path])
    block = record["ng_model_call_capture"]
    assert set(block) == {"rollout_id", "metrics", "calls"}
    assert block["metrics"]["num_calls"] == 2
    assert [(call["call_index"], call["started_at"]) for call in block["calls"]] == [(0, 1.0), (1, 9.0)]
    assert not {"request", "response", "request_raw", "response_raw"} & block["calls"][0].keys()
    assert "ng_model_call_capture" not in merge_model_call_capture_into_record({"reward": 1.0}, [tmp_path])
    full = merge_model_call_capture_into_record(dict(row), [tmp_path], include_payloads=True)["ng_model_call_capture"]
    assert full["calls"][0]["response"]["choices"][0]["message"]["content"] == "early"


def test_gaps_say_what_is_not_known(tmp_path):
    store = CaptureStore(tmp_path)
    assert read_model_calls(store, "r") == ([], [{"code": "model_call_capture_no_records"}])
    store.record("r", line("chat", chat_answer()))
    with open(store.path_for("r"), "ab") as file:
        file.write(b'[1]\n{"model_call')
    store.mark_incomplete("r")
    records, gaps = read_model_calls(store, "r")
    assert len(records) == 1
    assert [gap["code"] for gap in gaps] == ["model_call_capture_records_unreadable", "model_call_capture_incomplete"]
    assert gaps[0]["detail"].startswith("2 ")
    store.delete("r")
    store.delete("r")
    assert os.listdir(tmp_path) == []
