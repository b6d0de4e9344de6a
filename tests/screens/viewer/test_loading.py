"""What the viewer does in threads."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.errors import GymError
from backend.rollouts.rollout_query import Sort, parse_query
from screens.viewer.listing import RolloutListing, TaskListing
from screens.viewer.loading import (
    NoRolloutYet,
    OpenFile,
    Order,
    Progress,
    make_listing,
    row_of_line,
    row_of_task,
    search_all,
    search_listed,
    wait_for,
)
from screens.widgets.background import Reporter
from tests.rollout_samples import record, write_many, write_samples
from tests.run_samples import live_run


class Told(Reporter):
    """Remembers what was told; stops after so many reports."""

    def __init__(self, until: int = 1_000_000) -> None:
        self.values: list[Any] = []
        self._until = until
        super().__init__(self._take)

    def _take(self, value: Any) -> None:
        self.values.append(value)
        if len(self.values) >= self._until:
            self.cancel()


@pytest.fixture
def samples(tmp_path: Path) -> OpenFile:
    opened = OpenFile(write_samples(tmp_path))
    assert opened.read_all(Told()).complete
    return opened


def test_a_path_that_means_no_run(tmp_path: Path) -> None:
    with pytest.raises(GymError, match="there is no run"):
        OpenFile(tmp_path / "nothing.jsonl")


def test_reading_to_the_end_tells_how_far_it_is(tmp_path: Path) -> None:
    opened = OpenFile(write_many(tmp_path / "many.jsonl", 30_000))
    told = Told()
    end = opened.read_all(told)
    assert (end.rows, end.scanned, end.indexed, end.complete) == (30_000, 30_000, 1.0, True)
    first = told.values[0]
    assert first.rows > 0 and 0 < first.scanned < 30_000 and not first.complete


def test_reading_stops_when_nobody_waits(tmp_path: Path) -> None:
    opened = OpenFile(write_many(tmp_path / "many.jsonl", 30_000))
    assert not opened.read_all(Told(until=1)).complete


def test_following_tells_of_new_rows(tmp_path: Path) -> None:
    path = tmp_path / "grow.jsonl"
    path.write_text(json.dumps(record(0, 0, 1.0, [])) + "\n")
    opened = OpenFile(path)
    before = opened.read_all(Told())
    told = Told(until=1)
    thread = threading.Thread(target=opened.follow, args=(told, before))
    thread.start()
    with path.open("a") as file:
        file.write(json.dumps(record(0, 1, 0.0, [])) + '\n{"torn": ')
    thread.join(10)
    assert not thread.is_alive()
    (progress,) = told.values
    assert (progress.rows, progress.scanned, progress.torn_bytes) == (2, 2, 9)


def test_a_file_that_is_gone_keeps_its_rows(tmp_path: Path) -> None:
    path = write_samples(tmp_path)
    opened = OpenFile(path)
    opened.read_all(Told())
    path.unlink()
    progress = opened.read_on(0.1)
    assert (progress.rows, progress.gone) == (14, True)


@pytest.mark.parametrize(("line", "row"), [(1, 0), (9, 8), (12, 11), (13, None), (0, None)])
def test_the_row_of_a_line(samples: OpenFile, line: int, row: int | None) -> None:
    assert row_of_line(samples.rollouts, line) == row


def test_lines_are_counted_with_the_blank_ones(tmp_path: Path) -> None:
    path = tmp_path / "blank.jsonl"
    path.write_text('{"a": 1}\n\n\n{"a": 2}\n\n{"a": 3}\n')
    opened = OpenFile(path)
    opened.read_all(Told())
    assert [row_of_line(opened.rollouts, line) for line in range(1, 7)] == [0, None, None, 1, None, 2]


@pytest.mark.parametrize(("task", "rollout", "row"), [(0, None, 0), (0, 3, 12), (4, 1, 10), (0, 4, None), (99, None, None)])
def test_the_row_of_a_repeat(samples: OpenFile, task: int, rollout: int | None, row: int | None) -> None:
    assert row_of_task(samples.rollouts, task, rollout) == row


def test_listings(samples: OpenFile) -> None:
    progress = samples.read_on(0.1)

    def entries(order: Order) -> tuple[type, list[int], int]:
        listing = make_listing(samples.rollouts, order, progress, Told()).listing
        return type(listing), [listing.rows_at(index)[0] for index in range(len(listing))], listing.total

    assert entries(Order()) == (TaskListing, [0, 3, 5, 7, 8, 9, 11], 7)
    assert entries(Order(query=parse_query("end:length"))) == (TaskListing, [5], 7)
    assert entries(Order(by_task=False)) == (RolloutListing, list(range(14)), 14)
    assert entries(Order(by_task=False, sort=Sort("reward", True)))[1][:4] == [0, 4, 6, 7]
    assert entries(Order(by_task=False, query=parse_query("sort:-tokens"), sort=Sort("reward")))[1][:2] == [0, 1]
    assert entries(Order(by_task=False, query=parse_query('"small cases"')))[1] == [0, 1]
    assert entries(Order(query=parse_query('"small cases"'), sort=Sort("reward")))[1] == [0]


def test_a_text_is_found_round_the_end(samples: OpenFile) -> None:
    file = samples.rollouts
    assert search_all(file, "small cases", 0, 1, Told()).row == 0
    assert search_all(file, "small cases", 1, 1, Told()).row == 1
    assert search_all(file, "small cases", 2, 1, Told()).row == 0
    assert search_all(file, "small cases", 12, -1, Told()).row == 1
    assert search_all(file, "small cases", -1, -1, Told()).row == 1
    assert search_all(file, "HTTP 500", 14, 1, Told()).row == 13
    nothing = search_all(file, "no such words", 5, 1, Told())
    assert (nothing.row, nothing.looked_at) == (None, 14)


def test_progress_is_compared_by_what_it_says() -> None:
    assert Progress(0, 1, 1.0, 1, True) == Progress(0, 1, 1.0, 1, True)


def test_a_run_that_has_written_no_rollout_yet(tmp_path: Path) -> None:
    path = live_run(tmp_path, done=0)
    path.unlink()
    for meant in (path, tmp_path / "m_run", tmp_path / "m_run" / "run.json"):
        with pytest.raises(NoRolloutYet, match="no rollout yet") as early:
            OpenFile(meant)
        assert early.value.rollouts == path
    path.touch()
    assert OpenFile(path).is_run


@pytest.mark.parametrize(
    ("state", "says"), [("failed", "the run failed"), ("stopped", "the run was stopped"), ("done", "the run is done")]
)
def test_a_run_that_ended_without_a_rollout(tmp_path: Path, state: str, says: str) -> None:
    path = live_run(tmp_path, done=0, state=state)
    path.unlink()
    with pytest.raises(NoRolloutYet) as early:
        OpenFile(path)
    assert early.value.message == f"{says} without a rollout" and early.value.is_over


def test_a_file_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("screens.viewer.loading.FOLLOW_EVERY", 0.01)
    path, told = tmp_path / "m.jsonl", Told()
    thread = threading.Thread(target=wait_for, args=(path, told))
    thread.start()
    path.touch()
    thread.join(10)
    assert not thread.is_alive()
    told.cancel()
    wait_for(tmp_path / "never", told)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    listed=st.lists(st.integers(0, 13), unique=True),
    start=st.integers(-1, 14),
    direction=st.sampled_from([1, -1]),
    pattern=st.sampled_from(["small cases", "Easy", "expected_answer", "no such words"]),
)
def test_only_rows_that_are_listed_are_found(
    samples: OpenFile, listed: list[int], start: int, direction: int, pattern: str
) -> None:
    file = samples.rollouts
    way = [(start + direction * step) % 14 for step in range(14)]
    expected = next((row for row in way if row in listed and pattern.lower().encode() in file.raw(row).lower()), None)
    if pattern == "Easy":
        assert all(b"Easy" in file.raw(row) for row in (9, 10))
    assert search_listed(file, RolloutListing(file, listed), pattern, start, direction, Told()).row == expected


def test_a_search_among_what_is_listed_can_be_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("screens.viewer.loading.SLICE", 0.0)
    opened = OpenFile(write_many(tmp_path / "many.jsonl", 2000))
    opened.read_all(Told())
    told = Told(until=3)
    assert search_listed(opened.rollouts, RolloutListing(opened.rollouts, range(0, 2000, 3)), "nowhere", 0, 1, told).row is None
    assert len(told.values) == 3
