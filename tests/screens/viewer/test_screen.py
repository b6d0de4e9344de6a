"""The viewer as somebody uses it, over real files."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from gym_tui.app import WorkbenchApp
from screens.viewer.reading_screen import ReadingScreen
from screens.viewer.screen import ViewerScreen
from screens.viewer.task_pane import TaskList
from screens.widgets.filter_box import FilterBox
from screens.widgets.pane import Pane, PaneState
from screens.widgets.workbench import Target
from tests.rollout_samples import HOSTILE, message, record, tool_call, write_many, write_samples
from tests.run_samples import live_run
from tests.workbench import LONGEST_STALL, NARROW, WIDE, heartbeat, lines, settle, text_of, workbench

RESTYLED = 0.4
"""Longest stall where Textual styles the whole screen anew: at breakpoints, and when a screen is opened for the first time."""


class Desk:
    """A workbench with the viewer in front, and what it was asked for."""

    def __init__(self, app: WorkbenchApp, pilot: Pilot[Any]) -> None:
        self.app, self.pilot = app, pilot
        self.copied: list[tuple[str, str]] = []
        self.written: list[str] = []
        app.copy_text = lambda text, what: self.copied.append((text, what))  # type: ignore[method-assign]
        app.write_text = lambda text, name: self.written.append(text)  # type: ignore[method-assign]

    @property
    def screen(self) -> ViewerScreen:
        screen = self.app.screen
        assert isinstance(screen, ViewerScreen)
        return screen

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await settle(self.pilot)

    async def write(self, text: str, *keys: str) -> None:
        """Write into the box that has the focus."""
        box = self.app.focused
        assert isinstance(box, FilterBox)
        box.value += text
        await settle(self.pilot)
        if keys:
            await self.press(*keys)

    async def open(self, path: Path, **where: int) -> None:
        self.screen.show_target(Target(path, **where))
        await settle(self.pilot)

    @property
    def text(self) -> str:
        return text_of(self.app)

    @property
    def told(self) -> list[str]:
        return [text for _, _, text in self.app.notices]

    @property
    def title(self) -> str:
        return self.screen.conversation.heading

    def pane(self, name: str) -> Pane:
        return self.screen.query_one(f"#{name}", Pane)


@asynccontextmanager
async def viewing(path: Path, size: tuple[int, int] = WIDE, stall: float = LONGEST_STALL) -> AsyncIterator[Desk]:
    app = workbench(path, "viewer")
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        async with heartbeat(stall):
            yield Desk(app, pilot)


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    return write_samples(tmp_path)


async def test_a_file_opens_at_its_first_rollout(samples: Path) -> None:
    async with viewing(samples) as desk:
        assert desk.title == "0 · repeat 1 of 4"
        for expected in (
            "7 tasks ─╮",
            "▸      0  [■]□ ▒ ✗               0.500",
            "!         row 9 unreadable",
            "■ 1  □ 0  ▒ between  ✗ failed",
            "▾ tool call  python (code)",
            "┃     for b in range(9) if a * b % 7 == 3)",
            "The answer is \\boxed{12}.",
            "── end: stop ─",
            "repeats     [1] 0 0.5 ✗",
            "m.jsonl:1  2.0 kB",
            "model   small-7b",
            "(reading m.jsonl — this screen starts nothing)",
            "14 rows",
        ):
            assert expected in desk.text
        assert "**period 7**" not in desk.text
        assert "case modulo count" not in desk.text  # reasoning is folded


async def test_without_a_file_the_screen_says_how_to_open_one(tmp_path: Path) -> None:
    async with viewing(tmp_path) as desk:
        assert ":open FILE" in desk.text
        assert [desk.pane(name).state for name in ("tasks", "conversation")] == [PaneState.EMPTY] * 2
        await desk.press(
            "right_square_bracket", "right_curly_bracket", "equals_sign", "d", "v", "m", "n", "g", "s", "S", "o", "F"
        )
        assert desk.screen.go_to("3")
        assert not desk.screen.go_to("eval run")


async def test_a_path_that_is_nothing_fails_and_can_be_tried_again(tmp_path: Path) -> None:
    async with viewing(tmp_path) as desk:
        await desk.open(tmp_path / "later.jsonl")
        assert desk.pane("tasks").state is PaneState.FAILED
        assert "there is no run" in desk.pane("tasks").message_text
        assert "ctrl+r" in desk.pane("tasks").message_text
        write_samples(tmp_path, "later.jsonl")
        await desk.press("ctrl+r")
        assert desk.title == "0 · repeat 1 of 4"


async def test_an_empty_file_says_so_and_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("screens.viewer.loading.FOLLOW_EVERY", 0.05)
    path = tmp_path / "empty.jsonl"
    path.write_text("")
    async with viewing(path) as desk:
        assert "0 rows in empty.jsonl" in desk.pane("tasks").message_text
        path.write_text(json.dumps(record(0, 0, 1.0, [message("assistant", "first!")])) + '\n{"torn')
        await settle(desk.pilot, lambda: "first!" in desk.text)
        assert "6 bytes unfinished" in desk.text
        with path.open("a") as file:
            file.write('": 1}\n')
        await settle(desk.pilot, lambda: "2 rows" in desk.text)
        assert desk.title == "0 · repeat 1"


async def test_a_file_that_is_replaced_is_read_anew(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("screens.viewer.loading.FOLLOW_EVERY", 0.05)
    async with viewing(samples) as desk:
        fresh = samples.with_name("fresh")
        fresh.write_text(json.dumps(record(77, 0, 1.0, [message("assistant", "another run")])) + "\n")
        samples.with_name("m_failures.jsonl").unlink()
        os.replace(fresh, samples)
        await settle(desk.pilot, lambda: "another run" in desk.text)
        assert any("was replaced" in text for text in desk.told)
        assert "1 task" in desk.text


async def test_a_file_that_is_gone_stays_on_screen_as_stale(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("screens.viewer.loading.FOLLOW_EVERY", 0.05)
    async with viewing(samples) as desk:
        samples.unlink()
        await settle(desk.pilot, lambda: desk.pane("tasks").state is PaneState.STALE)
        assert "the file is gone" in desk.text
        assert "▸      0  [■]□ ▒ ✗" in desk.text


async def test_the_way_through_rollouts_repeats_and_problems(samples: Path) -> None:
    async with viewing(samples) as desk:

        async def at(*keys: str) -> str:
            await desk.press(*keys)
            return desk.title

        assert await at("right_square_bracket") == "0 · repeat 2 of 4"
        assert await at("equals_sign", "equals_sign") == "0 · repeat 4 of 4"
        assert await at("equals_sign") == "0 · repeat 1 of 4"
        assert await at("minus") == "0 · repeat 4 of 4"
        assert await at("right_square_bracket") == "1 · repeat 1 of 2"
        assert await at("left_square_bracket") == "0 · repeat 4 of 4"
        assert await at("right_curly_bracket") == "1 · repeat 1 of 2"
        assert await at("F", "right_curly_bracket") == "row 9"
        assert "row 9 unreadable" in desk.text and "problems: failed" in desk.text
        assert await at("right_curly_bracket") == "5 · repeat 2 of 2"
        await desk.press("right_curly_bracket", "right_square_bracket")
        assert desk.told[-2:] == ["no further rollout counts as a problem (failed)", "this is the last rollout"]
        assert await at("left_curly_bracket", "left_curly_bracket") == "0 · repeat 4 of 4"


async def test_a_target_may_name_a_place(samples: Path) -> None:
    async with viewing(samples.parent) as desk:
        await desk.open(samples, task=4, rollout=1)
        assert desk.title == "4 · repeat 2 of 2"
        await desk.open(samples, line=6)
        assert desk.title == "2 · repeat 1 of 2"
        assert desk.screen.go_to("11")
        await settle(desk.pilot)
        assert desk.title == "4 · repeat 2 of 2"
        await desk.open(samples, task=4, rollout=7)
        assert desk.told[-1] == "there is no task 4, repeat 8 in m.jsonl"
        assert desk.title == "4 · repeat 2 of 2"
        await desk.open(samples.with_name("m_failures.jsonl"), line=99)
        assert desk.told[-1].startswith("there is no line 99")
        assert desk.title == "0 · repeat 1 of 4"


async def test_the_cursor_of_the_list_leads(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.press("j", "j")
        assert desk.title == "2 · repeat 1 of 2"
        await desk.press("end")
        assert desk.title == "5 · repeat 1 of 2"
        await desk.press("home", "enter")
        assert desk.screen.current_pane() is desk.pane("conversation")


async def test_a_click_on_a_square_goes_to_that_repeat(samples: Path) -> None:
    async with viewing(samples) as desk:
        strip = next(line for line in lines(desk.app) if "[■]□ ▒ ✗" in line).index("▒")
        assert await desk.pilot.click(TaskList, offset=(strip - 1, 1))
        await settle(desk.pilot)
        assert desk.title == "0 · repeat 3 of 4"
        assert await desk.pilot.click(TaskList, offset=(strip - 3, 2))
        await settle(desk.pilot)
        assert desk.title == "1 · repeat 2 of 2"
        assert await desk.pilot.click(TaskList, offset=(3, 3))
        await settle(desk.pilot)
        assert desk.title == "2 · repeat 1 of 2"


async def test_the_list_is_filtered_while_one_types(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.press("slash")
        await desk.write("reward<1")
        assert "3 of 7 tasks" in desk.text
        await desk.write(" fial:x")
        assert "`fial:x`: there is no" in desk.text and "between" not in desk.text
        assert "3 of 7 tasks" in desk.text
        await desk.press("escape")
        assert "7 tasks" in desk.text and "of 7 tasks" not in desk.text
        await desk.press("slash")
        await desk.write("zzz", "enter")
        assert "0 of 7 tasks" in desk.text and "nothing matches; esc clears" in desk.text
        assert desk.title == "0 · repeat 1 of 4"
        await desk.press("escape")
        assert "▸      0  [■]□ ▒ ✗" in desk.text


async def test_single_rollouts_and_orders(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.press("right_square_bracket", "g")
        assert "14 rollouts" in desk.text
        assert "▸      0    1    0.000    282  stop" in desk.text
        await desk.press("s", "S")
        assert "REWARD▼" in desk.text
        assert desk.screen.tasks.listing is not None
        assert [desk.screen.tasks.listing.rows_at(place)[0] for place in range(5)] == [0, 4, 6, 7, 9]
        await desk.press("right_square_bracket")
        assert desk.title == "1 · repeat 1 of 2"  # the next one whose reward is 0
        await desk.press("g")
        assert "7 tasks" in desk.text and "1 · repeat 1 of 2" in desk.title


async def test_the_conversation_is_searched(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.press("tab", "slash")
        await desk.write("small cases", "enter")
        assert "hit 1 of 1" in desk.text
        await desk.press("escape", "slash")
        await desk.write("count", "enter", "n")
        assert "hit 2 of" in desk.text
        await desk.press("N")
        assert "hit 1 of" in desk.text
        await desk.press("escape")
        assert "hit 1 of" not in desk.text


async def test_all_rollouts_are_searched(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.press("ctrl+f")
        await desk.write("small cases", "enter")
        assert (desk.title, "hit 1 of 1" in desk.text) == ("0 · repeat 1 of 4", True)
        await desk.press("n")
        assert (desk.title, "hit 1 of 1" in desk.text) == ("0 · repeat 2 of 4", True)
        await desk.press("n")
        assert desk.title == "0 · repeat 1 of 4"
        await desk.press("N")
        assert desk.title == "0 · repeat 2 of 4"
        await desk.press("escape", "ctrl+f")
        await desk.write("resp_2_1", "enter")
        assert desk.title == "2 · repeat 2 of 2"
        assert "found in another part of the record" in desk.text
        await desk.press("escape", "ctrl+f")
        await desk.write("nowhere at all", "enter")
        assert "not found in 14 rollouts" in desk.text


async def test_markdown_raw_and_folds(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.press("m")
        assert "**period 7**" in desk.text
        await desk.press("v")
        assert '"responses_create_params": {' in desk.text and "JSON" in desk.text
        await desk.press("right_square_bracket")
        assert '"responses_create_params": {' in desk.text
        await desk.press("v", "e")
        assert "▸ assistant" in desk.text and "▾" not in desk.text
        await desk.press("e")
        assert "▾ reasoning" in desk.text


async def test_two_repeats_side_by_side(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.press("d")
        assert "(diff of repeat 1 and repeat 2 of task 0)" in desk.text
        assert "= equal, folded" in desk.text
        assert "\\boxed{[-12-]}" in desk.text and "\\boxed{{+13+}}" in desk.text
        assert "difference 1 of 1" in desk.text and "1 of 7 turns differ" in desk.text
        assert "s Swap sides" in desk.text
        await desk.press("s")
        assert "\\boxed{[-13-]}" in desk.text
        await desk.press("e")
        assert "I will check small cases first." in desk.text
        await desk.press("e", "right_curly_bracket")
        assert desk.told[-1] == "no further difference"
        await desk.press("y", "w")
        assert desk.copied[0][1] == "the diff"
        assert "[-13-]" in desk.written[0]
        await desk.press("d")
        assert "(diff of repeat 1 and repeat 3 of task 0)" in desk.text
        await desk.press(
            "right_curly_bracket", "left_curly_bracket", "left_curly_bracket", "left_curly_bracket", "left_curly_bracket"
        )
        assert desk.told[-1] == "no difference before this one"
        await desk.press("d")
        assert "(diff of repeat 1 and repeat 4 of task 0)" in desk.text
        await desk.press("escape")
        assert "(reading m.jsonl" in desk.text and desk.title == "0 · repeat 1 of 4"


async def test_a_task_with_one_repeat_has_nothing_beside_it(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.open(samples, task=3)
        await desk.press("d", "equals_sign")
        assert desk.told[-2:] == ["this task has no other repeat to compare with", "this task has one repeat"]


async def test_copies_go_from_the_part_to_the_place(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.press("tab", "j", "j", "y", "y", "y", "y", "y")
        turn, conversation, raw, place, again = (text for text, _ in desk.copied)
        assert turn.startswith("user\nFind the number")
        assert conversation.startswith("task 0, repeat 1, reward 1.000, m.jsonl:1\n\n")
        assert "case modulo count" in conversation
        assert json.loads(raw)["reward"] == 1.0
        assert place == f"{samples}:1"
        assert again == turn
        await desk.press("j", "y")
        assert desk.copied[-1][0].startswith("reasoning")
        await desk.press("tab", "y", "w")
        assert desk.copied[-1][0].startswith("reward            1.0")
        assert desk.written == [conversation]


async def test_the_pager_gets_the_record(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("screens.viewer.screen.run_pager", lambda _app, path: shown.append(path.read_text()))
    async with viewing(samples) as desk:
        await desk.press("o")
        assert json.loads(shown[0])["_ng_rollout_index"] == 0


async def test_a_narrow_terminal_shows_one_pane_at_a_time(samples: Path) -> None:
    async with viewing(samples, NARROW, RESTYLED) as desk:
        assert "REPEATS" in desk.text and "▾ user" not in desk.text
        await desk.press("enter")
        assert "0 · repeat 1 of 4 · reward 1.000" in desk.text and "[■]□ ▒ ✗ · " in desk.text and "REPEATS" not in desk.text
        await desk.press("tab")
        assert "extracted_answer  12" in desk.text and "▾ user" not in desk.text
        await desk.press("tab")
        assert "small-7b" in desk.text and "extracted" not in desk.text
        await desk.press("tab")
        assert "REPEATS" in desk.text
        await desk.press("d")
        assert "{+13+}" in desk.text
        await desk.press("escape")
        await desk.pilot.resize_terminal(*WIDE)
        await settle(desk.pilot)
        assert "REPEATS" in desk.text and "small-7b" in desk.text and "reward 1.000" not in desk.title
        for size in ((60, 16), (40, 12), (61, 17)):
            await desk.pilot.resize_terminal(*size)
            await settle(desk.pilot)
        assert "▾ user" in desk.text


async def test_hostile_rollouts_are_text(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.open(samples, task=3)
        assert "[/red] [bold ␛[31mred␛[0m" in desk.text
        for row in (0, 11, 13, 8):
            desk.screen.select(row)
            await desk.press("v", "v", "tab", "shift+tab")
        await desk.press("ctrl+f")
        await desk.write("[/red]", "enter")
        assert desk.title.startswith(("3", "5"))
        assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in desk.text.replace("\n", ""))


async def test_rows_of_any_shape_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "[bold.jsonl"
    deep = "[" * 3000 + "]" * 3000
    rows = [
        json.dumps(record(0, 0, 1.0, [message("assistant", "x" * 1_000_000)])),
        json.dumps(record(0, 1, 0.0, [message("assistant", "日本語" * 100_000)])),
        f'{{"reward": {deep}}}',
        "[1, 2]",
        '{"reward": NaN}',
        json.dumps({"response": {"output": [{"type": "message", "role": "assistant", "content": {"a": [[[[1]]]]}}]}}),
        json.dumps(record(0, 0, 1e308, [tool_call("c", HOSTILE)]) | {"_ng_task_index": "[/red]", "_ng_rollout_index": "x"}),
        "\xff\xfe",
        json.dumps(record(-5, 1 << 40, -1.0, [message("tool", HOSTILE)])),
    ]
    path.write_bytes(b"".join(row.encode("latin-1" if row == "\xff\xfe" else "utf-8") + b"\n" for row in rows))
    async with viewing(path) as desk:
        assert "[bold.jsonl" in desk.text
        for _ in rows:
            await desk.press("right_square_bracket")
            await desk.press("v")
            await desk.press("v")
        await desk.press("g", "end", "home", "d")
        assert "no row" not in desk.text


async def test_a_huge_row_is_cut_and_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    path.write_text(json.dumps(record(0, 0, 1.0, [message("assistant", "x" * (9 << 20))])) + "\n")
    async with viewing(path) as desk:
        assert "too big to be shown whole" in desk.text and "o shows it whole in the pager" in desk.text
        assert "huge.jsonl:1  9.4 MB" in desk.text


async def test_a_failing_page_takes_nothing_else_down(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with viewing(samples) as desk:
        monkeypatch.setattr("screens.viewer.reading_screen.read_page", lambda _file, row: 1 / 0)
        await desk.press("j")
        assert desk.pane("conversation").state is PaneState.FAILED
        assert "ZeroDivisionError" in desk.text and "REPEATS" in desk.text
        monkeypatch.undo()
        await desk.press("k", "j")
        assert desk.title == "1 · repeat 1 of 2"


async def test_a_cursor_that_runs_reads_the_last_rollout_it_came_to(samples: Path) -> None:
    async with viewing(samples) as desk:
        for _ in range(5):
            await desk.pilot.press("j")
        await settle(desk.pilot)
        assert desk.title == "4 · repeat 1 of 2"


async def test_nothing_is_followed_behind_another_screen(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("screens.viewer.loading.FOLLOW_EVERY", 0.05)
    async with viewing(samples, stall=RESTYLED) as desk:
        viewer: ReadingScreen = desk.screen
        desk.app.open_screen("results")
        await settle(desk.pilot)
        with samples.open("a") as file:
            file.write(json.dumps(record(9, 0, 1.0, [])) + "\n")
        await asyncio.sleep(0.3)
        assert len(viewer.tasks.rows.rows) == 7
        desk.app.open_screen("viewer")
        await settle(desk.pilot, lambda: len(viewer.tasks.rows.rows) == 8)


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
        assert desk.told[-1:] != ["this task has no other repeat to compare with"]
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
        assert "0 of 14 rollouts" in desk.text and desk.title == "2 · repeat 1 of 2"


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
        assert desk.title == "0 · repeat 2 of 4" or desk.title == "0 · repeat 3 of 4"
        for _ in range(4):
            await desk.press("equals_sign")
            assert desk.screen._row in (1, 2)


async def test_a_place_that_is_asked_for_lifts_the_filter_that_hides_it(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.press("slash")
        await desk.write("task:3", "enter")
        assert desk.screen.go_to("8")
        await settle(desk.pilot)
        assert "1 of 7 tasks" in desk.text and not desk.told
        assert desk.screen.go_to("11")
        await settle(desk.pilot)
        assert desk.title == "4 · repeat 2 of 2" and desk.screen.tasks.rows.cursor == 5
        assert desk.told == ["the filter hides this rollout and is lifted"]
        assert "7 tasks" in desk.text and desk.screen.tasks.box.value == ""
        await desk.press("tab", "tab", "tab", "tab", "slash")
        await desk.write("task:3", "enter")
        assert desk.title.startswith("3")
        await desk.open(samples.with_name("m_failures.jsonl"), task=5, rollout=1)
        assert desk.title == "5 · repeat 2 of 2"
        await desk.press("slash") if desk.screen.current_pane() is desk.pane("tasks") else None
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
        await desk.press("n", "n")
        assert desk.title == "2 · repeat 1 of 2 · reward 0.000"


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
        assert "1 task" in desk.text or "first!" in desk.text


async def test_a_run_with_failed_attempts_only_says_so(tmp_path: Path) -> None:
    path = live_run(tmp_path, done=0)
    path.unlink()
    (tmp_path / "m_failures.jsonl").write_text("{}\n")
    async with viewing(path) as desk:
        assert "no rollout yet, only failed attempts" in desk.pane("tasks").message_text


async def test_a_rollout_that_is_asked_for_is_shown_when_it_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("screens.viewer.loading.FOLLOW_EVERY", 0.05)
    path = live_run(tmp_path, done=0)
    path.unlink()
    async with viewing(tmp_path) as desk:
        await desk.open(path, task=1, rollout=0)
        path.write_text("".join(json.dumps(record(task, 0, 1.0, [])) + "\n" for task in range(3)))
        await settle(desk.pilot, lambda: desk.title == "1 · repeat 1")


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


async def test_long_turns_beside_each_other_do_not_hold_up_the_loop(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    texts = [
        "x" * 1_000_000,
        "日本語" * 100_000,
        "count the pairs, again; " * 20_000,
        "count the pears, again.\n" * 20_000,
        HOSTILE * 3000,
    ]
    rows = [record(0, number, 0.0, [message("assistant", text)]) for number, text in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    async with viewing(path) as desk:
        for number in range(2, len(texts) + 1):
            await desk.press("d")
            assert f"(diff of repeat 1 and repeat {number} of task 0)" in desk.text
            await settle(desk.pilot, lambda: "difference 1 of 1" in desk.text)
        await desk.press("e", "s", "pagedown", "escape")
        assert desk.title == "0 · repeat 1 of 5"
