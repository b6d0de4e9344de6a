"""Token capture from the model call to the rollout's record, with real servers."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from backend.errors import GymError
from backend.io.jsonl import JsonlWriter
from backend.rollouts.failures import FAILURE_CLASS
from backend.rollouts.run_start import EarlierCaptures, token_delivery
from backend.rollouts.tally import Tally
from backend.rollouts.token_delivery import TokenDelivery, TooManyMasked, make_token_delivery
from backend.servers.token_id_capture import TokenCaptureStore, TokenEntry, assert_prefix_contiguity
from backend.servers.token_id_capture.delivery import TokenHandoff
from tests.conftest import ROOT, Gym, wait_until_gone
from tests.run_trees import read_rows
from tests.token_trees import make_token_tree

RUN = ("eval", "run", "--config", "tokens.yaml", "--output", "out/r.jsonl", "--split", "validation")
DOUBTFUL = {"conversations": [["a"], ["b"]], "says": "what no call said"}
"""Two conversations, and an answer that is of neither."""


def tokens(role: str, text: str) -> list[int]:
    return [len(role), *text.encode()]


def records_of(gym: Gym) -> dict[int, dict[str, Any]]:
    return {record["_ng_task_index"]: record for record in read_rows(gym.cwd / "out" / "r.jsonl")}


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}


def test_records_get_their_tokens_and_captures_go(gym: Gym) -> None:
    rows: list[dict[str, Any]] = [
        {},
        {"way": "stream"},
        {"way": "chat"},
        {"keeps_tokens": True, "conversations": [["a"]]},
        DOUBTFUL,
        {"conversations": [["a", "untold"]]},
        {"conversations": []},
        {"fails": True},
        {"adds": {"_ng_failure_class": "transient"}},
        {"adds": {"_ng_no_persist": True}},
        {"conversations": [["other"], ["a", "b"]], "adds": {"mask_sample": True}},
    ]
    folder = make_token_tree(gym.cwd, rows)
    result = gym.run(*RUN)
    assert result.returncode == 0, result.stderr
    records = records_of(gym)
    question, answer = tokens("user", "a"), tokens("assistant", "re:a")
    for task in (0, 1, 2, 10):
        first, second = records[task]["response"]["output"]
        assert (first["prompt_token_ids"], first["generation_token_ids"]) == (question, answer)
        assert second["prompt_token_ids"] == [*question, *answer, *tokens("user", "b")]
        assert_prefix_contiguity(records[task]["response"])
    assert [records[task].get("mask_sample") for task in (0, 1, 2, 3, 4, 5, 10)] == [None, None, None, None, True, True, True]
    assert "_ng_token_capture" not in records[3]
    assert records[3]["response"]["output"][0]["prompt_token_ids"] == question
    attributions = {task: records[task]["_ng_token_capture"]["terminal_attribution"] for task in (0, 1, 2, 4, 10)}
    assert {task: found["method"] for task, found in attributions.items()} == {
        0: "response_id", 1: "response_id", 2: "content", 4: "none", 10: "response_id",
    }  # fmt: skip
    assert records[10]["_ng_token_capture"]["delivered_fraction"] == pytest.approx(10 / 19)
    failures = {row["_ng_task_index"]: row for row in read_rows(gym.cwd / "out" / "r_failures.jsonl")}
    assert set(failures) == {6, 7, 8}
    assert all("_ng_token_capture" not in row for row in failures.values())
    kept = {name.partition(".")[0] for name in left_in(folder) if name.endswith(".tokens.jsonl")}
    assert kept == {"4-0", "5-0", "7-0", "8-0", "9-0"}
    assert json.loads((folder / "0-0.tokens.state.json").read_text())["retired"] is True
    (entry,) = json.loads((gym.cwd / "out" / "r_aggregate_metrics.json").read_text())
    assert not [key for key in entry["agent_metrics"] if "mask" in key or "_ng_" in key]
    assert 'mask_sample"' not in result.stdout
    assert "3 of 7 rollouts are masked for training (mask_sample)" in result.stdout + result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_the_records_of_an_earlier_run_are_not_mistaken_for_later_calls(gym: Gym, free_port: int, workers: int) -> None:
    """The model server goes on running, and the ids are the same."""
    folder = make_token_tree(gym.cwd, [], workers)
    rows = [{"responses_create_params": {"input": "q"}, "conversations": [["a", "b", "c"]]} for _ in range(4)]
    (gym.cwd / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, {**rows[0], **DOUBTFUL}]))
    head = f"++head_server.port={free_port}"
    gym.start("env", "start", "--config", "tokens.yaml", head)
    gym.wait_for("servers ready!")
    words = ("--no-serve", "--agent", "agent", "--input", "tasks.jsonl", "--output", "out/r.jsonl", "--num-repeats", "2", head)
    for _ in range(2):
        result = gym.run("eval", "run", *words)
        assert result.returncode == 0, result.stderr
        records = read_rows(gym.cwd / "out" / "r.jsonl")
        assert [record["_ng_token_capture"]["n_calls"] for record in records if not record.get("mask_sample")] == [3] * 8
        masked = [record["_ng_token_capture"] for record in records if record.get("mask_sample")]
        assert [(capture["n_calls"], capture["parent_link_failures"]) for capture in masked] == [(2, {})] * 2
    assert len([name for name in left_in(folder) if name.endswith(".tokens.jsonl")]) == 2


@pytest.mark.slow
def test_too_many_masked_rollouts_end_the_run_and_lose_nothing(gym: Gym) -> None:
    make_token_tree(gym.cwd, [{}, *[DOUBTFUL] * 7])
    limits = ("++token_id_capture.max_mask_fraction=0.5", "++token_id_capture.mask_fraction_min_samples=4")
    result = gym.run(*RUN, "--concurrency", "1", *limits)
    assert result.returncode == 1
    assert "3 of 4 rollouts are masked: more than token_id_capture.max_mask_fraction (0.5)" in result.stderr
    assert "4 finished rollouts are safe in out/r.jsonl" in result.stderr
    assert "--resume" in result.stderr
    assert "Traceback" not in result.stderr
    assert json.loads((gym.cwd / "out" / "r_run" / "run.json").read_text())["state"] == "failed"
    before = (gym.cwd / "out" / "r.jsonl").read_bytes()
    assert len(before.splitlines()) == 4
    result = gym.run(*RUN, "--resume", "--concurrency", "1")
    assert result.returncode == 0, result.stderr
    assert (gym.cwd / "out" / "r.jsonl").read_bytes().startswith(before)
    assert set(records_of(gym)) == set(range(8))
    assert wait_until_gone(str(gym.cwd)) == []


@pytest.mark.slow
def test_a_killed_run_goes_on_with_captures_of_its_own(gym: Gym) -> None:
    slow = {"conversations": [["a", "slow"]]}
    folder = make_token_tree(gym.cwd, [{}, {}, slow, slow])
    gym.start(*RUN)
    rollouts = gym.cwd / "out" / "r.jsonl"
    deadline = time.monotonic() + 30
    cut_off = [folder / f"{task}-0.tokens.jsonl" for task in (2, 3)]
    while time.monotonic() < deadline and not (
        all(path.exists() for path in cut_off) and rollouts.exists() and len(rollouts.read_bytes().splitlines()) == 2
    ):
        time.sleep(0.02)
    os.killpg(gym.started[0].pid, signal.SIGKILL)
    assert wait_until_gone(str(gym.cwd)) == []
    before = [json.loads(path.read_bytes().splitlines()[0])["model_call_id"] for path in cut_off]
    (gym.cwd / "responses_api_models" / "tokens" / "hurry").touch()
    result = gym.run(*RUN, "--resume")
    assert result.returncode == 0, result.stderr
    records = records_of(gym)
    assert set(records) == {0, 1, 2, 3}
    for task in (2, 3):
        health = records[task]["_ng_token_capture"]
        assert (health["n_calls"], health["chains"], records[task].get("mask_sample")) == (2, 1, None)
        assert health["terminal_attribution"]["call_id"] not in before
    assert not [name for name in left_in(folder) if name.endswith(".tokens.jsonl") and name.startswith(("2-", "3-"))]


@pytest.mark.slow
def test_killed_at_any_moment_no_record_is_lost_and_none_has_calls_of_two_attempts(gym: Gym) -> None:
    folder = make_token_tree(gym.cwd, [{} for _ in range(300)])
    rollouts = gym.cwd / "out" / "r.jsonl"
    known = b""
    for number, wanted in enumerate((1, 60, 61, 150, 220)):
        gym.start(*RUN, "--concurrency", "8", *(["--resume"] if number else []))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (not rollouts.exists() or rollouts.read_bytes().count(b"\n") < wanted):
            time.sleep(0.001)
        os.killpg(gym.started[-1].pid, signal.SIGKILL)
        gym.started[-1].wait()
        assert wait_until_gone(str(gym.cwd)) == []
        now = rollouts.read_bytes()
        assert now.startswith(known)
        known = now[: now.rfind(b"\n") + 1]
    result = gym.run(*RUN, "--resume")
    assert result.returncode == 0, result.stderr
    assert rollouts.read_bytes().startswith(known)
    records = records_of(gym)
    assert set(records) == set(range(300))
    assert len(read_rows(rollouts)) == 300
    for record in records.values():
        assert (record["_ng_token_capture"]["n_calls"], record.get("mask_sample")) == (2, None)
        assert_prefix_contiguity(record["response"])
    kept = {name.partition("-")[0] for name in left_in(folder) if name.endswith(".tokens.jsonl")}
    assert len(kept) <= 5 * 8, "only what was written at the moment of a kill"


@pytest.mark.slow
def test_a_failed_rollout_is_attempted_again_under_an_id_of_its_own(gym: Gym) -> None:
    folder = make_token_tree(gym.cwd, [{"fails": True}, {}])
    assert gym.run(*RUN).returncode == 0
    source = (gym.cwd / "responses_api_agents" / "forgetful" / "app.py").read_text()
    (gym.cwd / "responses_api_agents" / "forgetful" / "app.py").write_text(source.replace('if row.get("fails")', "if False"))
    result = gym.run(*RUN, "--resume")
    assert result.returncode == 0, result.stderr
    record = records_of(gym)[0]
    assert (record["_ng_attempt_index"], record["_ng_token_capture"]["n_calls"], record.get("mask_sample")) == (1, 2, None)
    assert (folder / "0-0.tokens.jsonl").exists()
    assert not (folder / "0-0-a1.tokens.jsonl").exists()


OWN_SINK = """
from nemo_gym.token_id_capture import FileLineageStore, TokenCaptureStore


