"""The list of the viewer leads: what is on show is one of its rows, whatever filters and searches do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rollout_samples import write_many, write_samples
from tests.viewer_desk import RESTYLED, viewing
from tests.workbench import NARROW, WIDE, lines, settle

pytestmark = pytest.mark.slow


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    return write_samples(tmp_path)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("grouped", [True, False], ids=["tasks", "rollouts"])
async def test_what_is_on_show_follows_the_list(samples: Path, size: tuple[int, int], grouped: bool) -> None:
    async with viewing(samples, size, RESTYLED) as desk:
        await desk.press(*(() if grouped else ("g",)), "slash")
        await desk.write("task:3")
        assert (desk.title.startswith("3"), desk.screen.tasks.rows.cursor) == (True, 0)
        await desk.press("enter")
        assert desk.screen.current_pane() is desk.pane("tasks")
        await desk.press("enter")
        assert desk.screen.current_pane() is desk.pane("conversation")
        assert "[/red]" in desk.text
        await desk.press("y", "y")
        assert "task 3, repeat 1, reward 1.000, m.jsonl:8" in desk.copied[-1][0]
        await desk.press("d")
        assert desk.told[-1] == "this task has no other repeat to compare with"
        await desk.press("escape")  # the filter goes, what is on show stays
        assert len(desk.screen.tasks.rows.rows) == (7 if grouped else 14)
        assert desk.title.startswith("3") and desk.screen.tasks.rows.cursor == (3 if grouped else 7)


async def test_a_filter_with_an_order_begins_at_its_first_row(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.press("j", "j", "j")
        assert desk.title.startswith("3")
        await desk.press("slash")
        await desk.write("reward<0.2 sort:-task", "enter")
        assert desk.screen.tasks.rows.cursor == 0 and "▸      2" in desk.text
        assert desk.title == "2 · repeat 1 of 2"
        assert "m.jsonl:6" in desk.text  # the side panes as well
        await desk.press("g")
        assert desk.title == "2 · repeat 1 of 2" and desk.screen.tasks.rows.cursor == 0
        await desk.press("escape", "escape", "slash")
        await desk.write("zzz")
        assert desk.title == "2 · repeat 1 of 2" and "nothing matches" in desk.text
        await desk.press("ctrl+r")
        assert "0 of 13 rollouts" in desk.text and desk.title == "2 · repeat 1 of 2"


async def test_single_rollouts_of_a_filter_begin_at_the_same_task(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.press("slash")
        await desk.write("reward<1", "enter", "j")
        assert desk.title == "1 · repeat 1 of 2"
        await desk.press("equals_sign")
        assert desk.title == "1 · repeat 2 of 2"  # reward 1, shown because its task is listed
        await desk.press("g")
        assert desk.title == "1 · repeat 1 of 2" and "▸      1    0" in desk.text
        await desk.press("equals_sign")
        assert desk.told[-1] == "the filter hides the other repeats of this task"
        await desk.press("k", "equals_sign")
        titles = {desk.title}
        for _ in range(3):
            await desk.press("equals_sign")
            titles.add(desk.title)
        assert titles == {"0 · repeat 2 of 4", "0 · repeat 3 of 4"}  # the first has reward 1, the last none


async def test_a_place_that_is_asked_for_lifts_the_filter_that_hides_it(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.press("slash")
        await desk.write("task:3", "enter")
        assert desk.screen.go_to("8")
        await settle(desk.pilot)
        assert "1 of 6 tasks" in desk.text and not desk.told
        assert desk.screen.go_to("11")
        await settle(desk.pilot)
        assert desk.title == "4 · repeat 2 of 2" and desk.screen.tasks.rows.cursor == 5
        assert desk.told == ["the filter hides this rollout and is lifted"]
        assert "6 tasks · 1 unreadable" in desk.text and desk.screen.tasks.box.value == ""
        await desk.press("tab", "tab", "tab", "tab", "slash")
        await desk.write("task:3", "enter")
        assert desk.title.startswith("3")
        await desk.open(samples.with_name("m_failures.jsonl"), task=5, rollout=1)
        assert desk.title == "5 · repeat 2 of 2"
        assert len(desk.told) == 2


@pytest.mark.parametrize("grouped", [True, False], ids=["tasks", "rollouts"])
async def test_hits_are_looked_for_among_what_is_listed(samples: Path, grouped: bool) -> None:
    async with viewing(samples) as desk:
        await desk.press(*(() if grouped else ("g",)), "slash")
        await desk.write("task:0,2", "enter", "ctrl+f")
        assert "search in listed rollouts" in desk.text
        await desk.write("expected_answer", "enter")
        seen = [desk.title]
        for _ in range(5):
            await desk.press("n")
            seen.append(desk.title)
            assert desk.screen._row in desk.screen.tasks.listing  # type: ignore[operator]
            assert desk.screen._row in desk.screen.tasks.listing.rows_at(desk.screen.tasks.rows.cursor)  # type: ignore[union-attr]
        assert seen == [
            *(f"0 · repeat {number} of 4" for number in (1, 2, 3)), "2 · repeat 1 of 2", "2 · repeat 2 of 2", "0 · repeat 1 of 4",
        ]  # fmt: skip
        await desk.press("N")
        assert desk.title == "2 · repeat 2 of 2"
        await desk.press("escape", "ctrl+f")
        await desk.write("Easy.", "enter")
        assert f"not found in the {'tasks listed: 2' if grouped else 'rollouts listed: 6'}" in desk.text
        await desk.press("escape", "escape", "ctrl+f")
        await desk.write("Easy.", "enter")
        assert desk.title == "4 · repeat 1 of 2"


async def test_hits_in_a_narrow_terminal_stay_in_the_list(samples: Path) -> None:
    async with viewing(samples, NARROW, RESTYLED) as desk:
        await desk.press("slash")
        await desk.write("task:2", "enter", "ctrl+f")
        await desk.write("expected_answer", "enter")
        assert desk.title == "2 · repeat 1 of 2 · reward 0.000"
        await desk.press("n")
        await desk.press("n")
        assert desk.title == "2 · repeat 1 of 2 · reward 0.000"


async def test_the_border_of_a_long_list_keeps_count_and_order(tmp_path: Path) -> None:
    path = write_many(tmp_path / "hugging_face_rollouts.jsonl", 12_000, repeats=1, size=700)
    async with viewing(path) as desk:
        await desk.press("slash")
        await desk.write("task:1000.. sort:-size", "enter")
        top = lines(desk.app)[1]
        assert "11 000 of 12 000 tasks by size" in top and "hugg" not in top
        await desk.press("g")
        assert "11 000 of 12 000 rollouts by size" in lines(desk.app)[1]
        await desk.press("z")
        top = lines(desk.app)[1]
        assert "hugging_face_rollouts.jsonl" in top and "11 000 of 12 000 rollouts by size" in top


async def test_repeats_are_known_when_single_rollouts_are_listed_from_the_beginning(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.press("g", "ctrl+r")
        assert "13 rollouts · 1 !" in desk.text and desk.title == "0 · repeat 1 of 4"
        await desk.press("equals_sign", "d")
        assert "(diff of repeat 2 and repeat 1 of task 0)" in desk.text
