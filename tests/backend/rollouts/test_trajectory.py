from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backend.rollouts.collection import CollectionJob, Collector
from backend.rollouts.control import RunControl
from backend.rollouts.run_events import CollectionEnded
from backend.rollouts.trajectory import attach_perf, attach_trajectory_record
from backend.servers.http_client import close_http_session
from backend.servers.model_call_capture import CaptureStore
from backend.servers.rollout_observability import TrajectoryRecord
from tests.loopback import Reply, Request, endpoint

MODEL = {"type": "responses_api_models", "name": "policy_model"}
ROW = {"_ng_task_index": 4, "_ng_rollout_index": 1}


def captured(number: int, **fields: Any) -> dict[str, Any]:
    call = {"model_call_id": f"c{number}", "model_ref": MODEL, "response_id": f"r{number}", "started_at": float(number)}
    sizes = {"completed_at": number + 0.5, "latency_total_ms": 500.0, "tokens_in": 10 * number, "tokens_out": number}
    payloads = {"request": {"input": str(number)}, "response": {"id": f"r{number}", "status": "completed"}}
    return {**call, **sizes, **payloads, **fields}


def turn(number: int, **fields: Any) -> dict[str, Any]:
    identity = {"invocation_id": "root", "task_id": "4", "rollout_id": "4-1", "turn_no": number, "timestamp": float(number)}
    reference = {"model_ref": MODEL, "response_id": f"r{number}"}
    return {**identity, "answer": "a", "step_count": 0, "model_calls": [reference], **fields}


def producer(**fields: Any) -> dict[str, Any]:
    invocation = {
        "invocation_id": "root",
        "status": "completed",
        "conversation": [{"role": "user", "content": "q", "type": "message"}],
    }
    invocation["model_calls"] = [{"model_ref": MODEL, "response_id": "r1"}, {"model_ref": MODEL, "response_id": "r2"}]
    return {"task_id": "4", "rollout_id": "4-1", "invocations": [invocation], "turns": [turn(2), turn(1)], **fields}


def codes(record: dict[str, Any]) -> list[str]:
    return [gap["code"] for gap in record["ng_trajectory"]["gaps"]]


def test_the_agents_trajectory_and_the_captured_calls_become_one() -> None:
    record: dict[str, Any] = {"ng_trajectory": producer(), "ng_model_call_capture": {"calls": [captured(1), captured(2)]}}
    attach_trajectory_record(ROW, record)
    trajectory = TrajectoryRecord.model_validate(record["ng_trajectory"])
    assert (trajectory.task_id, trajectory.rollout_id) == ("4", "4-1")
    assert [turn.turn_no for turn in trajectory.turns] == [1, 2]
    assert [turn.model_calls[0].model_call_id for turn in trajectory.turns] == ["c1", "c2"]
    assert [reference.model_call_id for reference in trajectory.invocations[0].model_calls] == ["c1", "c2"]
    first = trajectory.model_calls[0]
    assert (first.duration_ms, first.request, first.response_metadata.response_status) == (500.0, {"input": "1"}, "completed")
    assert (first.token_stats.prompt_tokens, first.token_stats.completion_tokens) == (10, 1)
    assert codes(record) == []
    assert not {"request", "response"} & record["ng_model_call_capture"]["calls"][0].keys()

    attach_perf(record, 1500.0)
    assert record["ng_perf"] == {
        "num_turns": 2,
        "num_tool_calls": 0,
        "token_observability_coverage": 1.0,
        "prompt_tokens": 30,
        "completion_tokens": 3,
        "total_latency_ms": 1500.0,
    }


def test_built_again_it_stays_the_same() -> None:
    record: dict[str, Any] = {"ng_trajectory": producer(), "ng_model_call_capture": {"calls": [captured(1), captured(2)]}}
    attach_trajectory_record(ROW, record)
    once = record["ng_trajectory"]
    attach_trajectory_record(ROW, record)
    assert record["ng_trajectory"] == once


