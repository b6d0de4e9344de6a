import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.servers.token_id_capture.chains import (
    Chain,
    ChainLink,
    assert_prefix_contiguity,
    prefix_merging,
    project_chain_to_output_items,
    run_builder,
)
from backend.servers.token_id_capture.records import ParentResolutionStatus, TokenEntry, stamp_lineage
from backend.servers.token_id_capture.store import TokenCaptureStore
from backend.servers.token_id_capture.trajectories import (
    clear_token_captures_for_rollouts,
    trajectories_for_rollout,
    trajectories_from_source,
)
from tests.token_trees import tree_of_calls

UNRESOLVED = ParentResolutionStatus.UNRESOLVED


def call(call_id, prompt, generation, parent=None, at=None, **fields):
    made = TokenEntry(
        rollout_id="0-0",
        model_call_id=call_id,
        prompt_token_ids=prompt,
        generation_token_ids=generation,
        generation_log_probs=[-0.5] * len(generation),
        output_items=[{"type": "message", "role": "assistant", "content": f"says {call_id}"}],
        token_item_index=0,
        response_id=f"resp-{call_id}",
        created_at=ord(call_id[0]) if at is None else at,
    )
    return stamp_lineage(made, parent).model_copy(update=fields)


def ids(chain):
    return [link.entry.model_call_id for link in chain.links]


def build(tmp_path, *entries, **arguments):
    store = TokenCaptureStore(tmp_path)
    for entry in entries:
        store.append(entry)
    return trajectories_for_rollout("0-0", [tmp_path / "empty", tmp_path], model="m", **arguments)


TWO_TURNS = (call("a", [1, 2], [3]), call("b", [1, 2, 3, 4], [5, 6], "a"))
OTHER_AGENT = call("d", [50], [51])
AMID = call("c", [1, 2, 9, 4], [7], parent_resolution=UNRESOLVED)
EMPTY = call("e", [1, 2, 3, 4], [], "a")


