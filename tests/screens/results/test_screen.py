"""The Results screen as somebody uses it, over real folders of runs."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.events import AppBlur
from textual.pilot import Pilot

from gym_tui.app import WorkbenchApp
from screens.results import screen as screen_module
from screens.results.finding import Found, look_again
from screens.results.screen import ResultsScreen
from screens.widgets.filter_box import FilterBox
from screens.widgets.pane import Pane, PaneState
from screens.widgets.virtual_list import VirtualList
from screens.widgets.workbench import Target, first_run
from tests.run_folders import AGENT, event, finished, summary, write_events, write_run
from tests.workbench import NARROW, NOW, WIDE, NotingWorkbench, heartbeat, lines, noting_workbench, settle, text_of

pytestmark = pytest.mark.slow

DEAD_PID = 4_194_305
STARTED = {"started_at": NOW - 600, "ended_at": None, "scored": None, "failed": None, "missing": None}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five runs in different states, newest first: live, dead, cut, broke, good; and one with a record that is no JSON."""
    folder = tmp_path / "results"
    progress = event(
        "collection.progress", NOW - 60, finished=3, failed=0, total=10, averages={AGENT: {"reward": 0.5}}, counts={AGENT: 3}
    )
    write_run(
        folder / "mcqa" / "live.jsonl", [progress], state="running", pid=os.getpid(), **{**STARTED, "started_at": NOW - 100}
    )
    write_run(folder / "mcqa" / "dead.jsonl", [progress], state="running", pid=DEAD_PID, **{**STARTED, "started_at": NOW - 200})
    write_run(folder / "cut.jsonl", state="stopped", started_at=NOW - 300, scored=4, failed=0, missing=6)
    write_run(
        folder / "broke.jsonl", [], state="failed", error="a server died", started_at=NOW - 400, scored=0, failed=1, missing=9
    )
    write_run(folder / "good.jsonl", [summary(NOW, 10, 0, 0, 0.7)], started_at=NOW - 7200, ended_at=NOW - 7000)
    broken = write_run(folder / "broken.jsonl", [])
    (broken / "run.json").write_text("{broken")
    os.utime(broken / "events.ndjson", (NOW - 90_000, NOW - 90_000))
    monkeypatch.chdir(tmp_path)
    return folder


def app_for(path: Path) -> NotingWorkbench:
    return noting_workbench(path, "results")


def of(app: WorkbenchApp) -> ResultsScreen:
    assert isinstance(app.screen, ResultsScreen)
    return app.screen


def names(app: WorkbenchApp) -> list[str]:
    rows = of(app).query_one(VirtualList).rows
    return [rows.runs[index].name for index in range(len(rows))]  # type: ignore[attr-defined]


def pane(app: WorkbenchApp, name: str = "runs") -> Pane:
    return of(app).query_one(f"#{name}", Pane)


def current(app: WorkbenchApp) -> str:
    key = of(app).query_one(VirtualList).cursor_key
    return Path(str(key)).stem


