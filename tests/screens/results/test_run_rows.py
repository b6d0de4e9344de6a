"""What stands in the columns of the run list."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from backend.io.result_paths import ResultPaths
from backend.rollouts.run_entry import STATES, Headline, RunEntry
from screens.results.run_rows import COLUMNS, RunRows, shared_folder, sign_of, state_text
from screens.widgets import glyphs
from screens.widgets.columns import place
from screens.widgets.virtual_list import Cell


def run(**facts: object) -> RunEntry:
    return RunEntry(ResultPaths(Path("/r/a.jsonl")), "a", str(facts.pop("state", "done")), **facts)  # type: ignore[arg-type]


def test_states_have_words_and_signs() -> None:
    assert state_text(run(state="running", planned=200, scored=70, failed=4)) == "running 37%"
    assert state_text(run(state="running")) == "running"
    assert state_text(run(state="running", silent_for=300.0)) == "quiet 5 min"
    assert state_text(run(state="running", silent_for=30.0, planned=10, scored=0)) == "running 0%"
    assert state_text(run(problem="broken")) == "unreadable"
    assert sign_of(run(problem="broken")) == ("!", "warn")
    assert sign_of(run(state="running", silent_for=300.0)) == ("?", "warn")
    for signs in (glyphs.UNICODE, glyphs.ASCII):
        glyphs.use(signs)
        assert all(len(sign_of(run(state=state))[0]) == 1 for state in STATES)


def test_every_state_fits_its_column() -> None:
    width = COLUMNS[0].width or 0
    assert all(len(state_text(run(state=state, planned=1, scored=1))) <= width for state in STATES)
    assert len(state_text(run(state="running", silent_for=59 * 60.0))) <= width


def test_a_row_has_its_cells_in_the_order_of_the_columns() -> None:
    entry = run(
        benchmark="b",
        model="m",
        scored=70,
        failed=2,
        missing=1_000,
        started_at=1000.0,
        headline=Headline("r", 0.5, "0-1", 0.4, 0.6),
    )
    row = RunRows([entry], now=8200.0).row(0)
    texts = [cell.text if isinstance(cell, Cell) else cell for cell in row.cells]
    assert texts == ["done", "a", "b", "m", "0.500 [0.40, 0.60]", "70", "2", "1 000", "2 h"]
    assert len(row.cells) == len(COLUMNS)


def test_what_is_not_known_is_a_dash() -> None:
    row = RunRows([run(state="no record")]).row(0)
    texts = [cell.text if isinstance(cell, Cell) else cell for cell in row.cells]
    assert texts == ["no record", "a", "—", "—", "—", "—", "—", "—", "—"]


def test_rows_are_found_by_their_files() -> None:
    rows = RunRows([run()])
    assert rows.index_of(rows.key(0)) == 0
    assert rows.index_of("/other") is None and rows.index_of(3) is None


@pytest.mark.parametrize(
    ("width", "gone"),
    [
        (118, set()),
        (98, {"benchmark"}),
        (78, {"benchmark", "model", "missing"}),
        (58, {"benchmark", "model", "missing", "failed", "scored"}),
    ],
)
def test_columns_leave_in_the_order_of_their_weight(width: int, gone: set[str]) -> None:
    shown = {placed.column.name for placed in place(COLUMNS, width)}
    assert {column.name for column in COLUMNS} - shown == gone


@pytest.mark.parametrize(
    ("names", "folder"),
    [
        ([], ""),
        (["a"], ""),
        (["a", "b"], ""),
        (["results/a", "results/b"], "results/"),
        (["results/deep/a", "results/deep/b"], "results/deep/"),
        (["results/a", "results/deep/b"], ""),
        (["results/a", "b"], ""),
    ],
)
def test_the_folder_of_all_runs(names: list[str], folder: str) -> None:
    assert shared_folder([replace(run(), name=name) for name in names]) == folder


def test_names_stand_without_the_folder_of_all_and_stay_lit() -> None:
    rows = RunRows([replace(run(), name="results/first")], words=("res", "ir"), folder="results/")
    name = rows.row(0).cells[1]
    assert isinstance(name, Cell) and (name.text, name.lit) == ("first", (1, 2))
