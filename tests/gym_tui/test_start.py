"""Which screen shows what; wrong names are answered with the nearest right one."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from backend.errors import GymError, UsageError
from gym_tui.start import first_view, known_screen, known_theme


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run `out.jsonl`."""
    (tmp_path / "out.jsonl").write_text('{"reward": 1.0}\n')
    folder = tmp_path / "out_run"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"state": "done", "output": "out.jsonl"}))
    (folder / "events.ndjson").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "screen"),
    [
        ("", "results"),
        ("out.jsonl", "viewer"),
        ("out_run", "rollouts"),
        ("out_run/run.json", "rollouts"),
        ("out_run/events.ndjson", "rollouts"),
    ],
)
def test_each_kind_of_path_has_its_screen(run: Path, name: str, screen: str) -> None:
    shown, target = first_view(run / name)
    assert (shown, target.path) == (screen, run / name)


def test_a_file_that_is_still_written_is_followed(run: Path) -> None:
    record = {"state": "running", "output": "out.jsonl", "pid": os.getpid(), "host": socket.gethostname()}
    (run / "out_run" / "run.json").write_text(json.dumps(record))
    assert first_view(run / "out.jsonl")[0] == "rollouts"


def test_a_run_that_was_killed_is_read(run: Path) -> None:
    record = {"state": "running", "output": "out.jsonl", "pid": 2**22 + 1, "host": socket.gethostname()}
    (run / "out_run" / "run.json").write_text(json.dumps(record))
    assert first_view(run / "out.jsonl")[0] == "viewer"


@pytest.mark.parametrize("name", ["nowhere", "nowhere/at/all.jsonl", "notes.txt"])
def test_what_is_no_run_is_an_error(run: Path, name: str) -> None:
    (run / "notes.txt").write_text("x")
    with pytest.raises(GymError) as error:
        first_view(run / name)
    assert Path(name).name in str(error.value)


def test_names() -> None:
    assert known_screen("viewer").title == "Viewer"
    with pytest.raises(UsageError, match="there is no screen veiwer") as error:
        known_screen("veiwer")
    assert error.value.hint == "Did you mean `viewer`?"
    assert known_theme("a", ["a"]) == "a"
    with pytest.raises(UsageError, match="there is no theme x"):
        known_theme("x", ["a"])
