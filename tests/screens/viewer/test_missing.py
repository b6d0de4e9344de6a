"""Files that are lost, and files that were never there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backend.errors import GymError
from screens.viewer.loading import OpenFile, open_or_miss
from screens.viewer.missing import NoRolloutYet, NotThere
from screens.widgets.pane import PaneState
from tests.rollout_samples import message, record, write_samples
from tests.run_samples import live_run
from tests.viewer_desk import RESTYLED, Desk, viewing
from tests.workbench import NARROW, WIDE, settle

SIZES = pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("screens.viewer.loading.FOLLOW_EVERY", 0.05)


def done_run(folder: Path, stem: str, scored: int = 6) -> Path:
    """A run that has ended, with a failures file that was never written to."""
    path = live_run(folder, scored, scored, state="done", stem=stem, scored=scored, failed=0)
    path.with_name(f"{stem}_failures.jsonl").touch()
    return path


@pytest.mark.parametrize(
    ("state", "scored", "failures", "says", "lost"),
    [
        ("done", 6, "", "the run is done without a rollout", True),
        ("done", 0, "", "the run is done without a rollout", False),
        ("done", 0, "{}\n", "the run is done without a rollout, only failed attempts", False),
        ("running", 0, "", "no rollout yet", False),
    ],
)
def test_what_is_known_of_a_run_without_its_file(
    tmp_path: Path, state: str, scored: int, failures: str, says: str, lost: bool
) -> None:
    path = live_run(tmp_path, scored, state=state, scored=scored, failed=0)
    path.unlink()
    path.with_name("m_failures.jsonl").write_text(failures)
    early = open_or_miss(path)
    assert isinstance(early, NoRolloutYet)
    assert (early.message, early.is_lost, early.rollouts) == (says, lost, path)
    if lost:
        assert early.what_was == "the run is done; it had written 6 rollouts"


def test_a_path_is_a_file_or_nothing_or_a_folder_or_cannot_be_opened(tmp_path: Path) -> None:
    assert isinstance(open_or_miss(write_samples(tmp_path)), OpenFile)
    nothing = open_or_miss(tmp_path / "nothing.jsonl")
    assert isinstance(nothing, NotThere) and nothing.awaited == tmp_path / "nothing.jsonl"
    assert open_or_miss(tmp_path) is None
    (tmp_path / "notes.txt").touch()
    with pytest.raises(GymError, match="is no rollouts file"):
        open_or_miss(tmp_path / "notes.txt")


def nothing_is_said_of_a_file(desk: Desk) -> bool:
    """Whether no border and no side pane tells of one."""
    tasks, conversation = desk.pane("tasks"), desk.pane("conversation")
    borders = [(pane.heading, pane.right, str(pane.border_subtitle or "")) for pane in (tasks, conversation)]
    side = [desk.screen.side.query(f"#{name}-text").first().blocks[0].body for name in ("reward", "facts")]  # type: ignore[attr-defined]
    return (borders, side) == ([("Rollouts", "", ""), ("Rollout", "", "")], ["", ""])


@pytest.mark.slow
@SIZES
async def test_a_lost_file_is_named_and_nothing_stays_of_the_one_before(tmp_path: Path, size: tuple[int, int]) -> None:
    before, lost = done_run(tmp_path, "r5"), done_run(tmp_path, "r6")
    rows = lost.read_bytes()
    lost.unlink()
    async with viewing(before, size, RESTYLED) as desk:
        assert desk.title.startswith("0 · repeat 1") and desk.pane("tasks").heading == "r5.jsonl"
        await desk.open(lost)
        assert desk.pane("tasks").state is PaneState.FAILED
        said = desk.pane("tasks").message_text
        assert "the file r6.jsonl is gone" in said and "the run is done; it had written 6 rollouts" in said
        assert "ctrl+r looks again" in said and "ctrl+r looks again" in desk.pane("conversation").message_text
        assert "failed attempts" not in desk.text and "r5" not in desk.text
        assert nothing_is_said_of_a_file(desk)
        await desk.press("right_square_bracket", "right_curly_bracket")
        assert desk.told[-2:] == ["no rollout is on show"] * 2
        lost.write_bytes(rows)
        await settle(desk.pilot, lambda: desk.title.startswith("0 · repeat 1"))
        assert desk.pane("tasks").heading == "r6.jsonl" and desk.pane("tasks").state is PaneState.READY


@pytest.mark.slow
@SIZES
async def test_a_file_that_is_taken_away_while_it_is_open(tmp_path: Path, size: tuple[int, int]) -> None:
    path = write_samples(tmp_path)
    rows = path.read_bytes()
    async with viewing(path, size, RESTYLED) as desk:
        await desk.press("right_square_bracket", "right_square_bracket")
        assert desk.title.startswith("0 · repeat 3 of 4")
        path.unlink()
        await desk.press("ctrl+r")
        for name in ("tasks", "conversation"):
            said = desk.pane(name).message_text
            assert "the file m.jsonl is gone" in said and "it is opened when it is back; ctrl+r looks again" in said
        assert "there is no run" not in desk.text
        assert nothing_is_said_of_a_file(desk)
        desk.app.open_screen("results")
        await settle(desk.pilot)
        desk.app.open_screen("viewer")
        await settle(desk.pilot)
        path.write_bytes(rows)
        await settle(desk.pilot, lambda: desk.title.startswith("0 · repeat 3 of 4"))  # the place it was at


@pytest.mark.slow
async def test_the_retry_key_is_the_one_that_is_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("screens.viewer.loading.FOLLOW_EVERY", 600)
    async with viewing(tmp_path) as desk:
        desk.app.set_keymap({"viewer.reload": "f5"})
        await desk.open(tmp_path / "later.jsonl")
        assert "it is opened when it is there; f5 looks again" in desk.pane("tasks").message_text
        write_samples(tmp_path, "later.jsonl")
        await desk.press("f5")
        assert desk.title == "0 · repeat 1 of 4"


@pytest.mark.slow
async def test_a_path_where_nothing_was_is_opened_when_there_is_something(tmp_path: Path) -> None:
    async with viewing(tmp_path) as desk:
        path = tmp_path / "later.jsonl"
        await desk.open(path)
        assert "there is no run later.jsonl" in desk.pane("tasks").message_text.replace(f"{tmp_path}/", "")
        path.write_text(json.dumps(record(0, 0, 1.0, [message("assistant", "here!")])) + "\n")
        await settle(desk.pilot, lambda: "here!" in desk.text)


@pytest.mark.slow
async def test_a_page_that_cannot_be_read_leaves_nothing_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with viewing(write_samples(tmp_path)) as desk:
        monkeypatch.setattr("screens.viewer.reading_screen.read_page", lambda _file, row: 1 / 0)
        await desk.press("j")
        assert desk.title == "Rollout" and "extracted_answer" not in desk.text
        monkeypatch.undo()
        await desk.press("ctrl+r")
        assert desk.title == "1 · repeat 1 of 2"
