"""`gym eval run` against model endpoints: how they are asked, and what they may not do."""

from __future__ import annotations

import asyncio
import subprocess
from typing import Any

import pytest

from tests.conftest import Gym
from tests.loopback import Endpoint, Reply, Request, chat_answer, endpoint, responses_answer

ROUTES = {"inference_provider": "/v1/chat/completions", "openai_model": "/v1/responses"}


def answer(request: Request) -> Reply:
    if request.path.endswith("/models"):
        return Reply(body={"data": []})
    return Reply(body=responses_answer("Answer: A") if request.path.endswith("/responses") else chat_answer("Answer: A"))


async def evaluate(gym: Gym, server: str, url: str, *words: str) -> subprocess.CompletedProcess[str]:
    run = (
        "eval", "run", "--benchmark", "first_steps", "--model-type", server, "--split", "benchmark", "--output", "o.jsonl",
        "--limit", "1", "--model", "m", "--model-url", url,
    )  # fmt: skip
    return await asyncio.to_thread(gym.run, *run, *words)


def calls(upstream: Endpoint) -> list[Any]:
    return [request for request in upstream.requests if not request.path.endswith("/models")]


@pytest.mark.parametrize("server", ROUTES)
@pytest.mark.parametrize(
    ("key", "sent"), [("sk-0123456789", "Bearer sk-0123456789"), ("dummy", "Basic dTpodW50ZXIyaHVudGVyMg==")]
)
async def test_credentials_in_the_url_and_a_key(gym: Gym, server: str, key: str, sent: str) -> None:
    async with endpoint(answer) as upstream:
        url = upstream.base_url.replace("://", "://u:hunter2hunter2@")
        result = await evaluate(gym, server, url, "--model-api-key", key)
    assert result.returncode == 0, result.stderr
    assert [(request.path, request.headers["Authorization"]) for request in calls(upstream)] == [(ROUTES[server], sent)]
    assert f"Model endpoint {url.replace('hunter2hunter2', '****')} (from" in result.stdout
    for path in [path for path in gym.cwd.rglob("*") if path.is_file()]:
        assert b"hunter2hunter2" not in path.read_bytes(), path
    assert "hunter2hunter2" not in result.stdout + result.stderr


@pytest.mark.parametrize("key", ["sk-0123456789", "dummy"])
async def test_a_failed_call_is_debugged_without_what_proves_who_asks(gym: Gym, key: str) -> None:
    def repeats_the_headers(request: Request) -> Reply:
        return Reply(400, {"error": str(request.headers)}) if request.body else answer(request)

    async with endpoint(repeats_the_headers) as upstream:
        url = upstream.base_url.replace("://", "://u:hunter2hunter2@")
        words = ("--model-api-key", key, "++global_aiohttp_client_request_debug=true", "++verbose=true", "--verbose")
        result = await evaluate(gym, "inference_provider", url, *words)
    assert result.returncode == 1
    log = (gym.cwd / "o_run" / "logs" / "policy_model.log").read_text()
    assert "/chat/completions answered 400; sent: {'messages':" in log
    told = [result.stdout, result.stderr, *(path.read_text() for path in gym.cwd.rglob("*") if path.is_file())]
    for secret in ("sk-0123456789", "hunter2hunter2", "dTpodW50ZXIyaHVudGVyMg=="):
        assert not any(secret in text for text in told)


SEEDED = ("--model-api-key", "dummy", "--num-repeats", "3", "+num_repeats_add_seed=true")


@pytest.mark.parametrize("server", ROUTES)
async def test_each_repeat_has_its_seed(gym: Gym, server: str) -> None:
    async with endpoint(answer) as upstream:
        result = await evaluate(gym, server, upstream.base_url, *SEEDED)
    assert result.returncode == 0, result.stderr
    assert sorted(request.body["seed"] for request in calls(upstream)) == [0, 1, 2]
    assert not any("metadata" in request.body for request in calls(upstream))
    assert result.stderr == ""


@pytest.mark.parametrize("server", ROUTES)
async def test_an_endpoint_that_knows_no_seed_is_asked_without_one_and_that_is_told_once(gym: Gym, server: str) -> None:
    def strict(request: Request) -> Reply:
        if "seed" in (request.body or {}):
            return Reply(422, {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]})
        return answer(request)

    async with endpoint(strict) as upstream:
        result = await evaluate(gym, server, upstream.base_url, *SEEDED)
    assert result.returncode == 0, result.stderr
    assert "Finished 3 / 3 rollouts (100%)" in result.stdout
    assert "failed" not in result.stdout.partition("Key metrics")[0]
    [line] = result.stderr.splitlines()
    assert line.endswith("the endpoint refuses `seed`: calls go without it, so repeats may be alike")
