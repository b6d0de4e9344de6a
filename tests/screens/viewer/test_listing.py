"""What the list of the viewer shows, and the way through it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backend.rollouts.rollout_file import RolloutFile
from backend.rollouts.rollout_query import Sort, parse_query
from screens.viewer.listing import PROBLEMS, Listing, RolloutListing, TaskListing, find_problem, order_tasks, step
from screens.widgets.virtual_list import Cell
from tests.rollout_samples import write_samples


@pytest.fixture
def file(tmp_path: Path) -> RolloutFile:
    file = RolloutFile(write_samples(tmp_path))
    while not (file.extend(1) and file.scan_keys(1)):
        pass
    return file


def tasks(file: RolloutFile, query: str = "", sort: Sort | None = None) -> TaskListing:
    groups = file.tasks()
    rows = file.rows_matching(parse_query(query)) if query else None
    return TaskListing(file, groups, order_tasks(groups, file.keys, rows, sort, lambda row: file.place(row).size, lambda: False))


def shown(listing: Listing) -> list[tuple[str, ...]]:
    rows = (listing.row(index) for index in range(len(listing)))
    return [(row.sign, *(cell.text if isinstance(cell, Cell) else cell for cell in row.cells)) for row in rows]


def test_one_line_per_task(file: RolloutFile) -> None:
    assert shown(tasks(file)) == [
        ("", "0", " ■ □ ▒ ✗ ", "0.500"),
        ("", "1", " □ ■ ", "0.500"),
        ("", "2", " □ ■ ", "0.500"),
        ("", "3", " ■ ", "1.000"),
        ("!", "", "row 9 unreadable", ""),
        ("", "4", " ■ ■ ", "1.000"),
        ("", "5", " · ✗ ", "—"),
    ]


def test_the_present_repeat_is_in_brackets(file: RolloutFile) -> None:
    listing = tasks(file)
    listing.current = 1
    assert shown(listing)[0] == ("", "0", " ■[□]▒ ✗ ", "0.500")


def test_one_line_per_rollout_in_file_order(file: RolloutFile) -> None:
    lines = shown(RolloutListing(file, range(len(file))))
    assert len(lines) == 14
    assert lines[0] == ("", "0", "0", "1.000", "282", "stop")
    assert lines[5][4:] == ("267", "length")
    assert lines[8] == ("!", "row 9", "", "", "", "bad row")
    assert lines[12] == ("✗", "0", "3", "✗", "—", "timeout_exceeded")


def test_rows_that_are_not_scanned_yet_have_their_place(tmp_path: Path) -> None:
    file = RolloutFile(write_samples(tmp_path))
    file.extend(1)
    assert shown(RolloutListing(file, range(3))) == [("", "…", "", "", "", f"line {line}") for line in (1, 2, 3)]


@pytest.mark.parametrize(
    ("query", "sort", "expected"),
    [
        ("reward<1", None, ["0", "1", "2"]),
        ("fail:timeout", None, ["0"]),
        ("is:unreadable", None, [""]),
        ("", Sort("reward"), ["0", "1", "2", "3", "4", "", "5"]),
        ("", Sort("reward", True), ["3", "4", "0", "1", "2", "", "5"]),
        ("", Sort("file", True), ["5", "4", "", "3", "2", "1", "0"]),
        ("reward=1", Sort("task", True), ["4", "3", "2", "1", "0"]),
        ("task:0..2", Sort("tokens", True), ["2", "0", "1"]),
        ("task:3,4", Sort("size", True), ["3", "4"]),
    ],
)
def test_filters_and_orders(file: RolloutFile, query: str, sort: Sort | None, expected: list[str]) -> None:
    assert [line[1] for line in shown(tasks(file, query, sort))] == expected


def test_a_key_finds_its_place_again(file: RolloutFile) -> None:
    listing = tasks(file, "reward<1")
    assert [listing.index_of(listing.key(index)) for index in range(3)] == [0, 1, 2]
    assert listing.index_of(12) == 0  # the failed repeat of task 0
    assert listing.index_of(9) is None
    assert listing.index_of("word") is None
    rollouts = RolloutListing(file, [5, 3])
    assert (rollouts.index_of(3), rollouts.index_of(4)) == (1, None)


def test_whether_a_row_is_listed(file: RolloutFile) -> None:
    listing = tasks(file, "reward<1")
    assert [row for row in range(-1, 20) if row in listing] == [0, 1, 2, 3, 4, 5, 6, 12]  # all repeats of these tasks
    assert "word" not in listing and None not in listing
    rollouts = RolloutListing(file, [5, 3])
    assert [row for row in range(-1, 20) if row in rollouts] == [3, 5]
    assert [row for row in range(-1, 20) if row in RolloutListing(file, range(14))] == list(range(14))


def test_the_way_goes_through_the_repeats(file: RolloutFile) -> None:
    listing = tasks(file)
    way, row = [], step(listing, None, 1)
    while row is not None:
        way.append(row)
        row = step(listing, row, 1)
    assert way == [0, 1, 2, 12, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13]
    back, row = [], 13
    while (row := step(listing, row, -1)) is not None:
        back.append(row)
    assert back == way[-2::-1]


def test_what_the_list_leaves_out_is_passed_over(file: RolloutFile) -> None:
    assert step(RolloutListing(file, [5, 3]), 5, 1) == 3
    assert step(RolloutListing(file, [5, 3]), 3, 1) is None
    assert step(RolloutListing(file, []), None, 1) is None
    assert step(RolloutListing(file, [5, 3]), 7, 1) == 5


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("failed or reward below 1", [1, 2, 12, 3, 5, 8, 11, 13]),
        ("failed", [12, 8, 13]),
        ("reward below 1", [1, 2, 3, 5]),
        ("cut off", [5]),
        ("unreadable or too big", [8]),
    ],
)
def test_problems_are_found_in_both_directions(file: RolloutFile, kind: str, rows: list[int]) -> None:
    listing, keys = tasks(file), file.keys
    found, row = [], 0
    while (row := find_problem(listing, keys, row, 1, kind, lambda: False)) is not None:
        found.append(row)
    assert found == rows
    back, row = [], None
    while (row := find_problem(listing, keys, row, -1, kind, lambda: False)) is not None:
        back.append(row)
    assert back == rows[::-1]
    assert set(PROBLEMS) >= {kind}


def test_a_long_search_for_a_problem_can_be_given_up(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps({"reward": 1.0, "_ng_task_index": task}) + "\n" for task in range(5000)))
    file = RolloutFile(path)
    file.extend(5)
    file.scan_keys(5)
    asked: list[int] = []

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) == 2

    assert find_problem(tasks(file), file.keys, 0, 1, "failed", cancelled) is None
    assert len(asked) == 2
