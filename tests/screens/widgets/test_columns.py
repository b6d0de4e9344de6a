"""Which columns fit a width, and how wide they become."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from screens.widgets.columns import GAP, Column, place

COLUMN = st.builds(
    Column,
    name=st.just("c"),
    title=st.just("C"),
    width=st.none() | st.integers(1, 30),
    least=st.integers(1, 20),
    keep=st.integers(0, 3),
)


def test_the_flexible_column_takes_what_is_left() -> None:
    columns = [Column("a", "A", 6), Column("b", "B"), Column("c", "C", 4)]
    assert [(placed.left, placed.width) for placed in place(columns, 40)] == [(2, 6), (10, 24), (36, 4)]


def test_several_flexible_columns_share() -> None:
    columns = [Column("a", "A", least=5), Column("b", "B", least=10)]
    assert [placed.width for placed in place(columns, 2 + 15 + GAP + 5, indent=2)] == [7, 13]


def test_the_least_important_column_leaves_first_and_the_last_of_equals() -> None:
    columns = [Column("a", "A", 10), Column("b", "B", 10, keep=1), Column("c", "C", 10, keep=1), Column("d", "D", 10, keep=2)]
    shown = {width: [placed.column.name for placed in place(columns, width)] for width in (48, 47, 35, 23, 11)}
    assert shown == {48: ["a", "b", "c", "d"], 47: ["a", "b", "d"], 35: ["a", "d"], 23: ["a"], 11: ["a"]}


def test_nothing_fits_nowhere() -> None:
    assert place([], 10) == []
    assert [placed.width for placed in place([Column("a", "A", 10)], 0, indent=0)] == [0]


@given(st.lists(COLUMN, max_size=8), st.integers(0, 200))
def test_columns_stay_in_order_inside_and_apart(columns: list[Column], width: int) -> None:
    placed = place(columns, width)
    indices = [entry.index for entry in placed]
    assert indices == sorted(set(indices))
    assert {index for index, column in enumerate(columns) if not column.keep} <= set(indices)
    end = 2 - GAP
    for entry in placed:
        assert entry.column is columns[entry.index]
        assert entry.left == end + GAP and entry.width >= 0
        assert entry.width == 0 or entry.left + entry.width <= max(width, 2)
        end = entry.left + entry.width
    needed = [column.least if column.width is None else column.width for column in columns]
    if columns and sum(needed) + GAP * (len(needed) - 1) + 2 <= width:
        assert len(placed) == len(columns)
        if any(column.width is None for column in columns):
            assert end == width
