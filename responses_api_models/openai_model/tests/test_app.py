import asyncio
from pathlib import Path

import httpx
import pytest
import yaml

from nemo_gym.server_utils import global_aiohttp_client_exit
from responses_api_models.openai_model.app import SimpleModelServer, SimpleModelServerConfig
from tests import component_servers
from tests.component_servers import application_of, make_server
from tests.loopback import Reply, chat_answer, endpoint, responses_answer, serving

QUESTION = {"input": [{"role": "user", "content": "hi"}]}
OK = Reply(body=responses_answer())


@pytest.fixture(autouse=True)
async def _closed_session():
    yield
    await global_aiohttp_client_exit()


def model_server(base_url, **settings):
    endpoint_keys = {"openai_base_url": base_url, "openai_api_key": "sk-0123456789", "openai_model": "ours"}
    return make_server(SimpleModelServer, {"name": "policy_model", **endpoint_keys, **settings})


async def ask(upstream_url, body=QUESTION, path="/v1/responses", **settings):
    return await component_servers.ask(model_server(upstream_url, **settings), path, body)


def test_the_shipped_config_fits():
    text = (Path(__file__).parents[1] / "configs" / "openai_model.yaml").read_text()
    block = yaml.safe_load(text)["policy_model"]["responses_api_models"]["openai_model"]
    assert block.pop("drop_input_reasoning_items") == "${oc.decode:${oc.env:POLICY_DROP_REASONING_ITEMS,false}}"
    config = SimpleModelServerConfig(host="h", port=1, name="policy_model", **block)
    assert (config.max_concurrent_requests, config.openai_default_headers, config.drop_input_reasoning_items) == (None, {}, False)


async def test_a_responses_call_is_passed_on():
    body = {**QUESTION, "model": "theirs", "temperature": 0.5, "user": None, "tools": [], "tool_choice": "auto"}
    async with endpoint(OK) as upstream:
        answer = await ask(
            upstream.base_url,
            body,
            extra_body={"temperature": 1.0, "store": False},
            openai_default_headers={"x-team": "gym"},
        )
    assert answer.status_code == 200
    assert answer.json()["output"][0]["content"][0]["text"] == "Hello"
    [request] = upstream.requests
    assert request.path == "/v1/responses"
    assert request.headers["x-team"] == "gym"
    assert request.body == {**QUESTION, "temperature": 0.5, "store": False, "model": "ours"}


async def test_history_from_earlier_answers_is_sent_without_nulls():
    thought = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": None, "status": None}
    said = {**responses_answer()["output"][0], "phase": None}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "id": None, "namespace": None}
    body = {"input": [thought, said, call], "tools": [{"type": "function", "name": "f", "parameters": {}, "strict": None}]}
    async with endpoint(OK) as upstream:
        await ask(upstream.base_url, body)
        await ask(upstream.base_url, body, drop_input_reasoning_items=True)
    kept, dropped = (request.body for request in upstream.requests)
    assert kept["input"] == [
        {"type": "reasoning", "id": "r", "summary": []},
        responses_answer()["output"][0],
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ]
    assert dropped["input"] == kept["input"][1:]
    assert kept["tools"] == body["tools"]


async def test_a_chat_call_is_passed_on():
    async with endpoint(Reply(body=chat_answer("Hello"))) as upstream:
        answer = await ask(upstream.base_url, {"messages": [{"role": "user", "content": "hi"}]}, "/v1/chat/completions")
    assert answer.json()["choices"][0]["message"]["content"] == "Hello"
    assert upstream.requests[0].path == "/v1/chat/completions"


@pytest.mark.parametrize("usage", [None, {"input_tokens": 1, "output_tokens": 2}, {"input_tokens": None}])
async def test_incomplete_usage_is_unknown_not_an_error(usage):
    async with endpoint(Reply(body=responses_answer(usage=usage, service_tier="turbo"))) as upstream:
        answer = await ask(upstream.base_url)
    assert answer.status_code == 200
    counted = answer.json()["usage"]
    assert (counted and counted["total_tokens"]) == (3 if usage and usage["input_tokens"] else None)


async def test_a_chat_only_endpoint_is_explained():
    async with endpoint(Reply(404, {"detail": "Not Found"})) as upstream:
        answer = await ask(upstream.base_url)
    assert answer.headers["x-gym-upstream-status"] == "404"
    assert "--model-type inference_provider" in answer.json()


async def test_an_answer_of_another_form_is_named():
    async with endpoint(Reply(body={"output": []})) as upstream:
        answer = await ask(upstream.base_url)
    assert answer.status_code == 500
    assert "not a NeMoGymResponse: id: Field required" in answer.json()


async def test_refused_keys_and_broken_endpoints():
    async with endpoint(Reply(401, b"bad key")) as upstream:
        answer = await ask(upstream.base_url)
    assert (answer.headers["x-gym-upstream-status"], len(upstream.requests)) == ("401", 1)
    async with endpoint(Reply(500, b"oops")) as upstream:
        answer = await ask(upstream.base_url)
    assert (answer.headers["x-gym-upstream-status"], len(upstream.requests)) == ("500", 3)


async def test_calls_beyond_the_limit_wait():
    async with endpoint(Reply(body=responses_answer(), delay=0.05)) as upstream:
        app = application_of(model_server(upstream.base_url, max_concurrent_requests=3))
        async with serving(app) as url, httpx.AsyncClient() as client:
            answers = await asyncio.gather(*(client.post(f"{url}/v1/responses", json=QUESTION) for _ in range(9)))
    assert [answer.status_code for answer in answers] == [200] * 9
    assert upstream.most_in_flight == 3