async def test_all_states_are_listed_newest_first_with_what_is_known(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot, heartbeat():
        await settle(pilot)
        assert names(app) == ["mcqa/live", "mcqa/dead", "cut", "broke", "good", "broken"]
        text = text_of(app)
        for wanted in (
            "▶ running 30%",
            "✗ died",
            "○ stopped",
            "✗ failed",
            "✓ done",
            "! unreadable",
            "0.700 [0.60, 0.80]",
            "0.500 so far",
        ):
            assert wanted in text
        assert "$ gym list runs results" in text
        assert pane(app).state is PaneState.READY and "6 · newest first" in text
        assert "mcqa/live" in str(pane(app, "detail").border_title)


async def test_the_detail_follows_the_cursor_and_tells_how_to_go_on(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("j")
        await settle(pilot)
        text = text_of(app)
        assert f"process {DEAD_PID} is gone" in text
        assert "--resume" in text
        await pilot.press("j", "j")
        await settle(pilot)
        assert "a server died" in text_of(app)


async def test_details_are_read_once_the_cursor_rests(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from screens.results import detail_pane

    read: list[str] = []
    real = detail_pane.read_details
    monkeypatch.setattr(detail_pane, "read_details", lambda run, cancelled: (read.append(run.name), real(run, cancelled))[1])
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        read.clear()
        await pilot.press(*"jjjj")
        await settle(pilot)
        assert read == ["good"]


async def test_filter_counts_lights_and_is_cleared(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"state:d")
        await settle(pilot)
        assert names(app) == ["mcqa/dead", "good"]
        assert "2 of 6" in text_of(app)
        await pilot.press(*"ied", "enter")
        await settle(pilot)
        assert names(app) == ["mcqa/dead"]
        assert of(app).query_one(VirtualList).has_focus
        await pilot.press("escape")
        await settle(pilot)
        assert len(names(app)) == 6 and not of(app).query_one(FilterBox).display


async def test_filter_finds_letters_in_order_and_says_so(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"mqlv")
        await settle(pilot)
        assert names(app) == ["mcqa/live"]
        assert "those with their letters" in text_of(app)


async def test_nothing_matched_names_what_is_near(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"broqe")
        await settle(pilot)
        message = pane(app).message_text
        assert "No run matches broqe" in message and "nearest: broke" in message and "esc clears" in message
        assert of(app).query_one(FilterBox).display and of(app).query_one(FilterBox).value == "broqe"
        await pilot.press("q", "x")
        await settle(pilot)
        assert lines(app)[2].split() == ["│›", "broqeqx", "│"], "what is typed stays in sight, and letters stay letters"
        assert "No run under the cursor" in pane(app, "detail").message_text
        await pilot.press("escape")
        await settle(pilot)
        assert pane(app).state is PaneState.READY and len(names(app)) == 6


async def test_a_mistake_in_the_filter_is_told_and_the_rest_of_it_holds(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"mcqa statee:x")
        await settle(pilot)
        assert "no `statee`" in text_of(app)
        assert names(app) == ["mcqa/live", "mcqa/dead"]


async def test_orders(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("S")
        assert names(app)[0] == "broken" or names(app)[0] == "good"
        assert "newest first, reversed" in text_of(app) or "reversed" in str(pane(app).border_title)
        await pilot.press("s")
        await settle(pilot)
        assert names(app)[0] == "good" and "· score" in text_of(app)
        await pilot.press("s")
        await settle(pilot)
        assert names(app) == ["broke", "broken", "cut", "good", "mcqa/dead", "mcqa/live"]
        assert await pilot.click(VirtualList, offset=(20, 0))
        await settle(pilot)
        assert names(app) == ["mcqa/live", "mcqa/dead", "good", "cut", "broken", "broke"]
        assert "NAME▼" in text_of(app)


async def test_the_cursor_stays_on_its_run_through_sorting_and_filtering(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("j", "j")
        assert current(app) == "cut"
        await pilot.press("s", "s")
        await settle(pilot)
        assert current(app) == "cut"
        await pilot.press("slash", *"cut", "escape")
        await settle(pilot)
        assert current(app) == "cut"


async def test_opening_goes_where_the_run_is_best_seen(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("enter", "j", "enter", "v", "l")
        assert await pilot.click(VirtualList, offset=(20, 2))
        assert await pilot.click(VirtualList, offset=(20, 5))
        await pilot.pause(0.6)
        assert await pilot.click(VirtualList, offset=(20, 5))
        await settle(pilot)
        live, dead, good = root / "mcqa/live.jsonl", root / "mcqa/dead.jsonl", root / "good.jsonl"
        assert app.asked == [
            ("rollouts", Target(live)),
            ("viewer", Target(dead)),
            ("viewer", Target(dead)),
            ("rollouts", Target(dead)),
            ("viewer", Target(dead)),
            ("viewer", Target(good)),
        ]


async def test_copies(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("y", "Y")
        await pilot.press("tab", "y")
        await settle(pilot)
        assert app.asked[0] == ("copy", str(root / "mcqa/live.jsonl"))
        assert app.asked[1] == ("copy", "gym list runs results")
        assert app.asked[2] == ("copy", f"gym eval run --benchmark first_steps --output {root}/mcqa/live.jsonl")


async def test_run_again_and_resume_fill_the_command_line(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("r", "R")
        assert app.asked == [("prefill", f"eval run --benchmark first_steps --output {root}/mcqa/live-2.jsonl")]
        assert "still running" in app.notices[-1][2]
        await pilot.press("j", "R")
        assert app.asked[-1] == ("prefill", f"eval run --benchmark first_steps --output {root}/mcqa/dead.jsonl --resume")
        await pilot.press("end", "k", "R")
        assert "nothing of it is left" in app.notices[-1][2]


async def test_progress_is_seen_also_while_searches_rest_and_a_look_is_slow(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*looked_at: Any) -> Any:
        time.sleep(0.2)
        return look_again(*looked_at)

    monkeypatch.setattr(screen_module, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(screen_module, "look_again", slow)
    monkeypatch.setattr(Found, "rest_seconds", 3600.0)
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: len(names(app)) == 6, idle=False)
        write_run(root / "fresh.jsonl", started_at=NOW)
        _six_of_ten_are_done(root)
        await settle(pilot, lambda: "running 60%" in text_of(app), idle=False)
        assert "fresh" not in names(app)


async def test_new_runs_are_seen_and_the_place_is_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen_module, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(Found, "rest_seconds", 0.0)
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: len(names(app)) == 6, idle=False)
        await pilot.press("j")
        _six_of_ten_are_done(root)
        write_run(root / "fresh.jsonl", started_at=NOW)
        shutil.rmtree(root / "cut_run")
        await settle(
            pilot,
            lambda: "running 60%" in text_of(app) and "fresh" in names(app) and "cut" not in names(app),
            idle=False,  # it searches again and again
        )
        assert names(app)[0] == "fresh" and "fresh" in text_of(app)
        assert current(app) == "dead"


def _six_of_ten_are_done(root: Path) -> None:
    events = [event("collection.started", NOW, total=10), *(finished(task, 0, NOW) for task in range(6))]
    write_events(root / "mcqa/live_run/events.ndjson", events)


async def test_nobody_searches_while_the_terminal_is_not_looked_at(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen_module, "LOOK_SECONDS", 0.05)
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: len(names(app)) == 6, idle=False)
        app.post_message(AppBlur())
        await settle(pilot)
        write_run(root / "fresh.jsonl", started_at=NOW)
        await asyncio.sleep(0.4)
        await settle(pilot)
        assert "fresh" not in names(app)


async def test_an_empty_folder_says_how_to_begin(tmp_path: Path) -> None:
    app = app_for(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert pane(app).state is PaneState.EMPTY
        assert "No runs below" in pane(app).message_text and "r puts a first one on the command line" in pane(app).message_text
        await pilot.press("r", "R", "enter", "l", "v", "y")
        assert app.asked == [("prefill", first_run())]
        write_run(tmp_path / "m.jsonl")
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert names(app) == ["m"] and pane(app).state is PaneState.READY


async def test_a_folder_that_is_gone_fails_and_comes_back(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        moved = root.rename(root.with_name("elsewhere"))
        await pilot.press("ctrl+r")
        await settle(pilot, lambda: pane(app).state is PaneState.STALE)
        assert len(names(app)) == 6
        for _ in range(3):  # it is said until a search ends well, also while the next one goes on
            assert "old" in str(pane(app).border_title) and "cannot search" in str(pane(app).border_subtitle)
            of(app)._look()
            assert "old" in str(pane(app).border_title) and "cannot search" in str(pane(app).border_subtitle)
            await settle(pilot)
        moved.rename(root)
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert pane(app).state is PaneState.READY


async def test_a_target_that_is_not_there_is_a_failure(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        of(app).show_target(Target(root / "gone"))
        await settle(pilot)
        assert pane(app).state is PaneState.FAILED
        assert "cannot search" in pane(app).message_text and "ctrl+r" in pane(app).message_text


async def test_a_run_as_target_gets_the_cursor(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        of(app).show_target(Target(root / "cut_run"))
        await settle(pilot)
        assert current(app) == "cut" and len(names(app)) == 6


@contextmanager
def slow_search(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A search that stops in front of each run but the first until it is let go."""
    let_go = threading.Event()
    real = screen_module.search

    def search(place: Any, root: Any, cache: Any, now: Any, reporter: Any) -> Any:
        from screens.results import finding

        plain = finding.find_runs

        def find_slowly(*words: Any, **options: Any) -> Any:
            for number, run in enumerate(plain(*words, **options)):
                while number and not let_go.is_set() and reporter.wait(0.15):
                    options["go_on"]()
                yield run

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(finding, "find_runs", find_slowly)
            return real(place, root, cache, now, reporter)

    monkeypatch.setattr(screen_module, "search", search)
    yield let_go
    let_go.set()


async def test_the_list_can_be_used_while_the_search_goes_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_for(root)
    with slow_search(monkeypatch) as let_go:
        async with app.run_test(size=WIDE) as pilot, heartbeat():
            while len(names(app)) < 1:
                await pilot.pause(0.05)
            assert pane(app).state is PaneState.LOADING and "folders" in str(pane(app).border_title)
            await pilot.press("enter")
            assert app.asked
            let_go.set()
            await settle(pilot)
            assert len(names(app)) == 6 and pane(app).state is PaneState.READY


async def test_leaving_does_not_wait_for_a_slow_search(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_for(root)
    with slow_search(monkeypatch) as let_go:
        async with app.run_test(size=WIDE) as pilot:
            await pilot.pause(0.2)
        assert not let_go.is_set()


async def test_narrow_terminals_show_one_pane_at_a_time(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=NARROW) as pilot:
        await settle(pilot)
        assert pane(app).display and not pane(app, "detail").display
        await pilot.press("j", "tab")
        await settle(pilot)
        assert pane(app, "detail").display and not pane(app).display
        assert "What happened" in text_of(app)
        await pilot.press("slash")
        await settle(pilot)
        assert pane(app).display and of(app).query_one(FilterBox).has_focus
        await pilot.resize_terminal(60, 16)
        await settle(pilot)
        assert "running 30%" in text_of(app)
        await pilot.resize_terminal(40, 12)
        await settle(pilot)
        assert "needs 60x16" in text_of(app)


async def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    bad = "[/red][bold \x1b]0;owned\x07\x9b31m‮日本語\x00"
    config = {"policy_model_name": bad, "policy_model": {"responses_api_models": {bad: {"openai_base_url": bad}}}}
    told = {**summary(NOW, 1, 0, 0, 0.5), "failure_classes": {bad: 3}}
    told["scores"][0]["name"] = bad
    command = ["gym", "eval", "run", bad, "--output", f"{bad}.jsonl"]
    write_run(
        tmp_path / "[bold [red] ‮.jsonl", [event("notice", NOW, level="warning", text=bad), told], state="failed",
        error=bad, command=command, config=config, cwd=bad, host=bad, agents={bad: 1},
    )  # fmt: skip
    app = app_for(tmp_path)
    async with app.run_test(size=WIDE) as pilot, heartbeat():
        await settle(pilot)
        await pilot.press("y", "r", "slash", *"[/x", "escape", "tab", "y", "z", "w")
        await settle(pilot)
        text = text_of(app)
        assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char in "\u202e" for char in text.replace("\n", ""))
        assert "[/red][bold" in text


@pytest.mark.slow
async def test_three_thousand_runs_never_stop_the_loop(tmp_path: Path) -> None:
    for number in range(3000):
        folder = tmp_path / f"g{number % 20}" / f"run{number}_run"
        folder.mkdir(parents=True)
        told = {
            "state": "done",
            "command": ["gym", "eval", "run"],
            "host": "h",
            "pid": 1,
            "started_at": NOW - number,
            "config": {},
        }
        (folder / "run.json").write_text(json.dumps(told))
        (folder / "events.ndjson").write_text(json.dumps(summary(NOW, 1, 0, 0, number / 3000)) + "\n")
    app = app_for(tmp_path)
    async with app.run_test(size=WIDE) as pilot, heartbeat():
        await settle(pilot, seconds=60)
        assert len(names(app)) == 3000
        await pilot.press("s", "S", "slash", *"run29", "escape", "end", "pageup")
        await pilot.press("slash", *"zzzq", "escape", "ctrl+r")
        await settle(pilot, seconds=60)


async def test_steps_work_by_hand_through_the_key_bar(root: Path, pilot_sizes: tuple[int, int] = WIDE) -> None:
    app = app_for(root)
    async with app.run_test(size=pilot_sizes) as pilot:
        await settle(pilot)
        bar = lines(app)[-1]
        assert await _click_text(pilot, bar, "Sort")
        await settle(pilot)
        assert "· score" in text_of(app)


async def _click_text(pilot: Pilot[Any], line: str, word: str) -> bool:
    return await pilot.click(offset=(line.index(word) + 1, WIDE[1] - 1))
