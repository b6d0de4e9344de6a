"""Columns of what rows are sorted and filtered by."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backend.rollouts.rollout_keys import FROM_FAILURES, MISSING, UNREADABLE, Labels, RolloutKeys


def test_a_row_takes_thirty_bytes() -> None:
    keys = RolloutKeys()
    columns = [keys.tasks, keys.rollouts, keys.rewards, keys.failures, keys.agents, keys.ends, keys.output_tokens, keys.flags]
    assert sum(column.itemsize for column in columns) == 30


def test_columns_hold_what_records_say() -> None:
    keys = RolloutKeys()
    keys.append(
        {
            "_ng_task_index": 7, "_ng_rollout_index": 2, "reward": 0.5, "agent_ref": {"name": "a1"},
            "response": {"status": "completed", "usage": {"output_tokens": 12}},
        },
        0,
    )  # fmt: skip
    keys.append({"_ng_task_index": 7, "_ng_rollout_index": 3, "_ng_failure_class": "timeout_exceeded"}, FROM_FAILURES)
    keys.append(None, 0)
    assert [keys.task(row) for row in range(3)] == [7, 7, None]
    assert keys.rollouts.tolist() == [2, 3, MISSING]
    assert [keys.reward(row) for row in range(3)] == [0.5, None, None]
    assert [keys.failure(row) for row in range(3)] == [None, "timeout_exceeded", None]
    assert [keys.end(row) for row in range(3)] == ["stop", "timeout", None]
    assert [keys.agent(row) for row in range(3)] == ["a1", None, None]
    assert keys.output_tokens.tolist() == [12, MISSING, MISSING]
    assert keys.flags.tolist() == [0, FROM_FAILURES, UNREADABLE]
    assert keys.counts("end") == {"stop": 1, "timeout": 1}


@given(st.lists(st.integers() | st.text(max_size=3) | st.none() | st.booleans() | st.floats(allow_nan=False), max_size=12))
def test_any_task_comes_back(tasks: list[Any]) -> None:
    keys = RolloutKeys()
    for task in tasks:
        keys.append({"_ng_task_index": task, "reward": 1}, 0)
    for row, task in enumerate(tasks):
        shown = keys.task(row)
        if task is None or isinstance(task, str):
            assert shown == task
        elif type(task) is int and abs(task) < 1 << 60:
            assert shown == task
            assert keys.task_number(task) == keys.tasks[row]
        else:
            assert isinstance(shown, str | int)
    numbers = [number for number, task in zip(keys.tasks, tasks, strict=True) if task is None]
    assert len(set(numbers)) == len(numbers)


def test_labels_have_a_most() -> None:
    labels = Labels(5)
    assert [labels.number(text) for text in "abcdab"] == [1, 2, 3, 4, 1, 2]
    assert labels.texts == [None, "a", "b", "c", "(other)"]
    assert labels.number("e") == 4


def test_numbers_out_of_range_count_as_missing() -> None:
    keys = RolloutKeys()
    keys.append({"_ng_rollout_index": 1 << 40, "reward": math.inf, "response": {"usage": {"output_tokens": 1 << 40}}}, 0)
    assert (keys.rollouts[0], keys.output_tokens[0], keys.reward(0)) == (MISSING, MISSING, None)
