"""Names of result files, search roots, homes, whole-file writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backend.errors import GymError
from backend.io.files import make_folder, write_atomically
from backend.io.homes import cache_home, usable
from backend.io.result_paths import ResultPaths, failures_path_for
from backend.io.roots import INSTALL_ROOT, resolve_path, search_roots


@pytest.mark.parametrize(
    ("output", "materialized", "failures", "metrics"),
    [
        ("x/y.jsonl", "x/y_materialized_inputs.jsonl", "x/y_failures.jsonl", "x/y_aggregate_metrics.json"),
        ("x/y.json", "x/y_materialized_inputs.jsonl", "x/y_failures.jsonl", "x/y_aggregate_metrics.json"),
        ("a.b.jsonl", "a.b_materialized_inputs.jsonl", "a.b_failures.jsonl", "a.b_aggregate_metrics.json"),
        ("out", "out_materialized_inputs.jsonl", "out_failures.jsonl", "out_aggregate_metrics.json"),
    ],
)
def test_result_names(output: str, materialized: str, failures: str, metrics: str) -> None:
    paths = ResultPaths(Path(output))
    assert str(paths.materialized_inputs) == materialized
    assert str(paths.failures) == str(failures_path_for(Path(output))) == failures
    assert str(paths.aggregate_metrics) == metrics


def test_the_run_folder_and_the_prepared_data() -> None:
    paths = ResultPaths(Path("results/r.jsonl"))
    assert str(paths.run_folder) == "results/r_run"
    assert str(paths.events) == "results/r_run/events.ndjson"
    assert str(paths.prepared_dataset("benchmark")) == "results/r/preprocessed_datasets/benchmark.jsonl"


def test_roots_are_ordered_and_unique(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, here = (tmp_path / name for name in ("first", "second", "here"))
    for folder in (first, second, here):
        folder.mkdir()
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", os.pathsep.join(["", str(second), str(first)]))
    assert search_roots([first], here) == (first, second, here, INSTALL_ROOT)


def test_a_path_is_read_below_the_first_root_that_has_it(tmp_path: Path) -> None:
    roots = [tmp_path / "a", tmp_path / "b"]
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "file").write_text("x")
    assert resolve_path("file", roots) == tmp_path / "b" / "file"
    assert resolve_path("nothing", roots) == tmp_path / "a" / "nothing"
    assert resolve_path(tmp_path / "elsewhere", roots) == tmp_path / "elsewhere"


def test_a_home_of_a_user_that_there_is_not_is_a_plain_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYM_TUI_HOME", "~nobody-of-this-name/gym")
    assert cache_home("x") == Path("~nobody-of-this-name/gym/cache/x")


def test_homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path))
    assert cache_home("catalog") == tmp_path / "cache" / "catalog"
    monkeypatch.delenv("GYM_TUI_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_home() == tmp_path / "xdg" / "gym-tui"
    (tmp_path / "file").write_text("")
    assert usable(tmp_path / "file" / "below") is None


def test_an_atomic_write_replaces_and_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "metrics.json"
    write_atomically(target, b"old")
    write_atomically(target, b"new")
    assert target.read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.json"]
    with pytest.raises(GymError, match="cannot create the folder"):
        write_atomically(target / "below" / "x", b"")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(GymError, match="cannot create the folder"):
        make_folder(tmp_path / "file" / "below")
    assert make_folder(tmp_path / "a" / "b").is_dir()
