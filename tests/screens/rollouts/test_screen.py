"""The Rollouts screen: what it follows, what its keys do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot
from textual.widgets import Static

from backend.rollouts.run_entry import RunEntry
from gym_tui.app import WorkbenchApp
from screens.rollouts import following_screen
from screens.rollouts import screen as screen_module
from screens.rollouts.following import Handshake, follow_run, newest_run
from screens.rollouts.log_pane import LogPane
from screens.rollouts.screen import RolloutsScreen
from screens.rollouts.snapshot import Reading
from screens.rollouts.stream_rows import FinishedRows
from screens.widgets.background import Reporter
from screens.widgets.pane import Pane, PaneState
from screens.widgets.virtual_list import VirtualList
from screens.widgets.workbench import Target
from tests.run_samples import DEAD_PID, START, add_events, finished, live_run, started, write_run_record
from tests.workbench import NARROW, WIDE, heartbeat, settle, text_of, workbench

pytestmark = pytest.mark.slow

AT = START + 95


class Commands:
    """Keeps what a screen starts and puts on the command line, instead of doing it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started: list[list[str]] = []
        self.prefilled: list[str] = []
        monkeypatch.setattr(WorkbenchApp, "start_command", self._start)
        monkeypatch.setattr(WorkbenchApp, "prefill_command", self._prefill)

    def _start(self, words: Sequence[str], folder: str | None = None) -> None:
        self.started.append(list(words))

    def _prefill(self, text: str, folder: str | None = None) -> None:
        self.prefilled.append(text)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(monkeypatch)


def screen_of(pilot: Pilot[None]) -> RolloutsScreen:
    screen = pilot.app.screen
    assert isinstance(screen, RolloutsScreen)
    return screen


def idle_process() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])


def stream(pilot: Pilot[None]) -> list[tuple[int, int, int]]:
    rows = screen_of(pilot).query_one("#finished-list", VirtualList).rows
    assert isinstance(rows, FinishedRows)
    return [(line.task, line.rollout, line.attempt) for line in rows.lines]


async def test_follows_the_newest_run_that_goes_on(tmp_path: Path) -> None:
    live_run(tmp_path, stem="old", state="done", started_at=START + 50)
    live_run(tmp_path, stem="going", started_at=START)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        async with heartbeat():
            assert "going.jsonl · running" in text_of(app)


async def test_follows_the_run_that_is_asked_for(tmp_path: Path) -> None:
    live_run(tmp_path, stem="going", started_at=START)
    path = live_run(tmp_path, stem="old", state="done")
    app = workbench(path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: "old.jsonl · done" in text_of(app))
        assert screen_of(pilot).chosen
        assert len(stream(pilot)) == 12


async def test_changes_to_a_run_that_begins_later(tmp_path: Path) -> None:
    live_run(tmp_path, stem="old", state="done")
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "old.jsonl · done" in text_of(app)
        live_run(tmp_path, stem="new", started_at=START + 60)
        await settle(pilot, lambda: "new.jsonl · running" in text_of(app))


async def test_looking_for_runs_may_take_longer_than_until_the_next_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*looked_at: Any) -> RunEntry | None:
        time.sleep(0.3)
        return newest_run(*looked_at)

    monkeypatch.setattr(screen_module, "newest_run", slow)
    monkeypatch.setattr(screen_module, "LOOK_SECONDS", 0.05)
    live_run(tmp_path, stem="going")
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: "going.jsonl · running" in text_of(app), idle=False)


async def test_events_that_come_later_are_drawn(tmp_path: Path) -> None:
    live_run(tmp_path)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        async with heartbeat():
            assert "12 / 40" in text_of(app)
            add_events(tmp_path / "m_run", [{**finished(12, 0, 1.0), "t": START + 94}])
            await settle(pilot, lambda: "13 / 40" in text_of(app))
            assert stream(pilot)[0] == (12, 0, 0)


async def test_a_failed_rollout_that_is_tried_again_has_one_line(tmp_path: Path) -> None:
    live_run(tmp_path)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert (5, 0, 0) in stream(pilot)
        add_events(
            tmp_path / "m_run",
            [{**started(5, 0, attempt=1), "t": START + 93}, {**finished(5, 0, 1.0, attempt=1), "t": START + 94}],
        )
        await settle(pilot, lambda: (5, 0, 1) in stream(pilot))
        assert [line for line in stream(pilot) if line[0] == 5] == [(5, 0, 1)]
        assert "(attempt 2)" in text_of(app)


