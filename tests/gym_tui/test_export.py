"""Texts and pictures become new files in the working directory; nothing is overwritten, and errors are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.errors import GymError
from gym_tui.export import write_new
from tests.gym_tui.small_screens import small_workbench
from tests.workbench import settle


def test_names_are_counted_and_nothing_is_overwritten(tmp_path: Path) -> None:
    assert write_new("a", "results", ".txt", folder=tmp_path) == tmp_path / "results-1.txt"
    assert write_new("b", "results", ".txt", folder=tmp_path) == tmp_path / "results-2.txt"
    assert (tmp_path / "results-1.txt").read_text() == "a"


def test_a_given_name_is_taken_unless_it_is_there(tmp_path: Path) -> None:
    assert write_new("a", "x", ".svg", name="mine", folder=tmp_path) == tmp_path / "mine.svg"
    with pytest.raises(GymError, match="nothing is overwritten"):
        write_new("b", "x", ".svg", name="mine.svg", folder=tmp_path)
    with pytest.raises(GymError, match="cannot write"):
        write_new("b", "x", ".svg", name="missing/folder.svg", folder=tmp_path)


@pytest.mark.parametrize(
    ("stem", "name"), [("../../etc/passwd", "passwd-1.txt"), ("a b/[c]", "c-1.txt"), ("", "screen-1.txt"), (".", "screen-1.txt")]
)
def test_stems_become_harmless_names(tmp_path: Path, stem: str, name: str) -> None:
    assert write_new("a", stem, ".txt", folder=tmp_path).name == name


async def test_the_workbench_writes_text_and_picture_and_says_where(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("w")
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert "task 0" in (tmp_path / "results-1.txt").read_text()
        assert (tmp_path / "results-1.svg").read_text().startswith("<svg")
        assert [text for _, _, text in app.notices] == [
            f"wrote {tmp_path / 'results-1.txt'}",
            f"wrote {tmp_path / 'results-1.svg'}",
        ]


async def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    app.working_folder = tmp_path / "gone"
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("w")
        await settle(pilot)
        ((_, severity, text),) = app.notices
        assert severity == "error" and "cannot write" in text