def test_what_the_agent_reports_stands_in_for_its_trajectory() -> None:
    observations = {
        "source": "test",
        "records": [
            {"kind": "agent_invocation", "invocation_id": "root", "model_calls": [{"model_call_id": "c1"}]},
            {"kind": "tool_call", "invocation_id": "root", "tool_call_id": "t1", "tool_name": "look", "status": "failed"},
            {"kind": "sandbox", "role": "agent"},
        ],
        "gaps": [{"code": "tool_timing_unavailable", "invocation_id": "root"}],
    }
    record: dict[str, Any] = {"ng_agent_observations": observations, "ng_model_call_capture": {"calls": [captured(1)]}}
    attach_trajectory_record(ROW, record)
    trajectory = record["ng_trajectory"]
    assert [tool["tool_name"] for tool in trajectory["tool_calls"]] == ["look"]
    assert codes(record) == ["tool_timing_unavailable", "turns_unavailable", "conversation_unavailable"]


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ({"ng_trajectory": {"task_id": 1}}, "producer_trajectory_invalid"),
        ({"ng_agent_observations": {"records": 3}}, "agent_observations_invalid"),
        ({"ng_model_call_capture": {"gaps": [{"no": "code"}]}}, "model_call_capture_gap_invalid"),
        ({"ng_model_call_capture": {"gaps": [{"code": "model_call_capture_incomplete"}]}}, "model_call_capture_incomplete"),
        ({"ng_model_call_capture": {"calls": ["no object"]}}, "trajectory_projection_failed"),
        ({"ng_model_call_capture": {}}, "model_calls_unavailable"),
    ],
)
def test_what_cannot_be_used_is_a_gap(evidence: dict[str, Any], expected: str) -> None:
    attach_trajectory_record(ROW, evidence)
    assert expected in codes(evidence)


def test_a_trajectory_of_another_rollout_is_relabelled() -> None:
    other = producer(task_id="9", rollout_id="9-0", turns=[turn(1, task_id="9", rollout_id="9-0")])
    record: dict[str, Any] = {"ng_trajectory": other}
    attach_trajectory_record({**ROW, "problem_id": 77}, record)
    trajectory = record["ng_trajectory"]
    assert (trajectory["task_id"], trajectory["rollout_id"]) == ("77", "4-1")
    assert (trajectory["turns"][0]["task_id"], trajectory["turns"][0]["rollout_id"]) == ("77", "4-1")
    assert "producer_trajectory_identity_mismatch" in codes(record)


def test_the_captured_call_knows_better() -> None:
    own = {"model_call_id": "c1", "request": "as the agent has it", "response_metadata": {"model": "m", "status_code": 500}}
    record: dict[str, Any] = {
        "ng_trajectory": producer(model_calls=[own]),
        "ng_model_call_capture": {"calls": [captured(1, status_code=200, request=None)]},
    }
    attach_trajectory_record(ROW, record)
    (call,) = record["ng_trajectory"]["model_calls"]
    assert call["request"] == "as the agent has it"
    assert (call["response_metadata"]["model"], call["response_metadata"]["status_code"]) == ("m", 200)


def test_without_evidence_nothing_is_added() -> None:
    record: dict[str, Any] = {"reward": 1.0}
    attach_trajectory_record(ROW, record)
    attach_perf(record, 3.0)
    assert record == {"reward": 1.0}


async def test_the_collector_adds_what_was_seen_of_a_rollout(tmp_path: Path) -> None:
    store = CaptureStore(tmp_path / "captures")

    def run(request: Request) -> Reply:
        task = request.body["_ng_task_index"]
        call = {"model_call_id": f"c{task}", "dialect": "responses", "started_at": 1.0, "latency_ms": 9.0, "status_code": 200}
        store.record(f"{task}-0", {**call, "request": {"input": "q"}, "response": {"id": "r", "usage": {"input_tokens": 3}}})
        hidden = [{"code": "multimodal_history_redacted"}] if task == 1 else []
        invocation = {"kind": "agent_invocation", "invocation_id": "root", "model_calls": [{"model_call_id": f"c{task}"}]}
        report = {"source": "t", "records": [invocation], "gaps": hidden}
        return Reply(500, "broken") if task == 2 else Reply(body={"reward": 1.0, "ng_agent_observations": report})

    rows = [
        {"responses_create_params": {}, "agent_ref": {"name": "a"}, "_ng_task_index": task, "_ng_rollout_index": 0}
        for task in range(3)
    ]
    rows[0]["_ng_attempt_index"] = 0
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    async with endpoint(run) as server:
        job = CollectionJob(
            materialized=tmp_path / "m.jsonl",
            rollouts=tmp_path / "r.jsonl",
            failures=tmp_path / "f.jsonl",
            agents={"a": server.base_url.removesuffix("/v1")},
            planned={"a": 3},
            concurrency=2,
            capture_dir=store.root,
        )
        events = [event async for event in Collector(job, RunControl()).events()]
    await close_http_session()
    assert isinstance(events[-1], CollectionEnded)
    seen, hidden = sorted(map(json.loads, job.rollouts.read_text().splitlines()), key=lambda record: record["_ng_task_index"])
    assert seen["ng_model_call_capture"]["metrics"]["tokens_in"] == 3
    assert seen["ng_trajectory"]["model_calls"][0]["request"] == {"input": "q"}
    assert hidden["ng_trajectory"]["model_calls"][0]["request"] is None
    assert seen["ng_perf"]["total_latency_ms"] > 0
    (failed,) = map(json.loads, job.failures.read_text().splitlines())
    assert not {"ng_model_call_capture", "ng_trajectory", "ng_perf"} & failed.keys()
