"""A rollout as blocks of text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.rollouts.rollout_file import RolloutFile
from screens.viewer.conversation import Page, json_text, raw_blocks, read_page, repeats_line
from tests.rollout_samples import HOSTILE, reasoning, record, tool_call, tool_result, write_samples


def opened(path: Path) -> RolloutFile:
    file = RolloutFile(path)
    while not (file.extend(1) and file.scan_keys(1)):
        pass
    return file


@pytest.fixture
def file(tmp_path: Path) -> RolloutFile:
    return opened(write_samples(tmp_path))


def heads(page: Page) -> list[tuple[str, str, str]]:
    return [(block.head, block.head_right, block.kind) for block in page.conversation]


def test_a_conversation_with_a_tool(file: RolloutFile) -> None:
    page = read_page(file, 0)
    assert heads(page) == [
        ("tools", "1 offered", "muted"),
        ("system", "", "system"),
        ("user", "", "user"),
        ("reasoning", "141 tok", "reasoning"),
        ("assistant", "", "assistant"),
        ("tool call  python (code)", "call_1", "tool"),
        ("tool result  python", "call_1", "result"),
        ("assistant", "", "assistant"),
        ("── end: stop", "", "muted"),
    ]
    call = page.conversation[5]
    assert call.body == "sum(1 for a in range(9)\n    for b in range(9) if a * b % 7 == 3)"
    assert call.gutter == "┃"
    assert [block.head for block in page.conversation if block.folded] == ["tools", "system", "reasoning"]
    assert [block.key for block in page.conversation if block.markdown] == [1, 3, 6]
    assert (page.task, page.rollout, page.reward, page.failure) == (0, 0, 1.0, None)
    assert page.reward_block.body.splitlines() == ["reward            1.0", "extracted_answer  12", "expected_answer   12"]
    assert page.facts_block.body.splitlines()[:4] == [
        "agent   sums_simple_agent",
        "model   small-7b",
        "temp    0.2",
        "in      400",
    ]


def test_orphans_say_so(file: RolloutFile) -> None:
    page = read_page(file, 4)
    assert ("! tool result", "orphan: no call  call_9", "result") in heads(page)
    assert ("tool call  python (code)", "no result  call_8", "tool") in heads(page)


def test_a_cut_answer_and_a_failed_attempt_say_how_they_ended(file: RolloutFile) -> None:
    assert read_page(file, 5).conversation[-1].head == "── end: length"
    failed = read_page(file, 12)
    assert failed.failure == "timeout_exceeded"
    assert [block.kind for block in failed.conversation] == ["error", "muted"]
    assert "ran out of the time" in failed.conversation[0].body


def test_an_unreadable_row_shows_why_and_its_bytes(file: RolloutFile) -> None:
    page = read_page(file, 8)
    assert page.unreadable is not None
    assert page.conversation[0].head == "! row 9 unreadable"
    assert "not valid JSON" in page.conversation[0].body
    assert page.conversation[1].body.startswith('{"reward": 1.0, "_ng_task_index": 3')
    assert json_text(file, 8).startswith('{"reward": 1.0')


def test_a_row_that_is_too_big_shows_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    big = record(7, 0, 0.25, [{"type": "message", "role": "assistant", "content": "x" * (9 << 20)}])
    path.write_text(json.dumps(big) + "\n")
    page = read_page(opened(path), 0)
    assert (page.task, page.reward) == (7, 0.25)
    assert "too big" in page.conversation[0].head
    assert "pager" in page.conversation[0].body
    assert len(page.conversation[1].body) == 1 << 16


def test_arguments_stay_json_unless_there_is_one_text(tmp_path: Path) -> None:
    calls = [
        tool_call("c1", HOSTILE),
        {**tool_call("c2", ""), "arguments": '{"a": 1, "b": "x"}'},
        {**tool_call("c3", ""), "arguments": "{oh"},
    ]
    path = tmp_path / "calls.jsonl"
    path.write_text(json.dumps(record(0, 0, 1.0, [*calls, tool_result("c1", "")])) + "\n")
    one, several, broken = (block for block in read_page(opened(path), 0).conversation if "tool call" in block.head)
    assert one.body == HOSTILE
    assert json.loads(several.body) == {"a": 1, "b": "x"}
    assert broken.body == "{oh"


def test_the_raw_record_is_all_of_it(file: RolloutFile) -> None:
    (block,) = raw_blocks(file, 0)
    assert block.no_head
    assert json.loads(block.body) == file.record(0)


def test_nothing_said(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text("{}\n")
    assert [block.head for block in read_page(opened(path), 0).conversation] == ["nothing was said"]


def test_repeats() -> None:
    assert repeats_line(["1", "0", "✗"], 1) == "repeats     1 [0] ✗"


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4), max_leaves=12
)
SHAPED = st.fixed_dictionaries(
    {},
    optional={
        "responses_create_params": st.fixed_dictionaries({}, optional={"input": JSON, "tools": JSON, "temperature": JSON}) | JSON,
        "response": st.fixed_dictionaries({}, optional={"output": JSON, "usage": JSON, "status": JSON, "error": JSON}) | JSON,
        "reward": JSON,
        "_ng_task_index": JSON,
        "_ng_rollout_index": JSON,
        "_ng_failure_class": JSON,
        "ng_trajectory": JSON,
        "agent_ref": JSON,
    },
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(row=SHAPED)
def test_whatever_a_row_holds_it_has_a_page(tmp_path: Path, row: dict[str, Any]) -> None:
    path = tmp_path / "row.jsonl"
    path.write_bytes(json.dumps(row).encode() + b"\n")
    page = read_page(opened(path), 0)
    assert page.conversation
    assert len({block.key for block in page.conversation}) == len(page.conversation)


def test_reasoning_is_folded_wherever_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "thoughts.jsonl"
    path.write_text(json.dumps(record(0, 0, 1.0, [reasoning("a"), reasoning("b")])) + "\n")
    assert [block.body for block in read_page(opened(path), 0).conversation if block.folded][-2:] == ["a", "b"]
