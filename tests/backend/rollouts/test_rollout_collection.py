"""Collecting from another program, against agents on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import ValidationError

from backend.config.config_types import BaseServerConfig, ConfigError
from backend.config.global_config import set_global_config_dict
from backend.errors import GymError
from backend.io.redact import Redactor
from backend.rollouts import rollout_collection
from backend.rollouts.rollout_collection import (
    NG_FAILURE_CLASS_KEY,
    NG_NO_PERSIST_KEY,
    E2ERolloutCollectionConfig,
    RolloutAggregationConfig,
    RolloutAggregationHelper,
    RolloutCollectionConfig,
    RolloutCollectionHelper,
    loads_jsonl_line,
)
from backend.rollouts.run_folder import RunFolder
from backend.rollouts.trajectory import attach_trajectory_record
from backend.servers.model_call_capture import CaptureStore
from backend.servers.server_utils import ServerClient
from backend.servers.token_id_capture import TokenCaptureStore, TokenEntry
from tests.loopback import Endpoint, Reply, Request, endpoint

METRICS = {"agent_metrics": {"mean/reward": 0.5}, "key_metrics": {}, "perf_summary": None}


def answer(request: Request) -> Reply:
    """An agent that does what the row's `do` says."""
    if request.path.endswith("/aggregate_metrics"):
        return Reply(body={**METRICS, "count": len(request.body["verify_responses"])})
    wish = request.body.get("do")
    if wish == "fail":
        return Reply(500, {"detail": "boom"})
    if wish == "list":
        return Reply(body=[1])
    return Reply(body={"reward": 1.0, "response": {"usage": {"input_tokens": 3}, "output": []}, **(wish or {})})


@asynccontextmanager
async def agent(
    reply: Callable[[Request], Reply] = answer, **config: Any
) -> AsyncIterator[tuple[RolloutCollectionHelper, Endpoint]]:
    async with endpoint(reply) as server:
        place = {"host": "127.0.0.1", "port": int(server.base_url.split(":")[2].split("/")[0]), "entrypoint": "app.py"}
        tree = {
            "a": {"responses_api_agents": {"impl": {**place, "resources_server": {"type": "resources_servers", "name": "rs"}}}},
            "rs": {"resources_servers": {"r": {**place, "domain": "other"}}},
            **config,
        }
        set_global_config_dict(tree)

        class Helper(RolloutCollectionHelper):
            def setup_server_client(self, head_server_config: BaseServerConfig | None = None) -> ServerClient:
                return ServerClient(BaseServerConfig(host="127.0.0.1", port=1), tree)

        try:
            yield Helper(), server
        finally:
            set_global_config_dict(None)


def row(number: int, do: Any = None, **fields: Any) -> dict[str, Any]:
    return {"responses_create_params": {"input": f"question {number}"}, **({"do": do} if do else {}), **fields}


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(item) + "\n" for item in rows))
    return str(path)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def config(tmp_path: Path, rows: list[dict[str, Any]], **fields: Any) -> RolloutCollectionConfig:
    places = {"input_jsonl_fpath": write(tmp_path / "in.jsonl", rows), "output_jsonl_fpath": str(tmp_path / "out" / "r.jsonl")}
    return RolloutCollectionConfig(**(places | {"agent_name": "a"} | fields))