async def test_a_run_that_is_replaced_is_read_anew(tmp_path: Path) -> None:
    live_run(tmp_path, done=12)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        (tmp_path / "m_run" / "events.ndjson").unlink()
        live_run(tmp_path, done=3, total=8)
        await settle(pilot, lambda: "3 / 8" in text_of(app))
        assert stream(pilot) == [(2, 0, 0), (1, 0, 0), (0, 0, 0)]


async def test_filter(tmp_path: Path) -> None:
    live_run(tmp_path)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"reward<1 task:3")
        await settle(pilot)
        assert stream(pilot) == [(3, 0, 0)]
        assert "1 of 12" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert len(stream(pilot)) == 12
        await pilot.press("slash", *"rewrad<1")
        await settle(pilot)
        assert "unknown term rewrad; Did you mean `reward`?" in text_of(app)


async def test_only_failures_and_back(tmp_path: Path) -> None:
    live_run(tmp_path)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("F")
        assert stream(pilot) == [(5, 0, 0)]
        await pilot.press("escape")
        assert len(stream(pilot)) == 12


async def test_pausing_stops_the_drawing_only(tmp_path: Path) -> None:
    live_run(tmp_path)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("p")
        add_events(tmp_path / "m_run", [{**finished(task, 0, 1.0), "t": START + 94} for task in (12, 13)])
        await settle(pilot, lambda: "2 more have finished" in text_of(app))
        assert "12 / 40" in text_of(app)
        assert screen_of(pilot).query_one("#finished", Pane).state is PaneState.STALE
        await pilot.press("p")
        await settle(pilot, lambda: "14 / 40" in text_of(app))


async def test_cancelling_takes_two_steps(tmp_path: Path, commands: Commands) -> None:
    path = str(live_run(tmp_path))
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("x")
        assert commands.started == [["eval", "control", path, "drain"]]
        await pilot.press("x")
        assert commands.started[1:] == [["eval", "control", path, "cancel"]]


async def test_cancelling_later_asks_again(tmp_path: Path, commands: Commands) -> None:
    live_run(tmp_path)
    now = [AT]
    app = workbench(tmp_path, "rollouts", now=AT)
    app._clock = lambda: now[0]
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("x")
        add_events(tmp_path / "m_run", [{"type": "run.control", "action": "drain", "by": "ada@node7", "t": AT}])
        await settle(pilot, lambda: "drain asked for by ada@node7" in text_of(app))
        now[0] += 60
        await pilot.press("x")
        assert len(commands.started) == 1
        await pilot.press("x")
        assert commands.started[-1][-1] == "cancel"


async def test_a_run_that_is_over_cannot_be_cancelled(tmp_path: Path, commands: Commands) -> None:
    live_run(tmp_path, state="done")
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("x")
        assert not commands.started
        assert "does not run" in app.notices[-1][2]


async def test_a_died_run_says_how_to_resume(tmp_path: Path, commands: Commands) -> None:
    live_run(tmp_path, host=os.uname().nodename, pid=DEAD_PID)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "m.jsonl · died" in text_of(app)
        command = "eval run --benchmark first_steps --model-type llama_cpp_model --output m.jsonl --resume"
        assert f"R resumes it: gym {command}" in text_of(app)
        await pilot.press("R")
        assert commands.prefilled == [command]


async def test_a_first_run_gets_an_output_that_is_free(tmp_path: Path, commands: Commands) -> None:
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("r")
        Path("results").mkdir()
        for name in ("first_steps.jsonl", "first_steps-2.jsonl"):
            Path("results", name).touch()
            await pilot.press("r")
        assert commands.prefilled[0] == (
            "eval run --benchmark first_steps --model-type llama_cpp_model --split benchmark --output results/first_steps.jsonl"
        )
        outputs = [text.rpartition(" ")[2] for text in commands.prefilled]
        assert outputs == ["results/first_steps.jsonl", "results/first_steps-2.jsonl", "results/first_steps-3.jsonl"]


async def test_a_run_that_is_killed_while_one_looks_on(tmp_path: Path) -> None:
    process = idle_process()
    now = time.time()
    live_run(tmp_path, host=os.uname().nodename, pid=process.pid, started_at=now)
    clock = [now]
    app = workbench(tmp_path, "rollouts", now=now)
    app._clock = lambda: clock[0]
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "m.jsonl · running" in text_of(app)
        process.kill()
        process.wait()
        clock[0] += 2
        await settle(pilot, lambda: "m.jsonl · died" in text_of(app))


