import json
import multiprocessing
import os

import pytest

from backend.servers.token_id_capture.records import TokenEntry
from backend.servers.token_id_capture.store import TokenCaptureStore, TokenSink, TokenSource


def entry(call_id="a", **fields):
    base = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [0.0], "output_items": []}
    return TokenEntry(**{"rollout_id": "0-0", "model_call_id": call_id, **base, **fields})


@pytest.fixture
def store(tmp_path):
    return TokenCaptureStore(tmp_path / "tokens")


def state(store):
    return json.loads(store.state_path_for("0-0").read_bytes())


def ids(entries):
    return [entry.model_call_id for entry in entries]


def test_it_is_sink_and_source(store):
    assert isinstance(store, TokenSink)
    assert isinstance(store, TokenSource)


def test_the_documented_files(store):
    store.append(entry())
    names = {path.name for path in store.root.iterdir()}
    assert names == {"0-0.tokens.jsonl", "0-0.tokens.state.json", "0-0.tokens.lock"}
    assert set(state(store)) == {
        "frozen", "retired", "incomplete", "snapshot_id", "version", "entry_digests", "indexed_size"
    }  # fmt: skip
    assert state(store)["indexed_size"] == store.path_for("0-0").stat().st_size


def test_the_same_record_again_changes_nothing_and_another_one_is_an_error(store):
    store.append(entry())
    store.append(entry())
    assert ids(store.read_entries("0-0")) == ["a"]
    with pytest.raises(ValueError, match="another record"):
        store.append(entry(generation_token_ids=[9]))
    assert store.is_incomplete("0-0")
    assert store.freeze_now("0-0").incomplete


def test_what_is_frozen_takes_no_more_and_gives_the_same_snapshot(store):
    store.append(entry())
    snapshot = store.freeze_now("0-0")
    assert (ids(snapshot.entries), snapshot.incomplete, len(snapshot.snapshot_id)) == (["a"], False, 32)
    store.append(entry())
    with pytest.raises(RuntimeError, match="already frozen"):
        store.append(entry("b"))
    assert store.freeze_now("0-0") == snapshot


async def test_dropping_needs_the_snapshot(store):
    await store.put(entry())
    assert not await store.drop("0-0", snapshot_id="x", version=1)
    snapshot = await store.freeze("0-0")
    assert not await store.drop("0-0", snapshot_id=snapshot.snapshot_id, version=0)
    assert await store.drop("0-0", snapshot_id=snapshot.snapshot_id, version=snapshot.version)
    assert not store.path_for("0-0").exists()
    with pytest.raises(RuntimeError, match="already frozen"):
        await store.put(entry("late"))
    assert store.sweep_retired(3600) == 0
    assert store.sweep_retired(-1) == 1
    await store.close()


async def test_a_call_without_a_record_makes_the_rollout_incomplete(store):
    for call_id in ("answered", "failed", "killed"):
        await store.begin_call("0-0", call_id)
    await store.put(entry("answered"))
    await store.give_up_call("0-0", "failed")
    assert store.intents_path_for("0-0").read_text().split() == ["answered", "failed", "killed", "-failed"]
    assert (await store.freeze("0-0")).incomplete
    store.delete("0-0")
    await store.begin_call("0-0", "answered")
    await store.put(entry("answered"))
    assert not (await store.freeze("0-0")).incomplete


async def test_a_lost_record_is_marked(store):
    await store.mark_incomplete("0-0", "a")
    assert store.incomplete_path_for("0-0").exists()
    assert (await store.freeze("0-0")).incomplete


def test_a_writer_killed_before_it_wrote_the_state(store):
    store.append(entry("a"))
    before = store.state_path_for("0-0").read_bytes()
    store.append(entry("b"))
    store.state_path_for("0-0").write_bytes(before)
    assert ids(store.read_entries("0-0")) == ["a", "b"]
    assert set(state(store)["entry_digests"]) == {"a", "b"}
    store.append(entry("b"))
    assert not store.is_incomplete("0-0")


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_writer_killed_amid_a_record(store, cut):
    store.append(entry("a"))
    whole = store.path_for("0-0").read_bytes()
    with open(store.path_for("0-0"), "ab") as file:
        file.write(entry("b").model_dump_json().encode()[:cut])
    store.append(entry("c"))
    assert ids(store.read_entries("0-0")) == ["a", "c"]
    assert store.path_for("0-0").read_bytes().startswith(whole)
    assert store.freeze_now("0-0").incomplete


def test_nothing_recorded_is_an_empty_snapshot(store):
    snapshot = store.freeze_now("0-0")
    assert (snapshot.entries, snapshot.incomplete) == ((), False)


def _write(root, start):
    store = TokenCaptureStore(root)
    for number in range(start, start + 20):
        store.append(entry(f"call-{number}"))
    os._exit(0)


def test_several_processes_write_one_rollout(store):
    workers = [multiprocessing.get_context("fork").Process(target=_write, args=(store.root, start)) for start in (0, 20, 40)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert sorted(ids(store.read_entries("0-0"))) == sorted(f"call-{number}" for number in range(60))
    assert state(store)["version"] == 60
