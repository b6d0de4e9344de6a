import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.servers.token_id_capture.conversation import assistant_fingerprint, stamp_continuation, turns_of
from backend.servers.token_id_capture.lineage import (
    FileLineageStore,
    InMemoryLineageStore,
    LineageIndex,
    RolloutLineage,
)
from backend.servers.token_id_capture.records import TokenEntry, stamp_lineage
from backend.servers.token_id_capture.store import TokenCaptureStore


def user(text):
    return {"role": "user", "content": text}


def said(text):
    return {"role": "assistant", "content": text}


def call(arguments, call_id="c"):
    return {"type": "function_call", "name": "f", "arguments": arguments, "call_id": call_id}


def entry(call_id, request, answer, prompt, generation, **fields):
    made = TokenEntry(
        rollout_id="r",
        model_call_id=call_id,
        prompt_token_ids=prompt,
        generation_token_ids=generation,
        generation_log_probs=[0.0] * len(generation),
        output_items=[said(answer)],
        **fields,
    )
    return stamp_continuation(stamp_lineage(made, fields.get("parent_call_id")), request)


def resolved(lineage, messages):
    resolution = lineage.resolve(messages)
    return resolution.status.value, resolution.match and resolution.match.model_call_id, resolution.reason


def test_both_dialects_have_the_same_turns():
    items = [
        user([{"type": "input_text", "text": "q"}]),
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
        {
            "type": "message",
            "role": "assistant",
            "id": "m",
            "content": [{"type": "output_text", "text": "plan", "annotations": []}],
        },
        call('{"b": 1, "a": 2}'),
        {"type": "function_call_output", "call_id": "c", "output": "o"},
    ]
    function = {"name": "f", "arguments": '{"a":2,"b":1}'}
    messages = [
        user("q"),
        {
            "role": "assistant",
            "content": "<think>hm</think>plan",
            "tool_calls": [{"id": "x", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "x", "content": "o"},
    ]
    assert turns_of(items) == turns_of(messages)
    assert [turn.role for turn in turns_of(items)] == ["user", "assistant", "tool"]
    assert assistant_fingerprint(items) == assistant_fingerprint(messages) != ""
    assert turns_of("q") == turns_of([user("q")])


def test_nothing_generated_has_no_fingerprint():
    assert assistant_fingerprint([user("q"), {"role": "system", "content": "s"}]) == ""
    assert assistant_fingerprint(None) == ""


def test_differences_that_matter():
    assert assistant_fingerprint([call("{}")]) != assistant_fingerprint([call('{"a":1}')])
    assert assistant_fingerprint([call("{broken")]) != assistant_fingerprint([call("{}")])
    assert turns_of([user("q")]) != turns_of([user("q ")])


def test_the_parent_is_the_one_call_that_the_request_continues():
    lineage = RolloutLineage()
    shared = [user("q"), said("plan")]
    lineage.record("parent", shared, [1, 2, 3], "p")
    lineage.record("branch", [*shared, user("a"), said("A")], [1, 2, 3, 9], "b")
    assert resolved(lineage, [user("q")]) == ("root", None, "")
    assert resolved(lineage, [*shared, user("b")]) == ("resolved", "parent", "")
    assert resolved(lineage, shared) == ("resolved", "parent", "")
    assert resolved(lineage, [*shared, user("a"), said("A"), user("c")]) == ("resolved", "branch", "")
    assert lineage.resolve([*shared, user("b")]).match.cumulative_token_ids == (1, 2, 3)
    for other in ([user("q"), said("rewritten")], [user("other q"), said("plan")], [said("plan")]):
        assert resolved(lineage, other) == ("unresolved", None, "no_match")


def test_two_candidates_are_ambiguous_unless_their_tokens_are_the_same():
    lineage = RolloutLineage()
    lineage.record("a", [user("q"), said("x")], [1], "same")
    lineage.record("b", [user("q"), said("x")], [1], "same")
    assert resolved(lineage, [user("q"), said("x")])[0] == "resolved"
    lineage.record("c", [user("q"), said("x")], [2], "other")
    assert resolved(lineage, [user("q"), said("x")]) == ("unresolved", None, "ambiguous")


def test_a_delta_record_is_completed_from_its_parent():
    lineage = RolloutLineage()
    lineage.add_entry(entry("a", [user("q")], "x", [1, 2], [3]))
    lineage.add_entry(entry("b", [user("q"), said("x"), user("n")], "y", [4], [5], prompt_is_delta=True, parent_call_id="a"))
    lineage.add_entry(entry("lost", [user("z")], "y", [4], [5], prompt_is_delta=True, parent_call_id="unknown"))
    match = lineage.resolve([user("q"), said("x"), user("n"), said("y"), user("m")]).match
    assert match.cumulative_token_ids == (1, 2, 3, 4, 5)
    assert set(lineage.by_call_id) == {"a", "b"}
    lineage.add_entry(entry("b", [], "again", [], []))
    assert lineage.total_tokens == 8


def test_the_index_forgets_what_was_not_used_for_longest():
    index = LineageIndex(max_rollouts=2)
    for rollout_id in ("a", "b", "a", "c"):
        index.for_rollout(rollout_id)
    assert ["a" in index, "b" in index, "c" in index] == [True, False, True]
    index = LineageIndex(max_tokens=5)
    index.for_rollout("a").record("x", [said("x")], range(4), "d")
    index.for_rollout("b").record("x", [said("x")], range(4), "d")
    index.for_rollout("b")
    assert ["a" in index, "b" in index] == [False, True]
    index.drop("b")
    index.clear()
    assert "b" not in index


async def test_the_store_in_memory_learns_from_records():
    store = InMemoryLineageStore()
    await store.put(entry("a", [user("q")], "x", [1], [2]))
    assert (await store.resolve("r", [user("q"), said("x")])).match.model_call_id == "a"
    assert (await store.resolve("other", [user("q"), said("x")])).match is None
    assert not store.is_process_shared()
    await store.close()


async def test_the_store_on_files_sees_what_others_wrote(tmp_path):
    store, writer = FileLineageStore(tmp_path), TokenCaptureStore(tmp_path)
    assert (await store.resolve("r", [user("q"), said("x")])).match is None
    await writer.put(entry("a", [user("q")], "x", [1], [2]))
    assert (await store.resolve("r", [user("q"), said("x")])).match.model_call_id == "a"
    with open(writer.path_for("r"), "ab") as file:
        file.write(b'{"half a rec')
    assert (await store.resolve("r", [user("q"), said("x")])).match.model_call_id == "a"
    assert store.is_process_shared()
    await store.close()


@pytest.mark.parametrize("longer", [False, True])
async def test_a_rollout_that_is_run_again_has_nothing_of_the_calls_before(tmp_path, longer):
    """The file of its records is another one under the same name, as long as the old one or longer."""
    store, writer = FileLineageStore(tmp_path), TokenCaptureStore(tmp_path)
    await writer.put(entry("a", [user("q")], "x", [1], [2]))
    assert (await store.resolve("r", [user("q"), said("x")])).match.model_call_id == "a"
    writer.delete("r")
    assert (await store.resolve("r", [user("q"), said("x")])).match is None
    await writer.put(entry("a", [user("q")], "x", [1], [2]))
    assert (await store.resolve("r", [user("q"), said("x")])).match.model_call_id == "a"
    writer.delete("r")
    await writer.put(entry("b", [user("q")], "x", [3] * 40 if longer else [3], [2]))
    match = (await store.resolve("r", [user("q"), said("x")])).match
    assert (match.model_call_id, match.cumulative_token_ids[0]) == ("b", 3)


@given(st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=5), st.lists(st.sampled_from(["x", "y"]), max_size=5))
def test_a_conversation_continues_exactly_its_own_beginnings(answers, others):
    """Each call of a conversation is recorded; whatever conversation asks, only the record of its own last answer matches."""
    lineage = RolloutLineage()

    def conversation(answers):
        return [message for index, answer in enumerate(answers) for message in (user(str(index)), said(answer))]

    for length in range(1, len(answers) + 1):
        lineage.record(str(length), conversation(answers[:length]), [length], str(length))
    resolution = lineage.resolve([*conversation(others), user("next")])
    if not others:
        assert resolution.status == "root"
    elif others == answers[: len(others)]:
        assert resolution.match.model_call_id == str(len(others))
    else:
        assert resolution.status == "unresolved"
