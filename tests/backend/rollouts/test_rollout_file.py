"""A rollouts file and its sidecar, whole and growing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from backend.errors import GymError
from backend.io.result_paths import ResultPaths
from backend.rollouts import rollout_file
from backend.rollouts.rollout_facts import Unreadable
from backend.rollouts.rollout_file import RolloutFile
from backend.rollouts.rollout_query import parse_query


def rollout(task: int, repeat: int, reward: float, text: str = "done") -> dict[str, Any]:
    return {
        "response": {
            "status": "completed",
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}],
            "usage": {"input_tokens": 5, "output_tokens": len(text)},
        },
        "reward": reward, "_ng_task_index": task, "_ng_rollout_index": repeat, "agent_ref": {"name": "a1"},
    }  # fmt: skip


def failure(task: int, repeat: int) -> dict[str, Any]:
    return {
        "_ng_failure_class": "agent_run_error", "_ng_failure_message": "boom", "_ng_task_index": task, "_ng_rollout_index": repeat,
    }  # fmt: skip


def append(path: Path, *rows: Mapping[str, Any] | bytes) -> None:
    with open(path, "ab") as file:
        for row in rows:
            file.write(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n")


def read_all(file: RolloutFile) -> RolloutFile:
    while not file.extend(0):
        pass
    while not file.scan_keys(0):
        pass
    return file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "m.jsonl"
    append(path, rollout(0, 0, 1.0), rollout(1, 1, 0.0, "naïve"), b'\n{"broken": \n', b"[1]\n", rollout(0, 1, 0.5))
    append(tmp_path / "m_failures.jsonl", failure(1, 0), failure(1, 1))
    return path


def test_rows_come_in_file_order_the_sidecar_last(path: Path) -> None:
    file = read_all(RolloutFile(path))
    facts = [file.facts(row) for row in range(len(file))]
    assert [(row.source, row.line, row.task, row.rollout, row.reward, row.failure) for row in facts] == [
        ("rollouts", 1, 0, 0, 1.0, None),
        ("rollouts", 2, 1, 1, 0.0, None),
        ("rollouts", 4, None, None, None, None),
        ("rollouts", 5, None, None, None, None),
        ("rollouts", 6, 0, 1, 0.5, None),
        ("failures", 1, 1, 0, None, "agent_run_error"),
        ("failures", 2, 1, 1, None, "agent_run_error"),
    ]
    assert facts[2].unreadable is not None and facts[2].unreadable.startswith("not valid JSON: ")
    assert facts[3].unreadable == "not a JSON object"
    assert facts[5].preview == "boom"
    assert (file.indexed, file.scanned, file.torn_bytes, file.generation) == (1.0, 1.0, 0, 0)
    assert file.place(1).offset == len(json.dumps(rollout(0, 0, 1.0))) + 1
    assert json.loads(file.raw(1)) == rollout(1, 1, 0.0, "naïve")


def test_records_and_what_cannot_be_one(path: Path) -> None:
    file = read_all(RolloutFile(ResultPaths(path)))
    assert file.record(0) == rollout(0, 0, 1.0)
    broken = file.record(2)
    assert isinstance(broken, Unreadable)
    assert (broken.place.line, broken.head, broken.too_big) == (4, b'{"broken":', False)
    with pytest.raises(IndexError):
        file.record(7)


def test_tasks_and_the_row_that_counts(path: Path) -> None:
    file = read_all(RolloutFile(path))
    groups = file.tasks()
    assert [(group.task, group.rows, group.superseded, group.mean) for group in groups if group.task is not None] == [
        (0, (0, 4), (), 0.75),
        (1, (5, 1), (6,), 0.0),
    ]
    assert file.facts(6).superseded
    assert not file.facts(1).superseded
    assert file.tasks() is groups


def test_filters_find_fields_and_words(path: Path) -> None:
    file = read_all(RolloutFile(path))
    assert list(file.rows_matching(parse_query("reward<1 sort:-reward"))) == [4, 1]
    assert list(file.rows_matching(parse_query("naïve"))) == [1]
    assert list(file.rows_matching(parse_query("is:scored !naïve"))) == [0, 4]
    assert list(file.rows_matching(parse_query("fail:any"))) == [5, 6]
    step = file.search_text("boom", 0, 1, 5)
    assert (step.row, step.finished) == (5, False)
    assert file.search_text("naïve", 6, -1, 5).row == 1


def test_problems_are_walked_in_both_directions(path: Path) -> None:
    file = read_all(RolloutFile(path))
    file.tasks()
    forwards = []
    row = file.next_problem(0)
    while row is not None:
        forwards.append(row)
        row = file.next_problem(row + 1)
    assert forwards == [1, 2, 3, 4, 5]  # 6 is superseded by 1
    assert file.next_problem(6, -1) == 5
    assert file.next_problem(0, -1) is None
    assert file.next_problem(0, below=0.2) == 1


def test_a_growing_file_keeps_the_numbers_of_its_rows(path: Path) -> None:
    file = read_all(RolloutFile(path))
    append(path, rollout(2, 0, 1.0), json.dumps(rollout(2, 1, 1.0)).encode()[:-9])
    read_all(file)
    assert (len(file), len(file.keys), file.torn_bytes) == (8, 8, len(json.dumps(rollout(2, 1, 1.0))) - 9)
    assert (file.facts(7).task, file.facts(5).failure) == (2, "agent_run_error")
    append(path.with_name("m_failures.jsonl"), failure(3, 0))
    append(path, json.dumps(rollout(2, 1, 1.0)).encode()[-9:] + b"\n")
    read_all(file)
    assert [(file.place(row).source, file.place(row).line) for row in (8, 9)] == [("rollouts", 8), ("failures", 3)]
    assert [group.task for group in file.tasks() if group.task is not None] == [0, 1, 2, 3]


def test_a_sidecar_may_come_later(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    append(path, rollout(0, 0, 1.0))
    file = read_all(RolloutFile(path))
    append(tmp_path / "m_failures.jsonl", failure(1, 0))
    assert len(read_all(file)) == 2
    assert file.keys.failure(1) == "agent_run_error"


def test_a_file_written_anew_starts_over(path: Path) -> None:
    file = read_all(RolloutFile(path))
    assert file.facts(0).task == 0
    path.write_bytes(b"")
    append(path, rollout(9, 0, 1.0, "x" * 2000))
    read_all(file)
    assert file.generation == 1
    assert [file.keys.task(row) for row in range(len(file))] == [9, 1, 1]
    assert file.facts(0).task == 9


def test_an_empty_file_and_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").touch()
    file = read_all(RolloutFile(tmp_path / "m.jsonl"))
    assert (len(file), file.indexed, file.scanned, list(file.tasks())) == (0, 1.0, 1.0, [])
    with pytest.raises(GymError, match="cannot read"):
        RolloutFile(tmp_path / "none.jsonl")


def test_large_rows_are_never_parsed_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout_file, "LARGEST_PARSED", 1 << 12)
    monkeypatch.setattr(rollout_file, "_LARGEST_SCANNED_WHOLE", 1 << 10)
    path = tmp_path / "m.jsonl"
    giant = rollout(5, 1, 0.5, 'he said "so" \\ ' * 1000)
    append(path, rollout(0, 0, 1.0), giant, rollout(5, 2, 1.0, "y" * 2000), b'{"a": "' + b"z" * 9000 + b"\n", rollout(0, 1, 1.0))
    file = RolloutFile(path)
    while not file.extend(0):
        pass
    assert (file.facts(1).too_big, file.facts(1).reward) == (True, None)  # the key scan has not come there
    while not file.scan_keys(0):
        pass
    monkeypatch.setattr(rollout_file, "loads", None)
    facts = file.facts(1)
    assert (facts.task, facts.rollout, facts.reward, facts.end, facts.output_tokens, facts.agent) == (
        5,
        1,
        0.5,
        "stop",
        15_000,
        "a1",
    )
    assert facts.preview.startswith('{"response": {"status": "completed"')
    record = file.record(1)
    assert isinstance(record, Unreadable) and record.too_big
    assert file.keys.rewards.tolist()[:3] == [1.0, 0.5, 1.0]
    assert [row for row in range(len(file)) if file.keys.flags[row] & 1] == [3]
    assert list(file.rows_matching(parse_query("is:big"))) == [1, 3]
