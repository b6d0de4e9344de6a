"""The control file of a run, written by one and read by the other."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from backend.errors import GymError
from backend.io.result_paths import ResultPaths
from backend.rollouts.run_control_file import following_requests, steer_run
from tests.run_trees import read_rows


def test_a_run_on_another_host_is_asked_and_may_take_its_time(tmp_path: Path) -> None:
    paths = ResultPaths(tmp_path / "r.jsonl")
    paths.run_folder.mkdir()
    paths.run_record.write_text(json.dumps({"state": "running", "host": "elsewhere.example", "pid": 1, "started_at": 1.0}))
    outcome = steer_run(paths, "drain", wait_seconds=0.1)
    assert (outcome.acknowledged, outcome.ended) == (False, False)
    (line,) = read_rows(paths.control)
    assert line["action"] == "drain" and line["by"] == outcome.by and abs(line["t"] - time.time()) < 5
    with pytest.raises(GymError, match="no run is writing"):
        steer_run(ResultPaths(tmp_path / "other.jsonl"), "drain")


async def test_requests_are_heard_in_order_and_garbage_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "control"
    path.write_text('{"action": "cancel"}\n')
    heard: list[tuple[str, str]] = []
    async with following_requests(path, lambda action, by: heard.append((action, by))):
        assert not path.exists()
        await asyncio.sleep(0)
        path.write_text('not JSON\n["a list"]\n{"action": "drain", "by": "me"}\n{"action": 5}\n{"action": "canc')
        async with asyncio.timeout(5):
            while len(heard) < 2:
                await asyncio.sleep(0.02)
        with open(path, "a") as file:
            file.write('el", "by": "you"}\n')
        async with asyncio.timeout(5):
            while len(heard) < 3:
                await asyncio.sleep(0.02)
    assert heard == [("drain", "me"), ("5", "somebody"), ("cancel", "you")]
    assert not path.exists()


async def test_a_folder_in_the_place_of_the_control_file_harms_nobody(tmp_path: Path) -> None:
    (tmp_path / "control").mkdir()
    heard: list[str] = []
    async with following_requests(tmp_path / "control", lambda action, by: heard.append(action)):
        await asyncio.sleep(0.01)
    assert heard == []
