from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from backend.cli.tables import table
from backend.io.text import cell_width

ROWS = [
    ("math_with_judge", "benchmark", "", "Short answers that a judge looks at"),
    ("aime24", "benchmark", "", "Olympiad"),
]
HEADERS = ("Name", "Kind", "Stage", "Description")


def test_natural_width() -> None:
    assert table(HEADERS, ROWS).splitlines() == [
        "Name             Kind       Stage  Description",
        "math_with_judge  benchmark         Short answers that a judge looks at",
        "aime24           benchmark         Olympiad",
    ]
    assert table(HEADERS, ROWS, width=70) == table(HEADERS, ROWS)


def test_a_narrow_one_leaves_out_what_says_nothing_and_shortens_the_last_column() -> None:
    assert table(HEADERS, ROWS, width=40).splitlines() == [
        "Name             Description",
        "math_with_judge  Short answers that a j…",
        "aime24           Olympiad",
    ]


def test_a_very_narrow_one_wraps_the_others() -> None:
    assert table(HEADERS, ROWS, width=22).splitlines() == [
        "Name        Descripti…",
        "math_with_  Short ans…",
        "judge",
        "aime24      Olympiad",
    ]


def test_one_row_keeps_its_cells() -> None:
    assert table(HEADERS, ROWS[:1], width=50).splitlines() == [
        "Name             Kind       Description",
        "math_with_judge  benchmark  Short answers that a …",
    ]


def test_wide_characters_and_controls() -> None:
    assert table(("A", "B"), [("漢字\n漢字", "x\x1b[2J" + "y" * 20)], width=20).splitlines() == [
        "A          B",
        "漢字 漢字  x [2Jyyy…",
    ]


CELLS = st.text(alphabet="ab_/ 漢é", max_size=25)


@given(rows=st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=4), width=st.integers(20, 60))
def test_lines_fit_and_nothing_but_the_last_column_is_lost(rows: list[tuple[str, str, str]], width: int) -> None:
    lines = table(("One", "Two", "Three"), rows, width=width).splitlines()
    assert all(cell_width(line) <= width for line in lines)
    letters = "".join(lines[1:])
    for row in rows:
        assert all(char in letters for char in row[0] if char != " ")
