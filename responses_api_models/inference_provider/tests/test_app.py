import asyncio
import socket
from pathlib import Path

import httpx
import pytest
import yaml

from nemo_gym.server_utils import global_aiohttp_client_exit
from responses_api_models.inference_provider.app import InferenceProvider, InferenceProviderConfig
from tests import component_servers
from tests.component_servers import application_of, make_server
from tests.loopback import Reply, chat_answer, endpoint, serving

QUESTION = {"input": [{"role": "user", "content": "hi"}]}


@pytest.fixture(autouse=True)
async def _closed_session():
    yield
    await global_aiohttp_client_exit()


def model_server(base_url, **settings):
    endpoint_keys = {"base_url": base_url, "api_key": "sk-0123456789", "model": "ours"}
    return make_server(InferenceProvider, {"name": "policy_model", **endpoint_keys, **settings})


async def ask(upstream_url, body=QUESTION, path="/v1/responses", **settings):
    return await component_servers.ask(model_server(upstream_url, **settings), path, body)


def test_the_shipped_config_fits():
    text = (Path(__file__).parents[1] / "configs" / "inference_provider.yaml").read_text()
    block = yaml.safe_load(text)["policy_model"]["responses_api_models"]["inference_provider"]
    assert (block["base_url"], block["api_key"], block["model"]) == (
        "${policy_base_url}",
        "${policy_api_key}",
        "${policy_model_name}",
    )
    config = InferenceProviderConfig(host="h", port=1, name="policy_model", **block)
    assert (config.num_concurrent_requests, config.uses_reasoning_parser, config.extra_body) == (1000, False, {})


@pytest.mark.parametrize(
    "preset", ["baseten", "deepinfra", "fireworks", "friendli", "gemini", "hf_inference", "nebius", "openrouter", "together"]
)
def test_a_preset_is_the_shipped_config_with_an_address(preset):
    folder = Path(__file__).parents[1] / "configs"
    shipped, block = (
        yaml.safe_load((folder / f"{name}.yaml").read_text())["policy_model"]["responses_api_models"]["inference_provider"]
        for name in ("inference_provider", preset)
    )
    assert block.pop("base_url").startswith("https://")
    del shipped["base_url"]
    assert block == shipped


async def test_a_responses_call_goes_through_chat_completions():
    async with endpoint(Reply(body=chat_answer("Hello", reasoning_content="why"))) as upstream:
        answer = await ask(
            upstream.base_url,
            {**QUESTION, "model": "theirs", "temperature": 0.5, "max_output_tokens": 9},
            extra_body={"top_k": 3, "temperature": 1.0},
        )
    assert answer.status_code == 200
    response = answer.json()
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    assert response["model"] == "ours"
    assert response["usage"]["total_tokens"] == 28
    [request] = upstream.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["Authorization"] == "Bearer sk-0123456789"
    assert request.body == {
        "messages": [{"role": "user", "content": "hi"}],
        "temperature": 0.5,
        "max_tokens": 9,
        "top_k": 3,
        "model": "ours",
    }


async def test_a_chat_call_is_passed_on_without_empty_tools():
    body = {"messages": [{"role": "user", "content": "hi"}], "tools": [], "tool_choice": "auto", "model": "theirs", "n": None}
    async with endpoint(Reply(body=chat_answer("Hello", vendor_field=1))) as upstream:
        answer = await ask(upstream.base_url, body, "/v1/chat/completions")
    assert answer.json()["choices"][0]["message"]["vendor_field"] == 1
    assert upstream.requests[0].body == {"messages": body["messages"], "model": "ours"}


