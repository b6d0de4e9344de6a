"""The search beside the loop: what is told meanwhile, what a path means, and that it ends when asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from backend.errors import GymError
from backend.rollouts.run_list import RunCache
from screens.results import finding
from screens.results.finding import Batch, Found, look_again, run_key, search
from screens.widgets.background import Reporter
from tests.run_folders import write_run


def reporter(told: list[Any] | None = None) -> Reporter:
    return Reporter((told if told is not None else []).append)


def test_a_folder_is_searched_and_batches_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        write_run(tmp_path / f"f{number}" / "m.jsonl")
    monkeypatch.setattr(finding, "BATCH_SECONDS", 0.0)
    monkeypatch.setattr(finding, "_BATCH_SECONDS_PER_RUN", 0.0)
    told: list[Any] = []
    found = search(tmp_path, tmp_path, RunCache(), 0.0, reporter(told))
    assert [run.name for run in found.runs] == [f"f{number}/m" for number in range(5)]
    assert found.folder == tmp_path and found.wanted is None and found.folders == 6
    assert all(isinstance(batch, Batch) for batch in told)
    assert [run for batch in told for run in batch.runs] == list(found.runs)[: sum(len(batch.runs) for batch in told)]


def test_a_run_is_looked_for_below_the_root_or_beside_itself(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "root" / "a" / "m.jsonl")
    other = write_run(tmp_path / "else" / "m.jsonl")
    root = tmp_path / "root"
    for place in (folder, folder / "run.json", root / "a" / "m.jsonl"):
        found = search(place, root, RunCache(), 0.0, reporter())
        assert (found.folder, found.wanted) == (root, str(root / "a" / "m.jsonl"))
    found = search(other, root, RunCache(), 0.0, reporter())
    assert (found.folder, found.wanted) == (tmp_path / "else", str(tmp_path / "else" / "m.jsonl"))
    assert found.wanted in [run_key(run) for run in found.runs]


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GymError, match="cannot search"):
        search(tmp_path / "gone", tmp_path, RunCache(), 0.0, reporter())
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(GymError, match="no rollouts file"):
        search(tmp_path / "notes.txt", tmp_path, RunCache(), 0.0, reporter())


def test_a_cancelled_search_ends_at_the_next_folder(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"f{number}").mkdir()
    side = reporter()
    side.cancel()
    assert search(tmp_path, tmp_path, RunCache(), 0.0, side).folders == 1


def test_only_running_runs_are_looked_at_again(tmp_path: Path) -> None:
    running = write_run(tmp_path / "a.jsonl", [], state="running", ended_at=None, scored=None, failed=None, missing=None)
    write_run(tmp_path / "b.jsonl")
    runs = search(tmp_path, tmp_path, RunCache(), 0.0, reporter()).runs
    (running / "run.json").write_text((tmp_path / "b_run" / "run.json").read_text().replace("b.jsonl", "a.jsonl"))
    again = look_again(runs, 0.0, reporter())
    assert [(run.name, run.state) for run in again] == [("a", "done")]


def test_the_next_search_waits_for_what_the_last_one_cost_not_for_what_kept_it_waiting(tmp_path: Path) -> None:
    assert Found(tmp_path, (), 0, seconds=1.0, computing=1.0).rest_seconds == 50.0
    assert Found(tmp_path, (), 0, seconds=1.0, computing=0.01).rest_seconds == 5.0
    found = search(tmp_path, tmp_path, RunCache(), 0.0, reporter())
    assert 0.0 <= found.computing <= found.seconds + 0.001
