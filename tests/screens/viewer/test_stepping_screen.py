"""Steps to rollouts that are not read yet."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from screens.viewer import file_screen
from screens.viewer.loading import OpenFile, Progress
from screens.widgets.workbench import Target
from tests.rollout_samples import message, record
from tests.viewer_desk import RESTYLED, Desk, viewing
from tests.workbench import NARROW, settle

pytestmark = pytest.mark.slow
NEXT, BACK, PROBLEM = "right_square_bracket", "left_square_bracket", "right_curly_bracket"
WAITS = "rows are still being read: the step is taken as soon as the next one is known"
LAST = "this is the last rollout"


class Gate(threading.Event):
    """A file is read on beyond its first rows only when this is set."""

    first_rows = 1


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    may_go_on, real = Gate(), OpenFile.read_on

    def read_on(opened: OpenFile, seconds: float) -> Progress:
        if len(opened.rollouts.keys) >= may_go_on.first_rows:
            may_go_on.wait(60)
        return real(opened, seconds)

    for name in ("FIRST_SLICE", "SLICE", "REPORT_EVERY"):
        monkeypatch.setattr(f"screens.viewer.loading.{name}", 0.0)
    monkeypatch.setattr(OpenFile, "read_on", read_on)
    yield may_go_on
    may_go_on.set()


def write_rows(path: Path, rewards: list[float], large: int) -> Path:
    """A rollout per task; the `large` one is longer than what is read at once."""
    rows = [
        record(task, 0, reward, [message("assistant", "x" * (4 << 20) if task == large else "short")])
        for task, reward in enumerate(rewards)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


async def open_first_piece(desk: Desk, path: Path) -> None:
    desk.screen.show_target(Target(path))
    await until(desk, "0 · repeat 1")


async def until(desk: Desk, title: str) -> None:
    await settle(desk.pilot, lambda: desk.title.startswith(title), idle=False)


async def test_a_step_is_taken_when_the_next_row_is_known(tmp_path: Path, gate: Gate) -> None:
    path = write_rows(tmp_path / "m.jsonl", [1.0] * 4, large=1)
    async with viewing(tmp_path, NARROW, RESTYLED) as desk:
        await open_first_piece(desk, path)
        await desk.pilot.press(NEXT)
        await settle(desk.pilot, lambda: desk.told == [WAITS], idle=False)
        await desk.pilot.press(NEXT)
        await desk.pilot.press(NEXT)
        await desk.pilot.press(BACK)
        gate.set()
        await settle(desk.pilot)
        assert desk.title.startswith("2 · repeat 1") and desk.screen.tasks.rows.cursor == 2
        assert desk.told == [WAITS]


async def test_only_a_file_that_is_read_has_a_last_rollout(tmp_path: Path, gate: Gate) -> None:
    path = write_rows(tmp_path / "m.jsonl", [1.0] * 3, large=1)
    async with viewing(tmp_path, stall=RESTYLED) as desk:
        await open_first_piece(desk, path)
        for _ in range(5):
            await desk.pilot.press(NEXT)
        await settle(desk.pilot, lambda: WAITS in desk.told, idle=False)
        assert LAST not in desk.told
        gate.set()
        await settle(desk.pilot)
        assert (desk.title, desk.told) == ("2 · repeat 1", [WAITS, LAST])
        await desk.press(BACK)
        assert desk.title == "1 · repeat 1"
        await desk.press(BACK, BACK)
        assert (desk.title, desk.told[-1]) == ("0 · repeat 1", "this is the first rollout")


async def test_a_problem_that_is_not_read_yet_is_waited_for(tmp_path: Path, gate: Gate) -> None:
    path = write_rows(tmp_path / "m.jsonl", [1.0, 1.0, 0.0, 1.0, 0.0, 1.0], large=1)
    async with viewing(tmp_path, stall=RESTYLED) as desk:
        await open_first_piece(desk, path)
        await desk.pilot.press(PROBLEM)
        await settle(desk.pilot, lambda: desk.told == [WAITS], idle=False)
        await desk.pilot.press(PROBLEM)
        gate.set()
        await settle(desk.pilot)
        assert (desk.title, desk.told) == ("4 · repeat 1", [WAITS])
        await desk.press(PROBLEM)
        assert desk.told[-1] == "no further rollout counts as a problem (failed or reward below 1)"
        await desk.press("left_curly_bracket")
        assert desk.title == "2 · repeat 1"


async def test_whoever_goes_elsewhere_gives_the_step_up(tmp_path: Path, gate: Gate) -> None:
    path = write_rows(tmp_path / "m.jsonl", [1.0] * 4, large=2)
    gate.first_rows = 2
    async with viewing(tmp_path, stall=RESTYLED) as desk:
        await open_first_piece(desk, path)
        await desk.pilot.press(NEXT)
        await until(desk, "1")
        await desk.pilot.press(NEXT)
        await settle(desk.pilot, lambda: desk.told == [WAITS], idle=False)
        await desk.pilot.press("k")
        await until(desk, "0")
        gate.set()
        await settle(desk.pilot)
        assert (desk.title, len(desk.screen.tasks.rows.rows)) == ("0 · repeat 1", 4)


async def test_a_key_counts_while_the_file_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, may_open, real = write_rows(tmp_path / "m.jsonl", [1.0] * 3, large=1), threading.Event(), file_screen.open_or_miss

    def slow(wanted: Path) -> Any:
        may_open.wait(60)
        return real(wanted)

    async with viewing(tmp_path, stall=RESTYLED) as desk:
        monkeypatch.setattr(file_screen, "open_or_miss", slow)
        desk.screen.show_target(Target(path))
        await desk.pilot.press(NEXT)
        may_open.set()
        await settle(desk.pilot)
        assert desk.title == "1 · repeat 1"


async def test_repeats_are_those_so_far(tmp_path: Path, gate: Gate) -> None:
    path = write_rows(tmp_path / "m.jsonl", [1.0] * 2, large=1)
    async with viewing(tmp_path, stall=RESTYLED) as desk:
        await open_first_piece(desk, path)
        await desk.pilot.press("equals_sign")
        await settle(desk.pilot, lambda: desk.told == ["this task has one repeat so far"], idle=False)
        gate.set()
        await settle(desk.pilot)
        await desk.press("equals_sign")
        assert desk.told[-1] == "this task has one repeat"
