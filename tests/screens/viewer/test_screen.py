"""The viewer as somebody uses it, over real files."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from screens.viewer import screen, stepping_screen
from screens.viewer.reading_screen import ReadingScreen
from screens.viewer.task_pane import TaskList
from screens.widgets.pane import PaneState
from tests.rollout_samples import HOSTILE, message, record, tool_call, write_samples
from tests.viewer_desk import RESTYLED, viewing
from tests.workbench import NARROW, WIDE, lines, settle

pytestmark = pytest.mark.slow


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    return write_samples(tmp_path)


async def test_a_file_opens_at_its_first_rollout(samples: Path) -> None:
    async with viewing(samples) as desk:
        assert desk.title == "0 · repeat 1 of 4"
        for expected in (
            "6 tasks · 1 unreadable ─╮",
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
        await desk.press("right_curly_bracket")
        await desk.press("right_square_bracket")
        assert desk.told[-2:] == ["no further rollout counts as a problem (failed)", "this is the last rollout"]
        await at("left_curly_bracket")
        assert await at("left_curly_bracket") == "0 · repeat 4 of 4"


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
        assert "3 of 6 tasks" in desk.text
        await desk.write(" fial:x")
        assert "`fial:x`: there is no" in desk.text and "between" not in desk.text
        assert "3 of 6 tasks" in desk.text
        await desk.press("escape")
        assert "6 tasks · 1 unreadable" in desk.text and "of 6 tasks" not in desk.text
        await desk.press("slash")
        await desk.write("zzz", "enter")
        assert "0 of 6 tasks" in desk.text and "nothing matches; esc clears" in desk.text
        assert desk.title == "0 · repeat 1 of 4"
        await desk.press("escape")
        assert "▸      0  [■]□ ▒ ✗" in desk.text


async def test_single_rollouts_and_orders(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.press("right_square_bracket", "g")
        assert "13 rollouts · 1 !" in desk.text
        assert "▸      0    1    0.000    282  stop" in desk.text
        await desk.press("s", "S")
        assert "REWARD▼" in desk.text
        assert desk.screen.tasks.listing is not None
        assert [desk.screen.tasks.listing.rows_at(place)[0] for place in range(5)] == [0, 4, 6, 7, 9]
        await desk.press("right_square_bracket")
        assert desk.title == "1 · repeat 1 of 2"  # the next one whose reward is 0
        await desk.press("g")
        assert "6 tasks · 1 unreadable" in desk.text and "1 · repeat 1 of 2" in desk.title


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
        assert "not found in 14 rows" in desk.text


def slowly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, on a slow disk."""

    def slow(*given: Any) -> Any:
        time.sleep(0.3)
        return function(*given)

    return slow


async def test_keys_count_that_are_pressed_before_a_slow_search_for_the_step_before_has_ended(
    samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((stepping_screen, "find_problem"), (screen, "search_all")):
        monkeypatch.setattr(module, name, slowly(getattr(module, name)))
    async with viewing(samples) as desk:
        await desk.press("F", "right_curly_bracket", "right_curly_bracket", "right_curly_bracket")
        assert desk.title == "5 · repeat 2 of 2"  # after repeat 4 of task 0 and the unreadable row
        await desk.press("left_curly_bracket", "right_curly_bracket", "left_curly_bracket", "left_curly_bracket")
        assert desk.title == "0 · repeat 4 of 4"
        await desk.press("right_curly_bracket", "right_curly_bracket", "right_curly_bracket", "right_curly_bracket")
        assert (desk.title, desk.told[-1]) == ("5 · repeat 2 of 2", "no further rollout counts as a problem (failed)")

        await desk.press("left_curly_bracket", "left_curly_bracket")
        await desk.press("ctrl+f")
        await desk.write("Answer briefly", "enter", "n", "n")
        assert desk.title == "0 · repeat 3 of 4"
        await desk.press("N", "N", "n")
        assert desk.title == "0 · repeat 2 of 4"
        await desk.press("N")
        assert desk.title == "0 · repeat 1 of 4"


async def test_markdown_raw_and_folds(samples: Path) -> None:
    async with viewing(samples) as desk:
        await desk.press("m")
        assert "**period 7**" in desk.text
        await desk.press("v")
        assert '"responses_create_params": {' in desk.text and "JSON" in desk.text
        await desk.press("right_square_bracket")
        assert '"responses_create_params": {' in desk.text
        await desk.press("v")
        await desk.press("e")
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
        await desk.press("tab", "j", "j")
        for _ in range(5):
            await desk.press("y")
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