async def test_enter_opens_the_rollout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = live_run(tmp_path)
    app = workbench(tmp_path, "rollouts", now=AT)
    opened: list[tuple[object, ...]] = []
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        monkeypatch.setattr(
            app, "open_screen", lambda name, target=None: opened.append((name, target.path, target.task, target.rollout))
        )
        await pilot.press("j", "enter")
        await settle(pilot)
        assert opened == [("viewer", path, 10, 0)]


async def test_a_click_on_a_failure_class_filters(tmp_path: Path) -> None:
    live_run(tmp_path)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert await pilot.click("#failure-list", offset=(4, 1))
        await settle(pilot)
        assert stream(pilot) == [(5, 0, 0)]


async def test_a_click_on_a_bar_filters(tmp_path: Path) -> None:
    live_run(tmp_path)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert await pilot.click("#reward-chart", offset=(1 + 5 + 25, 2))  # padding, axis, the last of 26 bars
        await settle(pilot)
        assert [task for task, _, _ in stream(pilot)] == [10, 7, 4, 1]
        await pilot.press("escape")
        assert await pilot.click("#reward-chart", offset=(1 + 5 + 13, 2))
        await settle(pilot)
        assert [task for task, _, _ in stream(pilot)] == [11, 8, 2]


async def test_the_key_bar_says_what_is_possible(tmp_path: Path) -> None:
    live_run(tmp_path)
    clock = [AT]
    app = workbench(tmp_path, "rollouts", now=AT)
    app._clock = lambda: clock[0]
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "x Cancel" in text_of(app).splitlines()[-1]
        write_run_record(tmp_path, "m", "stopped", rollouts=40)
        clock[0] += 2
        await settle(pilot, lambda: "R Resume" in text_of(app).splitlines()[-1])
        assert "Cancel" not in text_of(app).splitlines()[-1]


@pytest.mark.parametrize("state", ["done", "stopped"])
async def test_the_key_bar_of_a_run_that_was_over_from_the_start(tmp_path: Path, state: str) -> None:
    path = live_run(tmp_path, state=state)
    app = workbench(path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: f"m.jsonl · {state}" in text_of(app))
        bar = text_of(app).splitlines()[-1]
        assert "R Resume" in bar
        assert "Cancel" not in bar and "Pause" not in bar


async def test_the_key_bar_follows_the_run_that_is_followed(tmp_path: Path) -> None:
    live_run(tmp_path, stem="over", state="done", started_at=START)
    live_run(tmp_path, stem="going", started_at=START + 1)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: "going.jsonl · running" in text_of(app))
        assert "x Cancel" in text_of(app).splitlines()[-1]
        await pilot.press("right_square_bracket")
        await settle(pilot, lambda: "over.jsonl · done" in text_of(app))
        assert "R Resume" in text_of(app).splitlines()[-1]
        await pilot.press("left_square_bracket")
        await settle(pilot, lambda: "going.jsonl · running" in text_of(app))
        assert "x Cancel" in text_of(app).splitlines()[-1]


async def test_a_run_that_ends_while_the_view_is_paused(tmp_path: Path) -> None:
    live_run(tmp_path)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("p")
        add_events(tmp_path / "m_run", [{"type": "run.ended", "state": "stopped", "error": None, "t": START + 94}])
        await settle(pilot, lambda: screen_of(pilot)._waiting is not None)
        assert "x Cancel" in text_of(app).splitlines()[-1]
        await pilot.press("p")
        await settle(pilot, lambda: "R Resume" in text_of(app).splitlines()[-1])


async def test_nothing_is_drawn_of_a_run_that_is_still_being_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()

    def slow(_entry: object, _clock: object, handshake: Handshake, reporter: Reporter) -> None:
        assert handshake.take()
        reporter.tell(Reading(0.4))
        held.wait(20)
        follow_run(_entry, _clock, handshake, reporter)  # type: ignore[arg-type]

    monkeypatch.setattr(following_screen, "follow_run", slow)
    live_run(tmp_path, state="stopped")
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: "reading the events of the run 40 %" in text_of(app), idle=False)
        shown = text_of(app)
        assert "m.jsonl" in shown and "scored" not in shown and "sent" not in shown and "eta" not in shown
        assert {pane.state for pane in screen_of(pilot).content_panes()} == {PaneState.LOADING}
        assert "R Resume" in shown.splitlines()[-1]
        held.set()
        await settle(pilot, lambda: "12 / 40" in text_of(app))
        assert "reading the events" not in text_of(app)


