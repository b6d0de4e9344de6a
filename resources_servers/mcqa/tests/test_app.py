"""The server's routes and metrics, through its real application."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from nemo_gym.config_types import BaseServerConfig
from nemo_gym.server_utils import ServerClient
from resources_servers.mcqa.app import MCQAResourcesServer, MCQAResourcesServerConfig, MCQARunRequest

DATA = Path(__file__).parents[1] / "data"
OPTIONS = [{"A": "Paris"}, {"B": "Rome"}, {"C": "Lima"}, {"D": None}]


def server(**settings: Any) -> MCQAResourcesServer:
    config = MCQAResourcesServerConfig(host="127.0.0.1", port=0, entrypoint="app.py", name="mcqa", **settings)
    head = BaseServerConfig(host="127.0.0.1", port=0)
    return MCQAResourcesServer(config=config, server_client=ServerClient(head, {}))


@asynccontextmanager
async def client_of(application: MCQAResourcesServer) -> AsyncIterator[httpx.AsyncClient]:
    app = application.setup_webserver()
    application.setup_exception_middleware(app)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://mcqa") as client:
        yield client


def message(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}


def row(*texts: str, **fields: Any) -> dict[str, Any]:
    return {
        "responses_create_params": {"input": [{"role": "user", "content": "Capital of France?"}]},
        "response": {
            "id": "r",
            "created_at": 0,
            "model": "m",
            "object": "response",
            "output": [message(text) for text in texts],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        },
        "options": OPTIONS,
        "expected_answer": "A",
        "uuid": "one",
        "subject": "geography",
        **fields,
    }


@pytest.mark.parametrize(
    ("request_body", "reward", "extracted"),
    [
        (row(r"\boxed{A}"), 1.0, "A"),
        (row(r"\boxed{B}"), 0.0, "B"),
        (row(r"\boxed{D}"), 0.0, None),
        (row("Answer: A"), 0.0, None),
        (row("Answer: A", grading_mode="lenient_answer_colon"), 1.0, "A"),
        (row("Answer: Paris", grading_mode="lenient_answer_colon"), 1.0, "A"),
        (row(r"\boxed{it is Paris}", grading_mode="lenient_boxed"), 1.0, "A"),
        (row(r"\boxed{A}", expected_answer=" a "), 1.0, "A"),
        (row(r"\bo", r"xed{A}"), 1.0, "A"),
        (row(""), 0.0, None),
        (row(), 0.0, None),
        (row(r"\boxed{A}", options=None), 0.0, None),
        (row("pick: q", expected_answer="Q", template_metadata={"output_regex": r"pick: (\w)"}), 1.0, "Q"),
    ],
)
async def test_verify(request_body: dict[str, Any], reward: float, extracted: str | None) -> None:
    async with client_of(server()) as client:
        answer = await client.post("/verify", json=request_body)
    assert answer.status_code == 200
    verdict = answer.json()
    assert (verdict["reward"], verdict["extracted_answer"]) == (reward, extracted)
    assert verdict["expected_answer"] == request_body["expected_answer"].strip().upper()
    assert verdict["failure_reason"] is None
    assert set(verdict) == {
        "responses_create_params", "response", "reward", "failure_reason", "expected_answer", "extracted_answer",
    }  # fmt: skip


async def test_the_configured_mode_beats_the_row() -> None:
    async with client_of(server(grading_mode="lenient_answer_colon_md")) as client:
        answer = await client.post("/verify", json=row("**Answer:** A.", grading_mode="strict_single_letter_boxed"))
    assert answer.json()["reward"] == 1.0


@pytest.mark.parametrize(
    "fields",
    [{"expected_answer": 1}, {"expected_answer": None}, {"grading_mode": "lenient_answer_colon_md"}, {"options": [{"A": 1}]}],
)
async def test_rows_that_do_not_fit_get_422(fields: dict[str, Any]) -> None:
    async with client_of(server()) as client:
        answer = await client.post("/verify", json=row("x", **fields))
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"][:2] == ["body", next(iter(fields))]


async def test_other_routes() -> None:
    async with client_of(server()) as client:
        assert (await client.get("/reverify_mode")).json() == "stateless"
        assert (await client.post("/seed_session", json=row("x"))).json() == {}
        assert (await client.post("/verify", content=b"")).status_code == 422


async def test_aggregate_metrics_of_two_tasks() -> None:
    attempts = [(0, 0, 1.0, "A"), (0, 1, 0.0, None), (1, 0, 0.0, "B"), (1, 1, 0.0, "B")]
    responses = [
        {"_ng_task_index": task, "_ng_rollout_index": rollout, "reward": reward, "extracted_answer": letter}
        for task, rollout, reward, letter in attempts
    ]
    async with client_of(server()) as client:
        answer = await client.post("/aggregate_metrics", json={"verify_responses": responses})
    assert answer.status_code == 200
    metrics = answer.json()
    assert metrics["agent_metrics"]["pass@2/accuracy"] == 50.0
    assert metrics["key_metrics"] == {
        "mean/reward": 0.25,
        "pass@1/accuracy": 25.0,
        "pass@1[avg-of-2]/accuracy": 25.0,
        "pass@1[avg-of-2]/no_answer": 25.0,
        "pass@2/no_answer": 50.0,
        "majority@2/accuracy": 50.0,
    }


async def test_aggregate_metrics_of_nothing() -> None:
    async with client_of(server()) as client:
        answer = await client.post("/aggregate_metrics", json={"verify_responses": []})
    assert answer.status_code == 200
    assert answer.json()["agent_metrics"] == {} and answer.json()["key_metrics"] == {}


def test_example_data() -> None:
    rows = [json.loads(line) for line in (DATA / "example.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == 5
    for example in rows:
        parsed = MCQARunRequest.model_validate(example)
        assert parsed.options is not None
        question = example["responses_create_params"]["input"][-1]["content"]
        for option in parsed.options:
            for letter, text in option.items():
                assert f"{letter}: {text}" in question
        assert parsed.expected_answer in {letter for option in parsed.options for letter in option}
    assert json.loads((DATA / "example_metrics.json").read_text("utf-8"))["Number of examples"] == 5


def test_example_rollouts_are_real() -> None:
    rollouts = [json.loads(line) for line in (DATA / "example_rollouts.jsonl").read_text("utf-8").splitlines()]
    assert len(rollouts) == 5
    for rollout in rollouts:
        assert rollout["reward"] == float(rollout["extracted_answer"] == rollout["expected_answer"])
        assert rollout["response"]["output"]
