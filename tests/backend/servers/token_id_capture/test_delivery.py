import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.servers.token_id_capture.chains import assert_prefix_contiguity
from backend.servers.token_id_capture.delivery import (
    TokenHandoff,
    finalize_rollout_token_capture,
    retire_rollout_token_capture,
    rollout_carries_token_ids,
)
from backend.servers.token_id_capture.records import ParentResolutionStatus, TokenEntry, stamp_lineage
from backend.servers.token_id_capture.store import TokenCaptureSnapshot, TokenCaptureStore
from tests.token_trees import tree_of_calls

TOKENS = {"prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.5]}


def call(call_id, prompt, generation, parent=None, rollout_id="0-0", **fields):
    made = TokenEntry(
        rollout_id=rollout_id,
        model_call_id=call_id,
        prompt_token_ids=prompt,
        generation_token_ids=generation,
        generation_log_probs=[-0.5] * len(generation),
        output_items=[message(f"says {call_id}")],
        token_item_index=0,
        response_id=f"resp-{call_id}",
        created_at=ord(call_id[0]),
    )
    return stamp_lineage(made, parent).model_copy(update=fields)


def message(text, **fields):
    return {"type": "message", "role": "assistant", "content": text, **fields}


def record(*items, **fields):
    response = {"id": "resp-b", "output": list(items) or [message("says b")], "usage": {"output_tokens": 9}}
    return {"reward": 1.0, "response": response, **fields}


A, B = call("a", [1, 2], [3]), call("b", [1, 2, 3, 4], [5, 6], "a")
OTHER = call("d", [50], [51])
AMID = call("b", [9, 9], [5, 6], parent_resolution=ParentResolutionStatus.UNRESOLVED)


@pytest.fixture
def store(tmp_path):
    return TokenCaptureStore(tmp_path)


def filled(store, *entries):
    for entry in entries:
        store.append(entry)
    return store


async def test_a_safe_rollout_gets_its_chain_and_its_capture_may_go(store):
    filled(store, A, B)
    result = record(_ng_token_capture="old")
    handoff = await finalize_rollout_token_capture(result, store, "0-0")
    output = result["response"]["output"]
    assert [(item["content"], item["prompt_token_ids"], item["generation_token_ids"]) for item in output] == [
        ("says a", [1, 2], [3]),
        ("says b", [1, 2, 3, 4], [5, 6]),
    ]
    assert_prefix_contiguity(result["response"])
    assert (result["response"]["id"], result["response"]["usage"]) == ("resp-b", {"output_tokens": 9})
    assert result["_ng_token_capture"]["terminal_attribution"]["method"] == "response_id"
    assert (result["_ng_token_capture"]["n_calls"], result["_ng_token_capture"]["delivered_fraction"]) == (2, 1.0)
    assert "mask_sample" not in result
    assert (handoff.masked, handoff.can_retire) == (False, True)
    assert store.path_for("0-0").exists(), "finalizing removes nothing"
    with pytest.raises(RuntimeError, match="frozen"):
        store.append(OTHER)
    assert await retire_rollout_token_capture(handoff, store) is True
    assert not store.path_for("0-0").exists()


@pytest.mark.parametrize(
    ("entries", "fields"),
    [
        ((A, B, OTHER), {"response": {"id": "?", "output": [message("something else")]}}),
        ((A, B), {"incomplete": True}),
        ((AMID,), {}),
    ],
    ids=["no terminal call among several chains", "a lost record", "begins amid a conversation"],
)
async def test_an_unsafe_rollout_is_masked_and_its_capture_stays(store, entries, fields):
    filled(store, *entries)
    if fields.pop("incomplete", False):
        await store.mark_incomplete("0-0")
    result = {**record(), **fields}
    handoff = await finalize_rollout_token_capture(result, store, "0-0")
    assert (result["mask_sample"], handoff) == (True, TokenHandoff("0-0", masked=True))
    assert result["_ng_token_capture"]["n_calls"] == len(entries)
    assert rollout_carries_token_ids(result)
    assert await retire_rollout_token_capture(handoff, store) is False
    assert len(store.read_entries("0-0")) == len(entries)


async def test_the_call_that_the_agent_names_decides(store):
    filled(store, A, B, OTHER)
    result = record(response={"output": []}, _ng_terminal_model_call_id="d")
    handoff = await finalize_rollout_token_capture(result, store, "0-0")
    assert [item["content"] for item in result["response"]["output"]] == ["says d"]
    assert (handoff.masked, result["_ng_token_capture"]["terminal_attribution"]["method"]) == (False, "explicit")
    contradicted = record(_ng_terminal_model_call_id="d")
    handoff = await finalize_rollout_token_capture(contradicted, store, "0-0")
    assert (handoff.masked, contradicted["_ng_token_capture"]["terminal_attribution"]["reason"]) == (True, "contradiction")


async def test_a_terminal_call_that_generated_nothing_ends_the_chain_before_it(store):
    filled(store, OTHER, A, call("e", [1, 2, 3, 4], [], "a"))
    result = record(_ng_terminal_model_call_id="e")
    handoff = await finalize_rollout_token_capture(result, store, "0-0")
    assert ([item["content"] for item in result["response"]["output"]], handoff.masked) == (["says a"], False)


async def test_a_terminal_call_that_nothing_leads_to_masks(store):
    filled(store, A, call("e", [7], []))
    result = record(_ng_terminal_model_call_id="e")
    assert (await finalize_rollout_token_capture(result, store, "0-0")).masked is True


async def test_an_agents_own_mask_stays(store):
    filled(store, A, B)
    result = record(mask_sample=True)
    handoff = await finalize_rollout_token_capture(result, store, "0-0")
    assert (result["mask_sample"], handoff.masked, handoff.can_retire) == (True, True, True)
    assert len(result["response"]["output"]) == 2


async def test_a_record_without_a_response_gets_one(store):
    filled(store, A)
    result = {"reward": 0.0}
    await finalize_rollout_token_capture(result, store, "0-0")
    assert (result["response"]["id"], len(result["response"]["output"])) == ("proj-0-0", 1)


async def test_a_record_with_tokens_of_its_own_stays_as_it_is(store):
    filled(store, A, B)
    own = record(message("x", **TOKENS), message("y", **{**TOKENS, "generation_token_ids": [5, 6]}))
    before = {**own, "response": {**own["response"], "output": list(own["response"]["output"])}}
    handoff = await finalize_rollout_token_capture(own, store, "0-0")
    assert (own, handoff.masked, handoff.can_retire) == (before, False, True)


@pytest.mark.parametrize("lost", [False, True])
async def test_a_capture_that_tells_more_than_the_records_own_tokens_stays(store, lost):
    filled(store, A, *([] if lost else [B]))
    if lost:
        await store.mark_incomplete("0-0")
    handoff = await finalize_rollout_token_capture(record(message("x", **TOKENS)), store, "0-0")
    assert (handoff.masked, handoff.can_retire) == (False, False)


class Broken:
    def __init__(self, store=None):
        self.store = store

    async def freeze(self, rollout_id):
        if self.store is None:
            raise ConnectionError("the data plane is away")
        return await self.store.freeze(rollout_id)

    async def drop(self, rollout_id, *, snapshot_id, version):
        raise ConnectionError("the data plane is away")

    async def close(self):
        pass


async def test_what_cannot_be_had_masks_the_rollout_and_never_fails_it(store):
    for source, rollout_id, expected in [
        (store, None, {"error": "no_rollout_id"}),
        (store, "7-7", {"error": "no_records"}),
        (Broken(), "0-0", {"error": "unreadable", "detail": "ConnectionError('the data plane is away')"}),
    ]:
        result = record()
        handoff = await finalize_rollout_token_capture(result, source, rollout_id)
        assert (result["_ng_token_capture"], result["mask_sample"], handoff.masked, handoff.can_retire) == (
            expected, True, True, False,
        )  # fmt: skip
        assert result["response"] == record()["response"]


async def test_a_damaged_file_of_records_masks(store):
    filled(store, A)
    store.path_for("0-0").write_bytes(b'{"schema_version": 99}\n')
    result = record()
    await finalize_rollout_token_capture(result, store, "0-0")
    assert (result["_ng_token_capture"]["error"], result["mask_sample"]) == ("unreadable", True)


async def test_a_capture_that_cannot_be_removed_does_no_harm(store):
    filled(store, A, B)
    handoff = await finalize_rollout_token_capture(record(), store, "0-0")
    assert await retire_rollout_token_capture(handoff, Broken(store)) is False
    outdated = TokenHandoff("0-0", False, handoff.snapshot_id, handoff.version + 1)
    assert await retire_rollout_token_capture(outdated, store) is False
    assert len(store.read_entries("0-0")) == 2


async def test_several_rollouts_at_once(store):
    ids = [f"{task}-0" for task in range(8)]
    for number, rollout_id in enumerate(ids):
        filled(store, call("a", [1, number], [3], rollout_id=rollout_id))
    results = [record() for _ in ids]
    handoffs = await asyncio.gather(
        *(finalize_rollout_token_capture(result, store, rollout_id) for result, rollout_id in zip(results, ids, strict=True))
    )
    assert [result["response"]["output"][0]["prompt_token_ids"] for result in results] == [[1, number] for number in range(8)]
    assert all(await asyncio.gather(*(retire_rollout_token_capture(handoff, store) for handoff in handoffs)))


@pytest.mark.parametrize("response", [None, 3, {}, {"output": None}, {"output": "text"}, {"output": [None, "x", {}]}])
def test_odd_responses_carry_no_tokens(response):
    assert rollout_carries_token_ids({"response": response}) is False


class Memory:
    """A source of records in memory."""

    def __init__(self, entries):
        self.entries = tuple(entries)

    async def freeze(self, rollout_id):
        return TokenCaptureSnapshot(rollout_id, self.entries, False, "s", 1)

    async def drop(self, rollout_id, *, snapshot_id, version):
        return True

    async def close(self):
        pass


@given(
    st.lists(st.tuples(st.integers(0, 4), st.lists(st.integers(0, 3), max_size=3)), max_size=7),
    st.one_of(st.none(), st.integers(0, 7)),
)
def test_a_record_is_masked_or_its_tokens_continue_each_other(steps, named):
    """Whatever tree of calls, and whichever call the agent names: the output is contiguous, and only named chains are unmasked."""
    entries = tree_of_calls(steps, call)
    result = {"reward": 1.0, "response": {"id": "?", "output": []}}
    if named is not None:
        result["_ng_terminal_model_call_id"] = chr(ord("a") + named)
    handoff = asyncio.run(finalize_rollout_token_capture(result, Memory(entries), "0-0"))
    assert_prefix_contiguity(result["response"])
    assert handoff.masked == bool(result.get("mask_sample"))
    assert handoff.can_retire is not handoff.masked
    if not handoff.masked:
        assert rollout_carries_token_ids(result)
        chosen = result["_ng_token_capture"]["terminal_attribution"]["call_id"]
        by_id = {entry.model_call_id: entry for entry in entries}
        while chosen and not by_id[chosen].generation_token_ids:
            chosen = by_id[chosen].parent_call_id
        assert result["response"]["output"][-1]["content"] == f"says {chosen}" or result["_ng_token_capture"]["chains"] == 1
