"""How the viewer opens what is there, and what is not there yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from screens.widgets.pane import PaneState
from tests.rollout_samples import message, record, write_samples
from tests.run_samples import live_run
from tests.viewer_desk import RESTYLED, viewing
from tests.workbench import NARROW, WIDE, settle

pytestmark = pytest.mark.slow


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    return write_samples(tmp_path)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_a_run_without_rollouts_is_empty_until_there_are_some(
    tmp_path: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("screens.viewer.loading.FOLLOW_EVERY", 0.05)
    path = live_run(tmp_path, done=0)
    path.unlink()
    async with viewing(path, size, RESTYLED) as desk:
        assert desk.pane("tasks").state is desk.pane("conversation").state is PaneState.EMPTY
        assert "no rollout yet" in desk.text and "4 follows the run live" in desk.text
        assert "cannot read" not in desk.text
        await desk.press("ctrl+r", "g", "s", "ctrl+f", "right_square_bracket")
        desk.app.open_screen("results")
        await settle(desk.pilot)
        desk.app.open_screen("viewer")
        await settle(desk.pilot)
        path.write_text(json.dumps(record(0, 0, 1.0, [message("assistant", "first!")])) + "\n")
        await settle(desk.pilot, lambda: "0 · repeat 1" in desk.title)
        assert "1 rollout" in desk.text


async def test_a_run_with_failed_attempts_only_says_so(tmp_path: Path) -> None:
    path = live_run(tmp_path, done=0)
    path.unlink()
    (tmp_path / "m_failures.jsonl").write_text("{}\n")
    async with viewing(path) as desk:
        assert "no rollout yet, only failed attempts" in desk.pane("tasks").message_text


async def test_a_run_that_failed_before_its_first_rollout_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("screens.viewer.loading.FOLLOW_EVERY", 0.05)
    path = live_run(tmp_path, done=0, state="failed", error="the endpoint [/x] is no URL\x1b[2J")
    path.unlink()
    async with viewing(path) as desk:
        assert "the run failed without a rollout" in desk.pane("tasks").message_text
        assert "7 tells more of it" in desk.text and "follows the run live" not in desk.text
        assert "the endpoint [/x] is no URL" in desk.pane("conversation").message_text
        path.write_text(json.dumps(record(0, 0, 1.0, [message("assistant", "resumed!")])) + "\n")
        await settle(desk.pilot, lambda: "0 · repeat 1" in desk.title)


async def test_a_rollout_that_is_asked_for_is_shown_when_it_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("screens.viewer.loading.FOLLOW_EVERY", 0.05)
    path = live_run(tmp_path, done=0)
    path.unlink()
    async with viewing(tmp_path) as desk:
        await desk.open(path, task=1, rollout=0)
        path.write_text("".join(json.dumps(record(task, 0, 1.0, [])) + "\n" for task in range(3)))
        await settle(desk.pilot, lambda: desk.title == "1 · repeat 1")
        assert not desk.pane("conversation").message_text


async def test_rules_of_other_screens_do_not_reach_the_panes(samples: Path) -> None:
    async with viewing(samples, stall=RESTYLED) as desk:
        widths = [desk.pane(name).outer_size.width for name in ("tasks", "conversation", "reward")]
        assert widths == [40, 48, 32]
        for name in ("rollouts", "results", "config", "catalog", "viewer"):
            desk.app.open_screen(name)
            await settle(desk.pilot)
        assert [desk.pane(name).outer_size.width for name in ("tasks", "conversation", "reward")] == widths