async def test_another_run_may_be_chosen_while_one_is_being_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck(entry: RunEntry, clock: Any, handshake: Handshake, reporter: Reporter) -> None:
        if entry.paths.rollouts.stem == "large":
            reporter.wait(60)
        else:
            follow_run(entry, clock, handshake, reporter)

    monkeypatch.setattr(following_screen, "follow_run", stuck)
    live_run(tmp_path, stem="large", started_at=START + 9)
    path = live_run(tmp_path, stem="small", state="done")
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: screen_of(pilot).entry is not None, idle=False)
        app.open_screen("rollouts", Target(path))
        await settle(pilot, lambda: "small.jsonl · done" in text_of(app))


SIZES = [(100, 24), (100, 30), (103, 20), (104, 36), (110, 30), (117, 24), (118, 30), (100, 16), (200, 50), (60, 16), (72, 20)]


@pytest.mark.parametrize("ascii", [False, True], ids=["unicode", "ascii"])
async def test_everything_fits_its_pane(tmp_path: Path, ascii: bool) -> None:
    live_run(tmp_path, done=40, total=40, state="done")
    app = workbench(tmp_path, "rollouts", now=AT, ascii=ascii)
    async with app.run_test(size=SIZES[0]) as pilot:
        await settle(pilot)
        screen = screen_of(pilot)
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            for name in ("reward-chart", "token-chart", "numbers"):
                static = screen.query_one(f"#{name}", Static)
                if static.region:
                    texts = str(static.content).splitlines()
                    if name != "numbers":
                        assert len(texts) <= static.content_size.height, (size, name)
                        assert max(map(cell_len, texts)) <= static.content_size.width, (size, name)
            body = screen.query_one("#body").region
            assert all(pane.region.bottom <= body.bottom for pane in screen.panes() if pane.region), size
            stream_list = screen.query_one("#finished-list", VirtualList)
            assert stream_list.size.height >= 2, size  # the header and a row


async def test_the_histogram_shows_what_is_asked_for(tmp_path: Path) -> None:
    live_run(tmp_path)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        pane = screen_of(pilot).query_one("#rewards", Pane)
        assert pane.heading == "Reward"
        await pilot.press("h")
        await settle(pilot)
        assert pane.heading == "Output tokens"
        assert "12 rollouts, p50" in text_of(app)
        assert await pilot.click("#reward-chart", offset=(1 + 5, 2))  # the bar of the fewest tokens: 30 of the failed rollout
        await settle(pilot)
        assert stream(pilot) == [(5, 0, 0)]
        await pilot.press("escape", "h")
        await settle(pilot)
        assert pane.heading == "Time"
        await pilot.press("h")
        await settle(pilot)
        assert pane.heading == "Reward"


async def test_steps_through_the_runs(tmp_path: Path) -> None:
    for number, stem in enumerate(("first", "second", "third")):
        live_run(tmp_path, stem=stem, state="done", started_at=START + number)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "third.jsonl" in text_of(app)
        await pilot.press("right_square_bracket")
        await settle(pilot, lambda: "second.jsonl" in text_of(app))
        await pilot.press("left_square_bracket", "left_square_bracket")
        await settle(pilot, lambda: "third.jsonl" in text_of(app))


async def test_the_stream_stands_still_below_its_top(tmp_path: Path) -> None:
    live_run(tmp_path)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("j", "j")
        cursor = screen_of(pilot).query_one("#finished-list", VirtualList)
        assert cursor.cursor_key == (9, 0)
        add_events(tmp_path / "m_run", [{**finished(12, 0, 1.0), "t": START + 94}])
        await settle(pilot, lambda: "13 / 40" in text_of(app))
        assert cursor.cursor_key == (9, 0)
        assert "+1 new above" in text_of(app)


HOSTILE = "[/red] [bold \x1b]0;title\x07 \x1b[2J\x9b31m \u202egnp.exe 日本語 e\u0301 " + "x" * 100_000


