"""The recorded cases of collecting and resuming: the whole operation against agents that answer by script over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from backend.config.request import ConfigRequest, FlagValue
from backend.errors import GymError
from backend.events import Event
from backend.io.jsonl import heal
from backend.io.result_paths import ResultPaths
from backend.io.row_keys import ATTEMPT, ROLLOUT, TASK
from backend.rollouts.evaluate import EvaluationRequest, evaluate
from backend.rollouts.resume import ATTEMPTS_VARIABLE, attempts_allowed, read_earlier_work
from backend.rollouts.run_events import CollectionEnded, RolloutFinished
from tests.loopback import serving_in_thread

ALL_CASES = json.loads(Path(__file__).with_name("metrics_cases.json").read_text("utf-8"))
ONLY_KILL_SHAPED = "collect_only_kill_shaped"
MENDED = {"resume_unknown_output_key", "resume_truncated_last_line", "resume_blank_line"}


def cases(kind: str, without: set[str]) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in ALL_CASES if case["kind"] == kind and case["name"] not in without]


def case_named(name: str) -> dict[str, Any]:
    return next(case for case in ALL_CASES if case["name"] == name)


def write_lines(path: Path, rows: list[dict[str, Any]], tail: str = "") -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + tail)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row[TASK], row[ROLLOUT], row.get(ATTEMPT, 0)))


class Deployment:
    """A head server and one agent `a1` in one application."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.port = 0
        self.dispatched: list[list[int]] = []
        self.aggregated: list[dict[str, Any]] = []

    def application(self) -> Starlette:
        routes = [
            Route("/global_config_dict_yaml", self.head),
            Route("/run", self.run, methods=["POST"]),
            Route("/aggregate_metrics", self.aggregate, methods=["POST"]),
        ]
        return Starlette(routes=routes)

    async def head(self, _request: Request) -> JSONResponse:
        fields = {"entrypoint": "app.py", "host": "127.0.0.1", "port": self.port}
        return JSONResponse(json.dumps({"a1": {"responses_api_agents": {"impl": fields}}}))

    async def run(self, request: Request) -> Response:
        row = await request.json()
        self.dispatched.append([row[TASK], row[ROLLOUT]])
        attempt = f"-a{row[ATTEMPT]}" if row.get(ATTEMPT) else ""
        answer = self.answers[f"{row[TASK]}-{row[ROLLOUT]}{attempt}"]
        return Response(status_code=answer["http_error"]) if "http_error" in answer else JSONResponse(answer)

    async def aggregate(self, request: Request) -> JSONResponse:
        self.aggregated = (await request.json())["verify_responses"]
        return JSONResponse({"agent_metrics": {}, "key_metrics": {}, "group_level_metrics": [], "repeat_level_metrics": []})


@contextmanager
def deployed(answers: dict[str, Any]) -> Iterator[Deployment]:
    deployment = Deployment(answers)
    with serving_in_thread(deployment.application()) as url:
        deployment.port = int(url.rpartition(":")[2])
        yield deployment


async def collect(folder: Path, deployment: Deployment, config: dict[str, Any], *, resume: bool) -> list[Event]:
    deployment.dispatched, deployment.aggregated = [], []
    keys = {
        "input_jsonl_fpath": str(folder / "input.jsonl"),
        "output_jsonl_fpath": str(folder / "r.jsonl"),
        "head_server.host": "127.0.0.1",
        "head_server.port": deployment.port,
        "resume_from_cache": resume,
        **config,
    }
    request = ConfigRequest(flag_values=tuple(FlagValue(key, value, key) for key, value in keys.items()), cwd=folder)
    return [event async for event in evaluate(EvaluationRequest(request), None)]


