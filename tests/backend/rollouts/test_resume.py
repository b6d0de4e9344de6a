"""What is done of a run and what is left, read from its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import GymError
from backend.io.result_paths import ResultPaths
from backend.rollouts.compact_numbers import CompactPairs
from backend.rollouts.resume import (
    ATTEMPTS_VARIABLE,
    attempts_allowed,
    read_earlier_work,
    resume_command,
    why_from_the_beginning,
)

Key = tuple[int, int]


def row(task: int, rollout: int, **fields: Any) -> dict[str, Any]:
    stamps = {"_ng_task_index": task, "_ng_rollout_index": rollout, "agent_ref": {"name": "a1"}}
    return {"responses_create_params": {"input": f"q{task}"}, **stamps, **fields}


def record(task: int, rollout: int, **fields: Any) -> dict[str, Any]:
    return {"_ng_task_index": task, "_ng_rollout_index": rollout, "agent_ref": {"name": "a1"}, **fields}


def failure(task: int, rollout: int, **fields: Any) -> dict[str, Any]:
    return record(task, rollout, **{"_ng_failure_class": "agent_run_error", **fields})


def lay_out(
    folder: Path, rows: list[Any], rollouts: list[Any], failures: list[Any] | None = None, *, tail: str = ""
) -> ResultPaths:
    paths = ResultPaths(folder / "r.jsonl")
    for path, values in ((paths.materialized_inputs, rows), (paths.rollouts, rollouts), (paths.failures, failures)):
        if values is not None:
            path.write_text("".join(json.dumps(value) + "\n" for value in values))
    with open(paths.rollouts, "a") as file:
        file.write(tail)
    return paths


def keys_left(paths: ResultPaths, allowed: int = 3) -> list[Key]:
    return [
        (line.value["_ng_task_index"], line.value["_ng_rollout_index"]) for line in read_earlier_work(paths, allowed).rows_left()
    ]


@pytest.mark.parametrize(
    ("value", "allowed", "warns"),
    [(None, 3, False), ("", 3, False), (" ", 3, False), ("2", 2, False), (" 7 ", 7, False)]
    + [(bad, 3, True) for bad in ("0", "-1", "abc", "2.5", "1e3")],
)
def test_the_number_of_attempts(monkeypatch: pytest.MonkeyPatch, value: str | None, allowed: int, warns: bool) -> None:
    monkeypatch.delenv(ATTEMPTS_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(ATTEMPTS_VARIABLE, value)
    number, warning = attempts_allowed()
    assert number == allowed
    assert (warning is not None) == warns
    assert warning is None or repr(value) in warning


@pytest.mark.parametrize(
    ("command", "resumed"),
    [
        (["gym", "eval", "run", "-o", "a b.jsonl"], "gym eval run -o 'a b.jsonl' --resume"),
        (["gym", "eval", "run", "--resume", "-o", "r.jsonl"], "gym eval run -o r.jsonl --resume"),
        (["gym", "eval", "run", "++resume_from_cache=false"], "gym eval run --resume"),
        ([], ""),
    ],
)
def test_the_command_that_goes_on(command: list[str], resumed: str) -> None:
    assert resume_command(command) == resumed


def test_nothing_is_deleted_when_only_the_plan_is_missing(tmp_path: Path) -> None:
    paths = lay_out(tmp_path, [], [record(0, 0, reward=1.0)])
    paths.materialized_inputs.unlink()
    with pytest.raises(GymError, match=r"r_materialized_inputs.jsonl is missing") as caught:
        why_from_the_beginning(paths)
    assert caught.value.hint is not None and "--output" in caught.value.hint


@pytest.mark.parametrize(("rollouts", "materialized", "named"), [
    (None, True, "r.jsonl is not there"),
    (None, False, "r.jsonl is not there"),
    ("", False, "r_materialized_inputs.jsonl is not there"),
])  # fmt: skip
def test_a_start_from_the_beginning_is_remarked(tmp_path: Path, rollouts: str | None, materialized: bool, named: str) -> None:
    paths = ResultPaths(tmp_path / "r.jsonl")
    if rollouts is not None:
        paths.rollouts.write_text(rollouts)
    if materialized:
        paths.materialized_inputs.write_text(json.dumps(row(0, 0)) + "\n")
    assert named in (why_from_the_beginning(paths) or "")


def test_an_empty_output_is_resumed(tmp_path: Path) -> None:
    paths = lay_out(tmp_path, [row(0, 0)], [])
    assert why_from_the_beginning(paths) is None
    assert keys_left(paths) == [(0, 0)]


def test_rows_left_are_sent_as_they_are_written(tmp_path: Path) -> None:
    paths = lay_out(tmp_path, [row(0, 0, extra="\u2028\u0085\f"), row(0, 1)], [record(0, 1)])
    (line,) = read_earlier_work(paths, 3).rows_left()
    assert line.raw == paths.materialized_inputs.read_bytes().splitlines()[0]


def test_the_newer_of_two_records_counts(tmp_path: Path) -> None:
    records = [record(0, 0, reward=1.0), record(1, 0, reward=0.5), record(0, 0, reward=0.25), record(0, 0, reward=0.0)]
    earlier = read_earlier_work(lay_out(tmp_path, [row(0, 0), row(1, 0)], records), 3)
    assert earlier.left == 0
    assert earlier.duplicates == ((0, 0), (0, 0))
    agent = earlier.tally.agents["a1"]
    assert list(agent.rewards_by_task()) == [[0.0], [0.5]]
    assert (agent.scored, agent.averages()) == (2, {"reward": 0.25})


def test_separators_of_other_kinds_end_no_line(tmp_path: Path) -> None:
    paths = lay_out(tmp_path, [row(0, 0), row(1, 0)], [])
    text = json.dumps(record(0, 0, text="a\u2028b\u0085c"), ensure_ascii=False)
    paths.rollouts.write_text("\ufeff" + text + "\n\n  \n", "utf-8")
    assert keys_left(paths) == [(1, 0)]


@pytest.mark.parametrize("tail", ['{"reward": 1.0, "_ng_ta', "{", '{"text": "half of a w', "\0\0\0"])
def test_a_cut_off_line_is_not_finished(tmp_path: Path, tail: str) -> None:
    assert keys_left(lay_out(tmp_path, [row(0, 0), row(1, 0)], [record(0, 0)], tail=tail)) == [(1, 0)]


def test_a_whole_last_line_without_its_end_is_finished(tmp_path: Path) -> None:
    assert keys_left(lay_out(tmp_path, [row(0, 0), row(1, 0)], [record(0, 0)], tail=json.dumps(record(1, 0)))) == []


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    paths = lay_out(tmp_path, [row(0, 0)], [], tail='{"reward": 1.0, "_ng{"reward": 0.0}\n')
    with pytest.raises(GymError, match=r"r.jsonl:1:\d+: not valid JSON") as caught:
        read_earlier_work(paths, 3)
    assert "runs again" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("foreign", "named"),
    [
        (record(4, 0), "line 2: (4, 0)"),
        (record(0, 7), "line 2: (0, 7)"),
        (record(0, -1), "line 2: (0, -1)"),
        ({"reward": 1.0}, "line 2: no indices"),
        (record(1, 0) | {"agent_ref": {"name": "other"}}, "line 2: (1, 0)"),
    ],
)
def test_records_of_another_run_are_refused(tmp_path: Path, foreign: dict[str, Any], named: str) -> None:
    paths = lay_out(tmp_path, [row(0, 0), row(1, 0)], [record(0, 0), foreign])
    with pytest.raises(GymError) as caught:
        read_earlier_work(paths, 3)
    assert named in str(caught.value)


@pytest.mark.parametrize("broken", [{"_ng_task_index": 0}, row(0, 0) | {"agent_ref": None}, row(0, True), row(0, 0)])
def test_a_plan_that_is_none_is_named(tmp_path: Path, broken: dict[str, Any]) -> None:
    paths = lay_out(tmp_path, [row(0, 0), broken], [])
    with pytest.raises(GymError, match=r"r_materialized_inputs.jsonl:2:"):
        read_earlier_work(paths, 3)


def test_given_up_rollouts_are_told_with_their_last_failure(tmp_path: Path) -> None:
    failures = [
        failure(0, 0, failure_reason="first"),
        failure(1, 0, _ng_failure_class="timeout_exceeded", _ng_failure_terminal=True),
        failure(0, 0, failure_reason="second", _ng_failure_class="agent_request_failed"),
        failure(2, 0),
        {"_ng_failure_class": "of nothing"},
        failure(9, 9),
    ]
    earlier = read_earlier_work(lay_out(tmp_path, [row(task, 0) for task in range(4)], [], failures), 2)
    assert [(line.value["_ng_task_index"], line.value.get("_ng_attempt_index")) for line in earlier.rows_left()] == [
        (2, 1), (3, None),
    ]  # fmt: skip
    first, second = sorted(earlier.given_up, key=lambda given_up: given_up.task)
    assert (first.attempts, first.terminal, first.failure, first.reason) == (2, False, "agent_request_failed", "second")
    assert (second.attempts, second.terminal, second.failure) == (1, True, "timeout_exceeded")
    assert (earlier.tally.failed, earlier.retries, earlier.left) == (2, 1, 2)
    assert earlier.tally.failure_classes == {"agent_request_failed": 1, "timeout_exceeded": 1}


def test_a_success_after_terminal_failures_is_finished(tmp_path: Path) -> None:
    earlier = read_earlier_work(lay_out(tmp_path, [row(0, 0)], [record(0, 0)], [failure(0, 0, _ng_failure_terminal=True)]), 1)
    assert (earlier.tally.scored, earlier.tally.failed, earlier.given_up) == (1, 0, ())


def test_parameters_of_now_reach_the_rows_left(tmp_path: Path) -> None:
    paths = lay_out(tmp_path, [row(0, 0), row(1, 0)], [record(0, 0)])
    (line,) = read_earlier_work(paths, 3, {"temperature": 0.5}).rows_left()
    assert json.loads(line.raw)["responses_create_params"] == {"input": "q1", "temperature": 0.5}


SMALL_KEYS = st.tuples(st.integers(-2, 3), st.integers(0, 2))


@settings(max_examples=150, deadline=None)
@given(
    plan=st.lists(SMALL_KEYS, unique=True, min_size=1),
    done=st.lists(SMALL_KEYS, max_size=12),
    failed=st.lists(st.tuples(SMALL_KEYS, st.booleans()), max_size=20),
    allowed=st.integers(1, 4),
)
def test_every_row_is_finished_or_given_up_or_left(
    tmp_path_factory: pytest.TempPathFactory, plan: list[Key], done: list[Key], failed: list[tuple[Key, bool]], allowed: int
) -> None:
    done = [key for key in done if key in plan]
    paths = lay_out(
        tmp_path_factory.mktemp("run"),
        [row(*key) for key in plan],
        [record(*key, reward=1.0) for key in done],
        [failure(*key, **({"_ng_failure_terminal": True} if terminal else {})) for key, terminal in failed],
    )
    attempts = {key: [terminal for other, terminal in failed if other == key] for key in plan}
    given_up = {key for key in plan if key not in done and (any(attempts[key]) or len(attempts[key]) >= allowed)}
    earlier = read_earlier_work(paths, allowed)
    left = {
        (line.value["_ng_task_index"], line.value["_ng_rollout_index"]): line.value.get("_ng_attempt_index", 0)
        for line in earlier.rows_left()
    }
    assert left == {key: len(attempts[key]) for key in plan if key not in done and key not in given_up}
    assert {(one.task, one.rollout) for one in earlier.given_up} <= given_up
    assert (earlier.tally.scored, earlier.tally.failed, earlier.left) == (len(set(done)), len(given_up), len(left))
    assert len(earlier.duplicates) == len(done) - len(set(done))


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**32 - 1)), max_size=200))
def test_pairs_are_numbered_in_order_of_appearance(pairs: list[Key]) -> None:
    numbers = CompactPairs()
    expected: dict[Key, int] = {}
    for pair in pairs:
        new = pair not in expected
        assert numbers.add(*pair) == (expected.setdefault(pair, len(expected)), new)
    assert len(numbers) == len(expected)
    assert all(numbers.get(*pair) == place for pair, place in expected.items())
    assert numbers.get(1, 2**32) is None and numbers.get(1, -1) is None