async def test_hostile_text_everywhere(tmp_path: Path) -> None:
    live_run(tmp_path, config={"policy_model_name": HOSTILE[:300]}, error=HOSTILE)
    events = [
        {"type": "notice", "level": "warning", "text": HOSTILE},
        {**started(30, 0), "agent": HOSTILE},
        {"type": "rollout.stage", "task": 30, "rollout": 0, "stage": HOSTILE, "detail": HOSTILE, "since": AT},
        finished(31, 0, failure=HOSTILE, reason=HOSTILE),
        {"type": "server.started", "name": HOSTILE, "kind": "x", "implementation": HOSTILE, "pid": 1, "url": HOSTILE},
        {"type": "run.control", "action": HOSTILE, "by": HOSTILE},
    ]
    (tmp_path / "m_run" / "logs" / "policy_model.log").write_bytes(HOSTILE.encode("utf-8", "surrogatepass") + b"\xff\n")
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        add_events(tmp_path / "m_run", [{**event, "t": START + 94} for event in events])
        async with heartbeat():
            await settle(pilot, lambda: "13 / 40" in text_of(app))
        await pilot.press("l")
        for size in (NARROW, (60, 16), (40, 12), WIDE):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert not _DRIVING.search(text_of(app))


async def test_charts_that_come_into_view_with_a_larger_terminal_are_drawn(tmp_path: Path) -> None:
    """Of a run that is over, which is drawn once, while the terminal was narrow and another screen was in front."""
    path = live_run(tmp_path, done=12, total=12, state="done")
    app = workbench(path, "rollouts", now=AT)
    async with app.run_test(size=NARROW) as pilot:
        await settle(pilot)
        app.open_screen("results")
        await settle(pilot)
        await pilot.resize_terminal(*WIDE)
        app.open_screen("rollouts")
        await settle(pilot, lambda: "11 scored" in text_of(app))
        chart = str(screen_of(pilot).query_one("#reward-chart", Static).content)
        assert "┤" in chart and "11 tasks done, with a score:" in chart
        assert len(chart.splitlines()) == screen_of(pilot).query_one("#rewards", Pane).content_size.height


_DRIVING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
"""What must never reach a terminal."""


async def test_a_burst_of_events_does_not_hold_the_loop(tmp_path: Path) -> None:
    live_run(tmp_path, total=30_000)
    app = workbench(tmp_path, "rollouts", now=AT)
    events = [{"v": 1, "seq": 0, **finished(task, 0, float(task % 2)), "t": START + 94} for task in range(12, 20_000)]
    data = "".join(json.dumps(event) + "\n" for event in events).encode()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        async with heartbeat():
            with open(tmp_path / "m_run" / "events.ndjson", "ab") as file:
                file.write(data)
            await settle(pilot, lambda: "20 000 / 30 000" in text_of(app), seconds=60)
        assert len(stream(pilot)) == 2000
        assert "(the last of 20 000)" in text_of(app)


async def test_keys_of_a_narrow_terminal(tmp_path: Path) -> None:
    live_run(tmp_path)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=NARROW) as pilot:
        await settle(pilot)
        seen = []
        for _ in range(6):
            await pilot.press("tab")
            await settle(pilot)
            pane = screen_of(pilot).current_pane()
            assert pane is not None
            assert pane.display
            seen.append(pane.id)
        assert seen == ["flight", "rewards", "failures", "tokens", "finished", "flight"]


async def test_the_log_of_a_narrow_terminal_is_a_pane_like_others(tmp_path: Path) -> None:
    live_run(tmp_path)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=NARROW) as pilot:
        await settle(pilot)
        shown = lambda: [pane.id for pane in screen_of(pilot).panes() if pane.display]  # noqa: E731
        await pilot.press("l")
        await settle(pilot, lambda: "request 39 answered" in text_of(app))
        assert shown() == ["logs"]
        await pilot.press("tab")
        await settle(pilot)
        assert shown() == ["finished"]
        await pilot.press("tab")
        await settle(pilot)
        assert shown() == ["flight"]
        await pilot.press("escape")
        await settle(pilot)
        assert shown() == ["finished"]


async def test_no_colour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    live_run(tmp_path)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert app.no_color
        assert "12 / 40" in text_of(app)


async def test_logs_in_which_something_is_come_first(tmp_path: Path) -> None:
    logs = live_run(tmp_path).with_name("m_run") / "logs"
    for path in logs.glob("*.log"):
        path.unlink()
    for name, text in (("agent", ""), ("judge", ""), ("math", "graded\n"), ("policy_model", "asked\n")):
        (logs / f"{name}.log").write_text(text)
    app = workbench(tmp_path, "rollouts", now=AT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        seen = []
        for _ in range(5):
            await pilot.press("l")
            await settle(pilot)
            seen.append(screen_of(pilot).query_one(LogPane).heading.split()[-1])
        assert seen == ["math", "policy_model", "agent", "judge", "math"]
