"""The record in the user's pager."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.app import App

from backend.errors import GymError
from backend.rollouts.rollout_file import RolloutFile
from screens.viewer import pager
from screens.viewer.pager import run_pager, write_record
from screens.widgets.background import Reporter
from tests.rollout_samples import record, write_samples


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RolloutFile:
    monkeypatch.setattr(pager.tempfile, "tempdir", str(tmp_path))
    file = RolloutFile(write_samples(tmp_path))
    file.extend(1)
    return file


def written(file: RolloutFile, row: int) -> str:
    path = write_record(file, row, Reporter(lambda _value: None))
    assert path.suffix == ".json"
    return path.read_text("utf-8")


def test_the_whole_record_without_anything_that_drives_a_terminal(file: RolloutFile) -> None:
    text = written(file, 7)
    assert json.loads(text)["_ng_task_index"] == 3
    assert not set(text) & {"\x1b", "\x9b", "\u202e"}
    assert written(file, 8).startswith('{"reward": 1.0')


def test_a_record_that_is_too_big_to_be_shown_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pager.tempfile, "tempdir", str(tmp_path))
    path = tmp_path / "big.jsonl"
    path.write_text(json.dumps(record(0, 0, 1.0, [{"content": "x" * (9 << 20)}])) + "\n")
    big = RolloutFile(path)
    big.extend(5)
    assert len(written(big, 0)) > 9 << 20


async def test_a_terminal_that_cannot_be_handed_over_is_told_and_nothing_stays_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER", "cat")
    path = tmp_path / "record.json"
    path.write_text("{}")
    app: App[object] = App()
    async with app.run_test():
        with pytest.raises(GymError, match="cannot be handed"):
            run_pager(app, path)
    assert not path.exists()