def alike(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In order, and without the wording of failures: the recorded ones are a stand-in's, and ours have a reason besides."""
    wording = ("_ng_failure_type", "_ng_failure_message", "failure_reason")
    return [{key: value for key, value in row.items() if key not in wording} for row in in_order(rows)]


def sidecar_classes(events: list[Event]) -> dict[str, int]:
    finished = [event for event in events if isinstance(event, RolloutFinished) and event.failure and event.offset is not None]
    classes = [event.failure for event in finished if event.failure is not None]
    return {name: classes.count(name) for name in classes}


@pytest.mark.parametrize("case", cases("collect", {ONLY_KILL_SHAPED}))
async def test_collect(case: dict[str, Any], tmp_path: Path) -> None:
    given = case["input"]
    write_lines(tmp_path / "input.jsonl", given["rows"])
    paths = ResultPaths(tmp_path / "r.jsonl")
    with deployed(given["agent_answers"]) as deployment:
        for number, expected in enumerate(case["expected"]["runs"]):
            events: list[Event] = []
            if "error" in expected:
                with pytest.raises(GymError) as caught:
                    await collect(tmp_path, deployment, given["config"], resume=number > 0)
                assert all(token in str(caught.value) for token in expected["message_names"])
                assert not paths.aggregate_metrics.exists()
            else:
                events = await collect(tmp_path, deployment, given["config"], resume=number > 0)
                assert alike(deployment.aggregated) == alike(expected["aggregated"])
            assert sorted(deployment.dispatched) == expected["dispatched"]
            assert in_order(read_lines(paths.rollouts)) == in_order(expected["rollouts_file"])
            assert alike(read_lines(paths.failures)) == alike(expected["failures_file"])
            if coverage := expected.get("coverage"):
                (ended,) = [event for event in events if isinstance(event, CollectionEnded)]
                assert sidecar_classes(events) == coverage["by_class"]
                assert sum(coverage["by_class"].values()) == coverage["failed"]
                assert (len(deployment.dispatched), ended.scored) == (coverage["dispatched"], coverage["completed_total"])


async def test_a_run_of_which_nothing_is_kept_has_no_result(tmp_path: Path) -> None:
    case = case_named(ONLY_KILL_SHAPED)
    write_lines(tmp_path / "input.jsonl", case["input"]["rows"])
    with deployed(case["input"]["agent_answers"]) as deployment, pytest.raises(GymError, match="nothing produced a result"):
        await collect(tmp_path, deployment, case["input"]["config"], resume=False)


def lay_out(case: dict[str, Any], folder: Path) -> ResultPaths:
    given, paths = case["input"], ResultPaths(folder / "r.jsonl")
    write_lines(paths.materialized_inputs, given["materialized"])
    write_lines(paths.rollouts, given["rollouts"], given.get("rollouts_file_tail", ""))
    if given["failures"] is not None:
        write_lines(paths.failures, given["failures"])
    return paths


@pytest.fixture
def no_limit_set(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    monkeypatch.delenv(ATTEMPTS_VARIABLE, raising=False)
    yield monkeypatch


@pytest.mark.parametrize("case", cases("resume", MENDED))
def test_resume(case: dict[str, Any], tmp_path: Path, no_limit_set: pytest.MonkeyPatch) -> None:
    given, expected = case["input"], case["expected"]
    if given["max_attempts"] is not None:
        no_limit_set.setenv(ATTEMPTS_VARIABLE, str(given["max_attempts"]))
    allowed, warning = attempts_allowed()
    assert (warning is not None) == (given["max_attempts"] == "zero")
    earlier = read_earlier_work(lay_out(case, tmp_path), allowed)
    assert [line.value for line in earlier.rows_left()] == expected["to_run"]
    assert [json.loads(line.raw) for line in earlier.rows_left()] == expected["to_run"]
    assert earlier.left == len(expected["to_run"])
    assert earlier.tally.scored == len({tuple(key) for key in expected["already_done"]})
    assert len(earlier.duplicates) == len(expected["already_done"]) - earlier.tally.scored


def test_a_foreign_record_is_named_with_both_files(tmp_path: Path) -> None:
    paths = lay_out(case_named("resume_unknown_output_key"), tmp_path)
    with pytest.raises(GymError) as caught:
        read_earlier_work(paths, 3)
    for token in ("(4, 0)", "line 1", "r.jsonl", "r_materialized_inputs.jsonl"):
        assert token in str(caught.value)


def test_the_rollout_of_a_cut_off_line_runs_again(tmp_path: Path) -> None:
    paths = lay_out(case_named("resume_truncated_last_line"), tmp_path)
    earlier = read_earlier_work(paths, 3)
    assert [(line.value[TASK], line.value[ROLLOUT]) for line in earlier.rows_left()] == [(1, 0)]
    assert heal(paths.rollouts)
    assert paths.rollouts.read_bytes().endswith(b"\n")
    assert len(read_lines(paths.rollouts)) == 1


def test_blank_lines_are_fine(tmp_path: Path) -> None:
    earlier = read_earlier_work(lay_out(case_named("resume_blank_line"), tmp_path), 3)
    assert (earlier.left, earlier.tally.scored) == (0, 1)
