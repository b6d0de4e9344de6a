"""Rows as lines with aligned columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from screens.widgets.text_tables import table


def test_tables_are_aligned_by_cells() -> None:
    assert table([["a", "1", "x"], ["日本", "20", "y [/red]\x1b"]], frozenset({1})) == "a      1  x\n日本  20  y [/red]␛"
    assert table([]) == ""


@given(st.lists(st.lists(st.text(max_size=50), min_size=2, max_size=3), max_size=5))
def test_tables_have_a_line_per_row(rows: list[list[str]]) -> None:
    text = table(rows)
    assert len(text.split("\n")) == max(1, len(rows))
    assert all(cell_len(line) >= 0 for line in text.split("\n"))