@pytest.mark.parametrize("how", ["cancelled", "failed"])
async def test_who_gives_up_sends_no_more_rows(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(request: Request) -> Reply:
        return replace(answer(request), delay=0.05)

    wanted = config(tmp_path, [row(number) for number in range(40)], num_samples_in_parallel=2)
    async with agent(slow) as (helper, server):
        collecting = asyncio.create_task(helper.run_from_config(wanted))
        while len(server.requests) < 4:
            await asyncio.sleep(0.01)
        if how == "cancelled":
            collecting.cancel()
        else:
            monkeypatch.setattr(rollout_collection, "destination_of", lambda _record: 1 / 0)
        with pytest.raises(asyncio.CancelledError if how == "cancelled" else ZeroDivisionError):
            await collecting
        await asyncio.sleep(0)
        sent = len(server.requests)
        await asyncio.sleep(0.3)
        assert len(server.requests) <= sent + 2, "no more than were on their way"
    assert lines(tmp_path / "out" / "r.jsonl")


async def test_a_file_becomes_the_documented_files(tmp_path: Path) -> None:
    rows = [row(0), row(1, "fail"), row(2, {NG_FAILURE_CLASS_KEY: "skipped"}), row(3, {NG_NO_PERSIST_KEY: True})]
    wanted = config(tmp_path, rows, num_repeats=2, num_samples_in_parallel=2)
    async with agent() as (helper, server):
        results = await helper.run_from_config(wanted)
    assert [(record["_ng_task_index"], record["_ng_rollout_index"]) for record in results] == [
        (task, rollout) for task in range(4) for rollout in range(2)
    ]
    out = tmp_path / "out"
    assert wanted.materialized_jsonl_fpath == out / "r_materialized_inputs.jsonl"
    assert [line["agent_ref"] for line in lines(wanted.materialized_jsonl_fpath)] == [{"name": "a"}] * 8
    assert [(line["_ng_task_index"], line["reward"]) for line in lines(out / "r.jsonl")] == [(0, 1.0)] * 2
    failed = lines(out / "r_failures.jsonl")
    assert sorted(line["_ng_failure_class"] for line in failed) == ["agent_run_error"] * 2 + ["skipped"] * 2
    error = next(line for line in failed if line["_ng_failure_class"] == "agent_run_error")
    assert (error["_ng_failure_http_status"], error["_ng_failure_response_body"]) == (500, '{"detail":"boom"}')
    (entry,) = json.loads((out / "r_aggregate_metrics.json").read_text())
    assert entry == {"agent_ref": {"name": "a"}, "agent_metrics": {"mean/reward": 0.5}, "key_metrics": {}, "count": 2}
    assert server.most_in_flight <= 2


async def test_failures_that_count_as_zero_are_in_the_metrics(tmp_path: Path) -> None:
    wanted = config(tmp_path, [row(0), row(1, "fail")], count_failure_classes_as_zero=["agent_run_error"])
    async with agent() as (helper, server):
        await helper.run_from_config(wanted)
    (posted,) = [request.body["verify_responses"] for request in server.requests if request.path == "/aggregate_metrics"]
    assert [record["reward"] for record in posted] == [1.0, 0.0]
    assert posted[0]["response"] == {"usage": {"input_tokens": 3}}


async def test_a_resumed_collection_runs_what_is_left(tmp_path: Path) -> None:
    wanted = config(tmp_path, [row(0), row(1, "fail")], disable_aggregation=True)
    async with agent() as (helper, _server):
        await helper.run_from_config(wanted)
        again = wanted.model_copy(update={"resume_from_cache": True})
        results = await helper.run_from_config(again)
    assert [record.get("reward") for record in results] == [1.0, None]
    assert [line.get("_ng_attempt_index") for line in lines(tmp_path / "out" / "r_failures.jsonl")] == [None, 1]
    assert len(lines(tmp_path / "out" / "r.jsonl")) == 1


async def test_a_new_collection_replaces_the_old_one(tmp_path: Path) -> None:
    async with agent() as (helper, _server):
        await helper.run_from_config(config(tmp_path, [row(0), row(1)]))
        await helper.run_from_config(config(tmp_path, [row(5)], disable_aggregation=True))
    assert len(lines(tmp_path / "out" / "r.jsonl")) == 1
    assert not (tmp_path / "out" / "r_aggregate_metrics.json").exists()


async def test_files_that_another_run_writes_stay_as_they_are(tmp_path: Path) -> None:
    wanted = config(tmp_path, [row(0)])
    async with agent() as (helper, server):
        await helper.run_from_config(wanted)
        before = wanted.paths.rollouts.read_bytes()
        with (
            RunFolder(wanted.paths, ("gym", "eval", "run"), Redactor(())),
            pytest.raises(GymError, match="another run is writing") as told,
        ):
            await helper.run_from_config(wanted)
    assert str(wanted.paths.rollouts) in str(told.value)
    assert wanted.paths.rollouts.read_bytes() == before
    assert [request.path for request in server.requests].count("/run") == 1
    assert not wanted.paths.run_folder.exists()


async def test_rows_in_memory_are_sent_as_they_are() -> None:
    first, second = row(0, agent_ref={"name": "a"}, extra=1), row(1, "fail", task_source="rs")
    async with agent() as (helper, server):
        found = [await coming for coming in helper.run_examples([first], semaphore=asyncio.Semaphore(1))]
        assert found == [(first, {"reward": 1.0, "response": {"usage": {"input_tokens": 3}, "output": []}})]
        assert server.requests[0].body == first
        with pytest.raises(aiohttp.ClientResponseError):
            for coming in helper.run_examples([second]):
                await coming
        ((sent, result),) = [await coming for coming in helper.run_examples([second], route_failures_to_sidecar=True)]
    assert sent["agent_ref"] == {"name": "a"}
    assert result["_ng_failure_class"] == "agent_run_error"
    assert "agent_ref" not in second


async def test_an_answer_that_is_no_object_is_a_failure() -> None:
    async with agent() as (helper, _server):
        ((_, result),) = [
            await coming
            for coming in helper.run_examples([row(0, "list", agent_ref={"name": "a"})], route_failures_to_sidecar=True)
        ]
    assert "list instead of an object" in result["_ng_failure_message"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"agent_ref": {"name": "nobody"}}, "nobody"),
        ({"task_source": "nowhere"}, "nowhere"),
        ({"agent_ref": {"name": "rs"}}, "rs"),
    ],
)
async def test_rows_for_nobody_are_named_before_anything_is_sent(fields: dict[str, Any], said: str) -> None:
    async with agent() as (helper, server):
        with pytest.raises(ValueError, match=said):
            list(helper.run_examples([row(0, agent_ref={"name": "a"}), row(1, **fields)]))
        assert server.requests == []


