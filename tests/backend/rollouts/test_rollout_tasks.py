"""Rows grouped by task."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backend.rollouts.rollout_keys import FROM_FAILURES, SUPERSEDED, RolloutKeys
from backend.rollouts.rollout_tasks import TaskGroups, TaskRows


def keys_of(*rows: tuple[Any, Any, Any], failures: tuple[int, ...] = ()) -> RolloutKeys:
    """Columns of rows given as (task, rollout, reward); those in `failures` come from the sidecar."""
    keys = RolloutKeys()
    for number, (task, rollout, reward) in enumerate(rows):
        keys.append(
            {"_ng_task_index": task, "_ng_rollout_index": rollout, "reward": reward}, FROM_FAILURES * (number in failures)
        )
    return keys


def test_repeats_come_in_order() -> None:
    groups = TaskGroups(keys_of((5, 1, 0.0), (3, 0, 1.0), (5, 0, 1.0), (9, 0, None)))
    assert list(groups) == [
        TaskRows(3, (1,), (), (1.0,)),
        TaskRows(5, (2, 0), (), (1.0, 0.0)),
        TaskRows(9, (3,), (), (None,)),
    ]
    assert [group.mean for group in groups] == [1.0, 0.5, None]
    assert [groups.group_of(row) for row in range(4)] == [1, 0, 1, 2]
    assert (groups.group_of_task(5), groups.group_of_task(4), groups.group_of_task(99), groups.group_of(4)) == (
        1,
        None,
        None,
        None,
    )


def test_the_newer_of_two_rows_counts() -> None:
    keys = keys_of((1, 0, 0.0), (1, 1, 0.0), (1, 0, 1.0))
    assert TaskGroups(keys)[0] == TaskRows(1, (2, 1), (0,), (1.0, 0.0))
    assert [bool(flags & SUPERSEDED) for flags in keys.flags] == [True, False, False]


def test_a_scored_rollout_counts_before_failed_attempts_whenever_they_were_found() -> None:
    keys = keys_of((1, 0, None), (1, 0, 1.0), (1, 0, None), (1, 1, None), (1, 1, None), failures=(0, 2, 3, 4))
    assert TaskGroups(keys)[0] == TaskRows(1, (1, 4), (0, 2, 3), (1.0, None))


def test_rows_without_indices_are_by_themselves() -> None:
    groups = TaskGroups(keys_of((None, 0, 1.0), (None, 0, 0.0), (2, None, 1.0), (2, None, 0.0)))
    assert [group.task for group in groups] == [None, None, 2]
    assert [group.rows for group in groups if group.task == 2] == [(2, 3)]


def test_no_rows_no_groups() -> None:
    assert list(TaskGroups(RolloutKeys())) == []


@given(
    st.lists(
        st.tuples(st.integers(-3, 3) | st.sampled_from(["a", "b", None, 10**6, -(10**12)]), st.integers(0, 2), st.booleans()),
        max_size=30,
    )
)
def test_groups_are_those_of_a_plain_count(rows: list[tuple[Any, int, bool]]) -> None:
    keys = keys_of(
        *[(task, rollout, 1.0) for task, rollout, _ in rows], failures=tuple(i for i, row in enumerate(rows) if row[2])
    )
    groups = TaskGroups(keys)
    seen: list[int] = []
    for index, group in enumerate(groups):
        seen += [*group.rows, *group.superseded]
        assert all(groups.group_of(row) == index for row in (*group.rows, *group.superseded))
        members = [row for row, (task, _, _) in enumerate(rows) if task == group.task]
        if group.task is not None:
            winners = {}
            for row in sorted(members, key=lambda row: (not rows[row][2], row)):
                winners[rows[row][1]] = row
            assert list(group.rows) == [winners[rollout] for rollout in sorted(winners)]
    assert sorted(seen) == list(range(len(rows)))