def test_one_conversation_is_one_safe_response(tmp_path):
    built = build(tmp_path, *TWO_TURNS)
    message = {"type": "message", "role": "assistant"}
    assert built["rebuilt_response"] == {
        "id": "proj-0-0",
        "model": "m",
        "object": "response",
        "output": [
            message
            | {"content": "says a", "prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.5]},
            message
            | {
                "content": "says b",
                "prompt_token_ids": [1, 2, 3, 4],
                "generation_token_ids": [5, 6],
                "generation_log_probs": [-0.5, -0.5],
            },
        ],
        "usage": {"input_tokens": 2, "output_tokens": 3},
    }
    assert_prefix_contiguity(built["rebuilt_response"])
    assert built["mask_sample"] is False
    assert built["metrics"] == {
        "n_calls": 2,
        "terminal_attribution": {"method": "none", "call_id": None, "reason": "no_response_object", "chain": ""},
        "chains": 1,
        "roots": 1,
        "quarantined_calls": 0,
        "quarantined_fraction": 0.0,
        "delivered_fraction": 1.0,
        "generated_tokens_captured": 3,
        "generated_tokens_delivered": 3,
        "parent_link_failures": {},
        "unresolved_parent_calls": 0,
        "empty_generation_calls": 0,
    }


def test_several_chains_without_a_terminal_call_are_masked(tmp_path):
    built = build(tmp_path, *TWO_TURNS, AMID, OTHER_AGENT, EMPTY)
    metrics = built["metrics"]
    assert [metrics[key] for key in ("n_calls", "chains", "roots", "empty_generation_calls")] == [5, 3, 3, 1]
    assert (metrics["delivered_fraction"], metrics["parent_link_failures"]) == (0.6, {"parent_unresolved": 1})
    assert built["unresolved_parent_calls"] == ["c"]
    assert built["mask_sample"] is True
    assert len(built["rebuilt_response"]["output"]) == 2


@pytest.mark.parametrize(
    ("arguments", "method", "call_id", "masked"),
    [
        ({"explicit_terminal_call_id": "d"}, "explicit", "d", False),
        ({"explicit_terminal_call_id": "zzz"}, "none", None, True),
        ({"verified_response": {"id": "resp-b", "output": []}}, "response_id", "b", False),
        ({"verified_response": {"id": "x", "output": [{"role": "assistant", "content": "says d"}]}}, "content", "d", False),
        ({"verified_response": {"id": "resp-b", "output": [{"role": "assistant", "content": "says d"}]}}, "none", None, True),
        ({"verified_response": {"id": "resp-c", "output": []}}, "response_id", "c", True),
    ],
)
def test_the_chain_of_the_call_that_the_rollout_ended_with(tmp_path, arguments, method, call_id, masked):
    built = build(tmp_path, *TWO_TURNS, AMID, OTHER_AGENT, **arguments)
    attribution = built["metrics"]["terminal_attribution"]
    assert (attribution["method"], attribution["call_id"]) == (method, call_id)
    assert built["mask_sample"] is masked
    if call_id:
        assert built["rebuilt_response"]["output"][-1]["content"] == f"says {call_id}"


def test_reasons_that_name_no_terminal_call(tmp_path):
    def reason(**arguments):
        return build(tmp_path, *TWO_TURNS, **arguments)["metrics"]["terminal_attribution"]["reason"]

    assert reason(explicit_terminal_call_id="z") == "explicit_terminal_not_captured,no_response_object"
    assert reason(verified_response={"id": "x", "output": []}) == "response_id_not_captured,content_not_captured"
    both = {"id": "resp-a", "output": [{"role": "assistant", "content": "says b"}]}
    assert reason(verified_response=both) == "contradiction"


def test_an_incomplete_capture_is_masked(tmp_path):
    TokenCaptureStore(tmp_path).incomplete_path_for("0-0").touch()
    assert build(tmp_path, *TWO_TURNS)["mask_sample"] is True


def test_a_lost_retry_is_set_aside():
    retry = call("aa", [1, 2], [8], at=96.5)
    built = prefix_merging([retry, *TWO_TURNS])
    assert (built.quarantined, [ids(chain) for chain in built.chains]) == (["aa"], [["a", "b"]])
    assert built.unresolved_retries == []


def test_of_equal_calls_that_nothing_continues_the_last_one_counts_and_the_doubt_is_told(tmp_path):
    retries = [call("b", [1, 2, 3, 4], [5], "a", at=100), call("c", [1, 2, 3, 4], [6], "a", at=101)]
    built = prefix_merging([TWO_TURNS[0], *retries])
    assert (ids(built.main), built.unresolved_retries) == (["a", "c"], ["b", "c"])
    assert ids(prefix_merging([TWO_TURNS[0], *retries], "b").main) == ["a", "b"]
    assert build(tmp_path, TWO_TURNS[0], *retries)["mask_sample"] is True
    assert build(tmp_path, explicit_terminal_call_id="c")["mask_sample"] is False


def test_links_that_the_tokens_contradict_are_cut():
    changed = call("b", [1, 2, 9, 4], [5], "a")
    orphan = call("c", [1, 2], [5], "unknown")
    forged = TWO_TURNS[0].model_copy(update={"digest": "0" * 64})
    assert prefix_merging([TWO_TURNS[0], changed]).link_failures == {"prefix_mismatch": 1}
    assert prefix_merging([TWO_TURNS[0], orphan]).link_failures == {"parent_missing": 1}
    assert prefix_merging([forged, TWO_TURNS[1]]).link_failures == {"prefix_mismatch": 1}


def test_delta_records_are_completed_and_doubles_dropped():
    delta = TWO_TURNS[1].model_copy(update={"prompt_token_ids": [4], "prompt_is_delta": True})
    built = prefix_merging([TWO_TURNS[0], TWO_TURNS[0], delta])
    assert built.main.links[1].entry.prompt_token_ids == [1, 2, 3, 4]
    lost = prefix_merging([delta])
    assert (lost.main, lost.link_failures, lost.unresolved_parents) == (None, {"delta_without_parent": 1}, ["b"])


def test_only_the_item_with_the_tokens_carries_them():
    items = [{"type": "reasoning"}, {"type": "message"}, {"type": "function_call"}]
    entry = TWO_TURNS[0].model_copy(update={"output_items": items, "token_item_index": 1, "routed_experts": "x"})
    first, second, third = project_chain_to_output_items(Chain("a", [ChainLink(entry)]))
    assert (first, third) == (items[0], items[2])
    assert (second["generation_token_ids"], second["routed_experts"]) == ([3], "x")


def test_broken_chains_are_named():
    chain = Chain("x", [ChainLink(TWO_TURNS[0]), ChainLink(OTHER_AGENT)])
    with pytest.raises(ValueError, match="call d does not continue"):
        chain.validate()
    with pytest.raises(ValueError, match="item 1"):
        assert_prefix_contiguity({"output": project_chain_to_output_items(chain)})
    with pytest.raises(ValueError, match="prefix_merging"):
        run_builder([], "other")


async def test_sources_and_folders_without_records(tmp_path):
    assert await trajectories_from_source("0-0", TokenCaptureStore(tmp_path)) is None
    assert trajectories_for_rollout("1-1", [tmp_path]) is None
    assert run_builder([]).main is None


def test_records_of_earlier_runs_are_cleared(tmp_path):
    store = TokenCaptureStore(tmp_path)
    store.append(TWO_TURNS[0])
    rows = [{"_ng_task_index": 0, "_ng_rollout_index": 0}, {"no": "id"}]
    clear_token_captures_for_rollouts(rows, [tmp_path, tmp_path / "missing"])
    assert store.read_entries("0-0") == []


@given(st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(0, 3), min_size=1, max_size=3)), min_size=1, max_size=8))
def test_every_chain_of_any_tree_of_calls_is_contiguous(steps):
    """Each step continues an earlier call (or begins anew) with a token of its own, so no two prompts are equal."""
    entries = tree_of_calls(steps, call)
    built = prefix_merging(list(reversed(entries)))
    for chain in built.chains:
        chain.validate()
        assert_prefix_contiguity({"output": project_chain_to_output_items(chain)})
    assert {call_id for chain in built.chains for call_id in ids(chain)} == {entry.model_call_id for entry in entries}
    assert built.main.links[0].entry.model_call_id == "a"
    assert not built.quarantined