@pytest.mark.parametrize("parser", [True, False])
async def test_the_reasoning_parser_is_a_setting(parser):
    async with endpoint(Reply(body=chat_answer("<think>t</think>x"))) as upstream:
        answer = await ask(upstream.base_url, uses_reasoning_parser=parser)
    assert [item["type"] for item in answer.json()["output"]] == (["reasoning", "message"] if parser else ["message"])


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_the_endpoints_refusal_reaches_the_caller(status):
    async with endpoint(Reply(status, {"error": {"message": "maximum context length is 8192 tokens"}})) as upstream:
        answer = await ask(upstream.base_url)
    assert len(upstream.requests) == 1
    assert answer.status_code == 500
    assert answer.headers["x-gym-upstream-status"] == str(status)
    assert "maximum context length is 8192 tokens" in answer.json()


async def test_a_rate_limit_passes_after_the_time_it_asks_for():
    async with endpoint(Reply(429, b"later", {"Retry-After": "0.5"}), Reply(body=chat_answer())) as upstream:
        answer = await ask(upstream.base_url)
    assert answer.status_code == 200
    assert len(upstream.requests) == 2


async def test_a_broken_endpoint_is_given_up_with_its_words():
    async with endpoint(Reply(500, b"CUDA out of memory")) as upstream:
        answer = await ask(upstream.base_url)
    assert len(upstream.requests) == 3
    assert answer.headers["x-gym-upstream-status"] == "500"
    assert "CUDA out of memory" in answer.json()


async def test_nobody_listening_is_an_error_within_the_budget():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        answer = await ask(f"http://127.0.0.1:{unused.getsockname()[1]}/v1", retry_budget_seconds=0.2)
    assert answer.status_code == 500
    assert "ClientConnectorError" in answer.json()


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({**QUESTION, "temprature": 1}, 422, "temprature"),
        ({**QUESTION, "stream": True, "temperature": "hot"}, 422, "temperature"),
        ({**QUESTION, "previous_response_id": "x"}, 500, "NotImplementedError"),
        ({**QUESTION, "tool_choice": "required"}, 500, "demands a tool"),
    ],
)
async def test_bodies_that_cannot_be_served(body, status, named):
    async with endpoint(Reply(body=chat_answer())) as upstream:
        answer = await ask(upstream.base_url, body)
    assert answer.status_code == status
    assert named in answer.text
    assert upstream.requests == []


async def test_calls_beyond_the_limit_wait():
    async with endpoint(Reply(body=chat_answer(), delay=0.05)) as upstream:
        app = application_of(model_server(upstream.base_url, num_concurrent_requests=2))
        async with serving(app) as url, httpx.AsyncClient() as client:
            answers = await asyncio.gather(*(client.post(f"{url}/v1/responses", json=QUESTION) for _ in range(8)))
    assert [answer.status_code for answer in answers] == [200] * 8
    assert upstream.most_in_flight == 2


async def test_every_dialect_also_as_a_stream():
    messages = {"max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    async with endpoint(Reply(body=chat_answer("Hello", reasoning_content="why"))) as upstream:
        for path, body, last in (
            ("/v1/responses", QUESTION, "response.completed"),
            ("/v1/chat/completions", {"messages": messages["messages"]}, "data: [DONE]"),
            ("/v1/messages", messages, "message_stop"),
        ):
            answer = await ask(upstream.base_url, body | {"stream": True}, path)
            assert answer.status_code == 200
            assert "why" in answer.text
            assert "Hello" in answer.text
            assert last in answer.text
    assert all("stream" not in request.body for request in upstream.requests)
    assert upstream.requests[2].body["max_tokens"] == 5


async def test_a_caller_that_leaves_ends_the_calls_to_an_overloaded_endpoint():
    async with (
        endpoint(Reply(429, b"busy", {"Retry-After": "1"})) as upstream,
        serving(application_of(model_server(upstream.base_url))) as url,
        httpx.AsyncClient() as client,
    ):
        with pytest.raises(httpx.ReadTimeout):
            await client.post(f"{url}/v1/responses", json=QUESTION, timeout=0.5)
        seen = len(upstream.requests)
        await asyncio.sleep(2.2)
        assert seen == 1
        assert len(upstream.requests) == seen