def test_rows_in_memory_are_expanded_like_those_of_a_file() -> None:
    rows = [row(0, agent_ref={"name": "x"}), row(1, task_source="rs"), row(0, agent_ref={"name": "x"})]
    made = RolloutCollectionHelper().preprocess_examples(rows, agent_map={"x": "y"}, num_repeats=2, num_repeats_add_seed=True)
    assert [(item["_ng_task_index"], item["_ng_rollout_index"]) for item in made] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
        (0, 2),
        (0, 3),
    ]
    assert [item.get("agent_ref") for item in made[:4]] == [{"name": "y"}, {"name": "y"}, None, None]
    assert json.loads(made[5]["responses_create_params"]["metadata"]["extra_body"]) == {"seed": 3}
    assert rows[0] == row(0, agent_ref={"name": "x"})
    reference = {"type": "resources_servers", "name": "rs"}
    tree = {
        "z": {"responses_api_agents": {"impl": {"entrypoint": "app.py", "resources_server": reference}}},
        "rs": {"resources_servers": {"r": {"entrypoint": "app.py", "domain": "other"}}},
    }
    made = RolloutCollectionHelper().preprocess_examples([rows[1]], global_config_dict=tree)
    assert made[0]["agent_ref"] == {"name": "z"}


async def test_observed_calls_get_into_the_records(tmp_path: Path) -> None:
    captures = tmp_path / "captures"
    call = {
        "model_call_id": "c",
        "dialect": "chat",
        "started_at": 1.0,
        "completed_at": 2.0,
        "latency_ms": 1000.0,
        "status_code": 200,
    }
    sizes = {"usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}, "id": "x", "choices": []}

    def observed(request: Request) -> Reply:
        CaptureStore(captures).record("0-0", {**call, "request": {"messages": []}, "response": sizes})
        report = {
            "source": "t",
            "records": [{"kind": "agent_invocation", "invocation_id": "root", "model_calls": [{"model_call_id": "c"}]}],
        }
        return Reply(body={"reward": 1.0, "ng_agent_observations": report})

    wanted = config(tmp_path, [row(0)], disable_aggregation=True)
    async with agent(observed, observability_enabled=True, model_call_capture_dir=str(captures)) as (helper, _server):
        await helper.run_from_config(wanted)
    (record,) = lines(tmp_path / "out" / "r.jsonl")
    assert record["ng_model_call_capture"]["metrics"]["tokens_in"] == 7
    assert record["ng_trajectory"]["model_calls"][0]["response"]["id"] == "x"
    assert "response" not in record["ng_model_call_capture"]["calls"][0]
    assert (record["ng_perf"]["num_turns"], record["ng_perf"]["prompt_tokens"]) == (1, 7)
    before = json.dumps(record["ng_trajectory"])
    attach_trajectory_record({"_ng_task_index": 0, "_ng_rollout_index": 0}, record)
    assert json.dumps(record["ng_trajectory"]) == before


async def test_recorded_tokens_come_into_the_records_and_masked_ones_end_the_run(tmp_path: Path) -> None:
    store = TokenCaptureStore(tmp_path / "tokens")

    def call(task: int, number: int) -> TokenEntry:
        item = {"type": "message", "role": "assistant", "content": f"{task} {number}"}
        tokens: dict[str, Any] = {"prompt_token_ids": [number], "generation_token_ids": [9], "generation_log_probs": [-1.0]}
        return TokenEntry(rollout_id=f"{task}-0", model_call_id=f"c{number}", output_items=[item], response_id="r", **tokens)

    def captured(request: Request) -> Reply:
        task = request.body["_ng_task_index"]
        for number in range(1 + task):
            store.append(call(task, number))
        return Reply(body={"reward": 1.0, "response": {"id": "r", "output": []}})

    block = {
        "enabled": True,
        "all_agents": True,
        "dir": str(store.root),
        "max_mask_fraction": 0.4,
        "mask_fraction_min_samples": 2,
    }
    wanted = config(tmp_path, [row(0), row(1)], disable_aggregation=True, num_samples_in_parallel=1)
    store.append(call(0, 7))
    async with agent(captured, token_id_capture=block) as (helper, _server):
        with pytest.raises(RuntimeError, match="1 of 2 rollouts are masked"):
            await helper.run_from_config(wanted)
    safe, masked = sorted(lines(tmp_path / "out" / "r.jsonl"), key=lambda record: record["_ng_task_index"])
    assert (safe["response"]["output"][0]["content"], safe["_ng_token_capture"]["n_calls"]) == ("0 0", 1)
    assert (masked["mask_sample"], masked["_ng_token_capture"]["chains"]) == (True, 2)
    assert [store.path_for(rollout_id).exists() for rollout_id in ("0-0", "1-0")] == [False, True]


def test_settings() -> None:
    old = RolloutCollectionConfig(input_jsonl_fpath="i", output_jsonl_fpath="o", upload_rollouts_to_wandb=False, servers={})  # type: ignore[call-arg]
    assert (old.upload_rollouts, old.num_repeats, old.limit) == (False, 1, None)
    with pytest.raises(ValidationError):
        RolloutCollectionConfig(input_jsonl_fpath="i", output_jsonl_fpath="o", num_repeats=0)
    with pytest.raises(ValidationError):
        E2ERolloutCollectionConfig(output_jsonl_fpath="o.jsonl", split="example")  # type: ignore[arg-type]


def test_a_line_that_is_not_json_is_named() -> None:
    assert loads_jsonl_line(b'{"a": 1}', "f.jsonl", 1) == {"a": 1}
    with pytest.raises(ConfigError) as caught:
        loads_jsonl_line("{", "f.jsonl", 7)
    assert str(caught.value).startswith("f.jsonl:7: not JSON")


async def test_shards_are_merged_and_scored_together(tmp_path: Path) -> None:
    def record(task: int, rollout: int, **fields: Any) -> dict[str, Any]:
        return {"_ng_task_index": task, "_ng_rollout_index": rollout, "agent_ref": {"name": "a"}, "reward": 1.0, **fields}

    write(tmp_path / "s1.jsonl", [record(1, 0), record(0, 1)])
    write(tmp_path / "s2.jsonl", [record(0, 0)])
    write(tmp_path / "s1_failures.jsonl", [record(2, 0, _ng_failure_class="timeout_exceeded", reward=None)])
    write(tmp_path / "s1_materialized_inputs.jsonl", [record(7, 0)])
    wanted = RolloutAggregationConfig(
        input_glob=f"{tmp_path}/s*.jsonl, {tmp_path}/s2.jsonl,",
        output_jsonl_fpath=str(tmp_path / "all" / "r.jsonl"),
        count_failure_classes_as_zero=["timeout_exceeded"],
    )
    async with agent() as (helper, server):

        class Aggregation(RolloutAggregationHelper):
            setup_server_client = type(helper).setup_server_client

        metrics = await Aggregation().run_from_config(wanted)
    assert metrics == tmp_path / "all" / "r_aggregate_metrics.json"
    keys = [(line["_ng_task_index"], line["_ng_rollout_index"]) for line in lines(tmp_path / "all" / "r.jsonl")]
    assert keys == [(0, 0), (0, 1), (1, 0)]
    (posted,) = [request.body["verify_responses"] for request in server.requests]
    assert [item["reward"] for item in posted] == [1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "no file matches"),
        ([{"reward": 1.0}], "this is no rollout"),
        (
            [{"_ng_task_index": 1, "_ng_rollout_index": 0}] * 2,
            r"1 rollout\(s\) are there more than once: 1:0 in .*s\.jsonl:1 and",
        ),
    ],
)
def test_shards_that_cannot_be_used_are_named(tmp_path: Path, rows: list[dict[str, Any]], said: str) -> None:
    if rows:
        write(tmp_path / "s.jsonl", rows)
    with pytest.raises(ConfigError, match=said):
        asyncio.run(
            RolloutAggregationHelper().run_from_config(
                RolloutAggregationConfig(input_glob=f"{tmp_path}/*.jsonl", output_jsonl_fpath=str(tmp_path / "out" / "r.jsonl"))
            )
        )
    assert not (tmp_path / "out" / "r.jsonl").exists()
