"""Rollout ids: the recorded cases, bodies of both kinds, and the context across tasks and threads."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import BaseModel, ConfigDict, Field

from backend.errors import GymError
from backend.servers.rollout_correlation import (
    RolloutContextMiddleware,
    current_rollout_id,
    is_rollout_id,
    maybe_rollout_id_from_run_body,
    rollout_context,
)

CASES_FILE = Path(__file__).parents[2] / "conformance" / "metrics_cases.json"
CASES = [case for case in json.loads(CASES_FILE.read_text("utf-8")) if case["kind"] == "rollout_id"]


class RunBody(BaseModel):
    model_config = ConfigDict(extra="allow")
    question: str = ""


class StrictBody(BaseModel):
    question: str = ""


@pytest.mark.parametrize("as_model", [False, True], ids=["mapping", "model"])
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_recorded_cases(case: dict, as_model: bool) -> None:
    body = RunBody(**case["input"]) if as_model else case["input"]
    if isinstance(case["expected"], dict):
        with pytest.raises(ValueError, match="_ng_rollout_id") as caught:
            maybe_rollout_id_from_run_body(body)
        assert isinstance(caught.value, GymError)
    else:
        assert maybe_rollout_id_from_run_body(body) == case["expected"]


def test_a_model_without_extras_has_no_id() -> None:
    assert maybe_rollout_id_from_run_body(StrictBody(question="q")) is None


def test_declared_fields_are_found_by_alias() -> None:
    class AliasedBody(BaseModel):
        task: int = Field(alias="_ng_task_index")
        rollout: int = Field(alias="_ng_rollout_index")

    assert maybe_rollout_id_from_run_body(AliasedBody(_ng_task_index=3, _ng_rollout_index=1)) == "3-1"


def test_a_trailing_newline_is_not_part_of_an_id() -> None:
    assert is_rollout_id("a")
    assert not is_rollout_id("a\n")
    assert not is_rollout_id("")


def test_no_rollout_outside_of_a_context() -> None:
    assert current_rollout_id() is None


def test_contexts_nest_and_end_with_an_error() -> None:
    with rollout_context("0-0"), rollout_context("0-1"):
        assert current_rollout_id() == "0-1"
    with pytest.raises(RuntimeError), rollout_context("0-0"):
        raise RuntimeError
    assert current_rollout_id() is None


async def test_each_task_keeps_its_own_id() -> None:
    async def work(rollout_id: str) -> list[str | None]:
        seen = []
        with rollout_context(rollout_id):
            for _ in range(3):
                await asyncio.sleep(0)
                seen.append(current_rollout_id())
            seen.append(await asyncio.to_thread(current_rollout_id))
        return seen

    ids = [f"{task}-0" for task in range(5)]
    assert await asyncio.gather(*map(work, ids)) == [[rollout_id] * 4 for rollout_id in ids]


def test_the_prefix_makes_its_rollout_the_current_one():
    application = FastAPI()
    application.add_middleware(RolloutContextMiddleware)

    @application.get("/who")
    async def who() -> dict[str, str | None]:
        return {"id": current_rollout_id()}

    client = TestClient(application)
    assert client.get("/who").json() == {"id": None}
    assert client.get("/ng-rollout/4-1/who").json() == {"id": "4-1"}
    assert client.get("/ng-rollout/.hidden/who").status_code == 404
    assert client.get("/ng-rollout/4-1/nowhere").status_code == 404
    assert current_rollout_id() is None
