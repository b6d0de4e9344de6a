"""Numbers for rows of several growing files, and the cache of what was read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.rollouts.rollout_order import BoundedCache, RowOrder


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), max_size=20))
def test_rows_keep_their_numbers_while_files_grow(steps: list[tuple[int, int]]) -> None:
    order, expected, counts = RowOrder(), [], [0, 0]
    for source, more in steps:
        expected += [(source, counts[source] + number) for number in range(more)]
        counts[source] += more
        order.grow(source, counts[source])
        assert [order.locate(row)[:2] for row in range(len(order))] == expected
    for row in range(len(order)):
        source, own, after, before = order.locate(row)
        assert expected[row - before : row + after + 1] == [(source, own + step) for step in range(-before, after + 1)]


def test_rows_that_are_not_there_are_errors() -> None:
    order = RowOrder()
    order.grow(0, 2)
    for row in (-1, 2):
        with pytest.raises(IndexError):
            order.locate(row)


def test_the_cache_drops_what_was_used_longest_ago() -> None:
    cache: BoundedCache[str] = BoundedCache(entries=3, weight=10)
    for row in range(3):
        cache.put(row, 5, f"row {row}", 3)
    assert cache.get(0, 5) == "row 0"
    cache.put(3, 5, "row 3", 3)
    assert [cache.get(row, 5) for row in range(4)] == ["row 0", None, "row 2", "row 3"]
    cache.put(4, 5, "heavy", 8)
    assert [cache.get(row, 5) for row in range(5)] == [None, None, None, None, "heavy"]
    cache.put(5, 5, "heavier than all", 99)
    assert cache.get(5, 5) == "heavier than all"


def test_a_row_that_has_grown_is_read_again() -> None:
    cache: BoundedCache[str] = BoundedCache(entries=3, weight=10)
    cache.put(0, 5, "short", 1)
    assert cache.get(0, 6) is None