class Plain:
    def __init__(self, place):
        self.store = TokenCaptureStore(place)

    async def put(self, entry):
        await self.store.put(entry)

    async def mark_incomplete(self, rollout_id, model_call_id=""):
        await self.store.mark_incomplete(rollout_id, model_call_id)

    async def close(self):
        pass


class Whole(Plain):
    async def freeze(self, rollout_id):
        return await self.store.freeze(rollout_id)

    async def drop(self, rollout_id, *, snapshot_id, version):
        return await self.store.drop(rollout_id, snapshot_id=snapshot_id, version=version)
"""


@pytest.mark.parametrize("sink", ["Whole", "Plain"])
def test_a_sink_of_ones_own(gym: Gym, sink: str) -> None:
    make_token_tree(gym.cwd, [{}])
    (gym.cwd / "own_sink.py").write_text(OWN_SINK)
    place = gym.cwd / "elsewhere"
    words = (
        f"++token_id_capture.sink=own_sink:{sink}", f"++token_id_capture.sink_kwargs.place='{place}'",
        "++token_id_capture.lineage_store=own_sink:FileLineageStore", f"++token_id_capture.lineage_store_kwargs.root='{place}'",
    )  # fmt: skip
    result = gym.run(*RUN, *words)
    assert result.returncode == 0, result.stderr
    record = records_of(gym)[0]
    if sink == "Whole":
        assert (len(record["response"]["output"]), record["_ng_token_capture"]["chains"]) == (2, 1)
    else:
        assert (len(record["response"]["output"]), "_ng_token_capture" in record, "mask_sample" in record) == (1, False, False)
    assert (place / "0-0.tokens.jsonl").exists() is (sink == "Plain")


def test_responses_that_others_rebuild_stay_as_they_are(gym: Gym) -> None:
    folder = make_token_tree(gym.cwd, [{}])
    result = gym.run(*RUN, "++token_id_capture.rebuild_response=false")
    assert result.returncode == 0, result.stderr
    assert "_ng_token_capture" not in records_of(gym)[0]
    assert json.loads((folder / "0-0.tokens.state.json").read_text())["frozen"] is False


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["++token_id_capture.dir=relative"], "an absolute path"),
        (["++token_id_capture.sink=no.such:Sink"], "needs a lineage_store"),
        (
            ["++token_id_capture.sink=no.such:Sink", "++token_id_capture.lineage_store=a:B"],
            "sink 'no.such:Sink' cannot be loaded",
        ),
        (["++token_id_capture.max_mask_fraction=2"], "max_mask_fraction: Input should be less than or equal to 1"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_before_anything_is_touched(gym: Gym, words: list[str], expected: str) -> None:
    make_token_tree(gym.cwd, [{}])
    (gym.cwd / "out").mkdir()
    (gym.cwd / "out" / "r.jsonl").write_text('{"an": "earlier result"}\n')
    result = gym.run(*RUN, *words)
    assert result.returncode == 1
    assert expected in result.stderr
    assert "Traceback" not in result.stderr
    assert (gym.cwd / "out" / "r.jsonl").read_text() == '{"an": "earlier result"}\n'


def config(folder: Path, **block: Any) -> dict[str, Any]:
    return {
        "token_id_capture": {"enabled": True, "dir": str(folder), **block},
        "one": {"responses_api_agents": {"x": {"token_id_capture": True}}},
        "two": {"responses_api_agents": {"x": {}}},
        "model": {"responses_api_models": {"x": {"token_id_capture": True}}},
    }


def entry(rollout_id: str) -> TokenEntry:
    return TokenEntry(
        rollout_id=rollout_id,
        model_call_id="c",
        prompt_token_ids=[1],
        generation_token_ids=[2],
        generation_log_probs=[-0.5],
        output_items=[{"type": "message", "role": "assistant", "content": "x"}],
        response_id="r",
    )


def test_which_agents_are_captured(tmp_path: Path) -> None:
    made = make_token_delivery(config(tmp_path))
    assert made is not None and made.agents == {"one"}
    made = make_token_delivery(config(tmp_path, all_agents=True))
    assert made is not None and made.agents == {"one", "two"}
    assert token_delivery({"token_id_capture": {"enabled": False}}) is None
    assert token_delivery({}) is None


async def test_other_agents_and_failed_attempts_are_left_alone(tmp_path: Path) -> None:
    store = TokenCaptureStore(tmp_path)
    store.append(entry("0-0"))
    delivery = TokenDelivery(store, frozenset({"one"}))
    row = {"_ng_task_index": 0, "_ng_rollout_index": 0}
    untouched: list[tuple[str, dict[str, Any]]] = [
        ("two", {"response": {}}), ("one", {FAILURE_CLASS: "x"}), ("one", {"_ng_no_persist": True}),
    ]  # fmt: skip
    for agent, record in untouched:
        before = dict(record)
        assert await delivery.deliver(row, record, agent) is None
        assert record == before
    store.append(entry("0-0"))  # still not frozen: the same record again is fine
    unusable: dict[str, Any] = {"response": {}}
    handoff = await delivery.deliver({"_ng_rollout_id": "no/id"}, unusable, "one")
    assert handoff is not None and handoff.masked


async def test_a_capture_goes_only_after_the_record_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = TokenCaptureStore(tmp_path / "tokens")
    store.append(entry("0-0"))
    delivery = TokenDelivery(store, frozenset({"one"}))
    record: dict[str, Any] = {"response": {"id": "r", "output": []}}
    with JsonlWriter(tmp_path / "r.jsonl") as file:
        there_at_sync = []
        sync = file.sync

        def watched() -> None:
            there_at_sync.append((store.path_for("0-0").exists(), file.path.read_bytes().count(b"\n")))
            sync()

        monkeypatch.setattr(file, "sync", watched)
        handoff = await delivery.deliver({"_ng_task_index": 0, "_ng_rollout_index": 0}, record, "one")
        assert handoff is not None
        file.write(record)
        await delivery.written(handoff, file)
        assert (there_at_sync, store.path_for("0-0").exists()) == ([(True, 1)], False)
        await delivery.written(TokenHandoff("1-0", masked=True), file)
        assert len(there_at_sync) == 1, "nothing is retired, so nothing is waited for"


async def test_a_file_that_cannot_be_synced_keeps_the_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = TokenCaptureStore(tmp_path / "tokens")
    store.append(entry("0-0"))
    delivery = TokenDelivery(store, frozenset({"one"}))
    handoff = await delivery.deliver({"_ng_rollout_id": "0-0"}, {"response": {"id": "r"}}, "one")
    assert handoff is not None

    def full(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", full)
    with JsonlWriter(tmp_path / "r.jsonl") as file, pytest.raises(GymError, match="Input/output error"):
        await delivery.written(handoff, file)
    assert store.path_for("0-0").exists()


@pytest.mark.parametrize(
    ("limit", "least", "masked", "ends_at"),
    [(0.5, 4, "xxxxxx", 4), (0.5, 0, "-xx", 3), (0.5, 2, "-x-x-x", None), (0.0, 1, "--x", 3), (None, 0, "xxxx", None), (1.0, 0, "xxx", None)],
)  # fmt: skip
async def test_the_limit_of_masked_rollouts(
    tmp_path: Path, limit: float | None, least: int, masked: str, ends_at: int | None
) -> None:
    delivery = TokenDelivery(TokenCaptureStore(tmp_path), frozenset(), limit, least)
    ended = None
    with JsonlWriter(tmp_path / "r.jsonl") as file:
        for number, mark in enumerate(masked, 1):
            try:
                await delivery.written(TokenHandoff("0-0", masked=mark == "x"), file)
            except TooManyMasked as error:
                assert isinstance(error, RuntimeError)
                ended = number
                break
    assert ended == ends_at


def test_what_earlier_runs_left_is_forgotten_for_the_rows_to_run(tmp_path: Path) -> None:
    store = TokenCaptureStore(tmp_path)
    for rollout_id in ("0-0", "0-0-a1", "1-0", "named.id"):
        store.append(entry(rollout_id))
    captures = EarlierCaptures(config(tmp_path))
    assert captures.are_kept
    captures.forget({"_ng_task_index": 0, "_ng_rollout_index": 0, "_ng_attempt_index": 1})
    captures.forget({"_ng_rollout_id": "named.id"})
    captures.forget({"_ng_task_index": 5, "_ng_rollout_index": 0})
    assert {name.partition(".tokens.")[0] for name in left_in(tmp_path)} == {"0-0", "1-0"}
    assert not (tmp_path / "5-0.tokens.lock").exists()
    assert not EarlierCaptures(config(tmp_path / "nowhere")).are_kept
    assert not EarlierCaptures({}).are_kept


def test_masks_are_no_score() -> None:
    tally = Tally({"a": 1})
    tally.add_answer("a", {"reward": 1.0, "mask_sample": True, "_ng_x": 3})
    assert tally.agents["a"].averages() == {"reward": 1.0}


def test_runs_without_token_capture_load_nothing_of_it() -> None:
    code = "import sys, backend.rollouts.evaluate\nprint([name for name in sys.modules if 'token' in name and name.startswith('backend')])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert result.stdout.strip() == "[]"
