"""The first run: the bundled benchmark, the embedded model, a scored result. And what a run says when its model does not answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Gym, unused_port, wait_until_gone
from tests.loopback import Reply, endpoint
from tests.run_trees import read_rows

FIRST_STEPS = ("eval", "run", "--benchmark", "first_steps", "--output", "results/first_steps.jsonl", "--split", "benchmark")


def test_a_real_model_answers_the_bundled_benchmark(gym: Gym) -> None:
    result = gym.run(
        *FIRST_STEPS, "--model-type", "llama_cpp_model", "--limit", "6", "--num-repeats", "2", "--observe", timeout=110
    )
    assert result.returncode == 0, result.stderr
    results = gym.cwd / "results"
    rollouts = read_rows(results / "first_steps.jsonl")
    assert len(rollouts) == 12
    for row in rollouts:
        assert row["reward"] in (0.0, 1.0)
        assert row["response"]["usage"]["output_tokens"] > 0
        assert row["response"]["output"][-1]["content"][0]["text"]
    (entry,) = json.loads((results / "first_steps_aggregate_metrics.json").read_text())
    assert {"pass@1/accuracy", "pass@2/accuracy", "majority@2/accuracy"} <= set(entry["agent_metrics"])
    assert entry["agent_metrics"]["mean/reward"] == sum(row["reward"] for row in rollouts) / 12
    assert "pass@1[avg-of-2]/accuracy" in result.stdout
    captures = list((results / "first_steps_run" / "model_calls").glob("*.capture.jsonl"))
    assert len(captures) == 12
    assert wait_until_gone(str(gym.cwd)) == []


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (401, "check the key: --model-api-key, or policy_api_key in env.yaml"),
        (404, "check --model-url"),
        (429, "the account behind the key has no quota left"),
        (500, "every attempt is in"),
    ],
)
async def test_an_endpoint_that_refuses_is_named(gym: Gym, status: int, advice: str) -> None:
    reply = Reply(
        status, {"error": {"message": f"this endpoint says {status}", "code": "insufficient_quota" if status == 429 else None}}
    )
    async with endpoint(reply) as upstream:
        result = await run_in_thread(
            gym, *FIRST_STEPS, "--model-type", "inference_provider", "--model-url", upstream.base_url, "--model", "m",
            "--model-api-key", "sk-never-shown-1", "--limit", "3",
        )  # fmt: skip
    assert result.returncode == 1
    assert "Error: nothing produced a result: 3 of 3 rollouts failed (agent_run_error: 3)" in result.stderr
    assert f"HTTP {status} from a server behind the agent" in result.stderr
    assert f"this endpoint says {status}" in result.stderr
    assert f"hint: {advice}" in result.stderr
    assert "Traceback" not in result.stderr
    for path in [path for path in gym.cwd.rglob("*") if path.is_file()]:
        assert b"sk-never-shown-1" not in path.read_bytes(), path


async def run_in_thread(gym: Gym, *words: str):  # type: ignore[no-untyped-def]
    import asyncio

    return await asyncio.to_thread(gym.run, *words)


def test_an_endpoint_that_is_not_there_is_waited_for_and_named(gym: Gym) -> None:
    url = f"http://127.0.0.1:{unused_port()}/v1"
    result = gym.run(
        *FIRST_STEPS, "--model-type", "inference_provider", "--model-url", url, "--model", "m", "--model-api-key", "dummy",
        "++model_endpoint_readiness_timeout_seconds=1",
    )  # fmt: skip
    assert result.returncode == 1
    assert f"model endpoint {url} (from policy_model.base_url) does not answer yet" in result.stderr
    assert f"Error: no model endpoint answered within 1 s: {url} (from policy_model.base_url)" in result.stderr
    assert "--model-url" in result.stderr
    assert wait_until_gone(str(gym.cwd)) == []


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ("--model-type", "inference_provider"),
            1,
            "no model is configured: policy_base_url, policy_api_key, policy_model_name are not set",
        ),
        (("--model-type", "llama_cp_model"), 2, "Did you mean `llama_cpp_model`?"),
        (("--model-type", "llama_cpp_model", "--model", "nothing.gguf"), 1, "no weights at"),
        (("--model-type", "llama_cpp_model", "--benchmark", "first_step"), 2, "Did you mean `first_steps`?"),
        (
            ("--model-type", "llama_cpp_model", "--agent", "first_steps_mcqa_simple_agnet"),
            1,
            "Did you mean `first_steps_mcqa_simple_agent`?",
        ),
        ((), 1, "references responses_api_models/'policy_model', which is not defined"),
    ],
)
def test_what_is_missing_is_named(gym: Gym, words: tuple[str, ...], code: int, message: str) -> None:
    result = gym.run(*FIRST_STEPS, *words)
    assert result.returncode == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (gym.cwd / "results" / "first_steps.jsonl").exists()


def test_a_file_that_is_no_model_is_named(gym: Gym) -> None:
    Path(gym.cwd / "fake.gguf").write_text("not a model")
    result = gym.run(*FIRST_STEPS, "--model-type", "llama_cpp_model", "--model", "fake.gguf")
    assert result.returncode == 1
    assert "fake.gguf" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_repeats_with_a_temperature_differ_and_a_seed_repeats_them(gym: Gym) -> None:
    words = (*FIRST_STEPS, "--model-type", "llama_cpp_model", "--limit", "4", "--num-repeats", "4", "--temperature", "1.5")
    assert gym.run(*words, timeout=190).returncode == 0
    texts: dict[int, set[str]] = {}
    for row in read_rows(gym.cwd / "results" / "first_steps.jsonl"):
        texts.setdefault(row["_ng_task_index"], set()).add(row["response"]["output"][-1]["content"][0]["text"])
    assert max(map(len, texts.values())) > 1
    seeded = []
    for _ in range(2):
        assert gym.run(*words, "+num_repeats_add_seed=true", "--concurrency", "1", timeout=190).returncode == 0
        rows = read_rows(gym.cwd / "results" / "first_steps.jsonl")
        seeded.append(
            {
                (row["_ng_task_index"], row["_ng_rollout_index"]): row["response"]["output"][-1]["content"][0]["text"]
                for row in rows
            }
        )
    assert seeded[0] == seeded[1]
    assert len(set(seeded[0].values())) > 4


@pytest.mark.parametrize("url", ["localhost:1/v1", "ftp://host/v1", "not a url"])
def test_an_address_that_is_no_url_is_named_before_anything_starts(gym: Gym, url: str) -> None:
    result = gym.run(
        *FIRST_STEPS, "--model-type", "inference_provider", "--model-url", url, "--model", "m", "--model-api-key", "dummy"
    )
    assert result.returncode == 1
    assert f"policy_model.base_url is not an http:// or https:// URL: {url}" in result.stderr


async def test_waiting_and_retrying_are_visible(gym: Gym) -> None:
    async with endpoint(Reply(503, b"busy")) as upstream:
        words = (
            "--model-type",
            "inference_provider",
            "--model-url",
            upstream.base_url,
            "--model",
            "m",
            "--model-api-key",
            "dummy",
            "--limit",
            "2",
        )
        gym.start(*FIRST_STEPS, *words)
        import asyncio

        output = await asyncio.to_thread(gym.wait_for, "in flight, no answer for", 40)
    assert "(policy_model) " in output
    assert "[model_retry url=" in output
    assert "Waiting: 0 / 2 finished, 2 in flight" in output


@pytest.mark.parametrize("kind", ["folder", "broken link"])
def test_an_env_yaml_that_is_no_file_is_named(gym: Gym, kind: str) -> None:
    if kind == "folder":
        (gym.cwd / "env.yaml").mkdir()
    else:
        (gym.cwd / "env.yaml").symlink_to(gym.cwd / "nowhere")
    result = gym.run("env", "validate", "--benchmark", "first_steps", "--model-type", "llama_cpp_model")
    assert result.returncode == 1
    assert f"{gym.cwd / 'env.yaml'}: this is not a file that can be read" in result.stderr
