"""The Servers screen as somebody uses it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.events import AppBlur, AppFocus
from textual.pilot import Pilot

from backend.servers.stack_record import StackRecord
from screens.servers import watching
from screens.servers.log_pane import LogPane
from screens.servers.screen import FIRST_STACK, ServersScreen
from screens.widgets.filter_box import FilterBox
from screens.widgets.pane import Pane, PaneState
from screens.widgets.virtual_list import VirtualList
from screens.widgets.virtual_text import VirtualText
from screens.widgets.workbench import Target
from tests.server_samples import LOG, forget, keep, samples, server, stack, start_events, with_logs, write_events
from tests.workbench import NARROW, NOW, WIDE, NotingWorkbench, heartbeat, noting_workbench, settle, text_of

pytestmark = pytest.mark.slow

HOSTILE = "[/red] \x1b[2J\x1b]52;c;AAAA\x07 \u202e 数学 [bold"


class Desk(NotingWorkbench):
    """Notes commands as well."""

    def start_command(self, words: Any, folder: str | None = None) -> None:
        self.asked.append(("start", (list(words), folder)))


def desk(now: Callable[[], float] = lambda: NOW) -> Desk:
    app = noting_workbench(Path("."), "servers")
    app.__class__ = Desk
    assert isinstance(app, Desk)
    app._clock = now
    return app


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What is measured of the servers of all stacks, by their names; a test may change it."""
    facts: dict[str, Any] = {}
    number = itertools.count()
    monkeypatch.setattr(
        watching, "sample_stacks", lambda records, _earlier: tuple(samples(record, next(number), **facts) for record in records)
    )
    monkeypatch.setattr(watching, "SAMPLE_SECONDS", 0.25)
    monkeypatch.setattr(watching, "RECORD_SECONDS", 0.05)
    yield facts


def screen_of(pilot: Pilot[Any]) -> ServersScreen:
    screen = pilot.app.screen
    assert isinstance(screen, ServersScreen)
    return screen


def rows_of(pilot: Pilot[Any]) -> VirtualList:
    return screen_of(pilot).query_one("#server-list", VirtualList)


def log_of(pilot: Pilot[Any]) -> LogPane:
    return screen_of(pilot).query_one(LogPane)


def log_text(pilot: Pilot[Any]) -> str:
    return "\n".join(log_of(pilot).text.visible_text())


def running(**facts: Any) -> StackRecord:
    return keep(with_logs(stack(**facts)))


def sampled(pilot: Pilot[Any]) -> bool:
    return "200 5ms" in text_of(pilot.app)


async def test_shows_what_runs() -> None:
    running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        async with heartbeat():
            text = text_of(app)
            assert "math_verified   3 servers · ready · head 127.0.0.1:11000 · up 12:04" in text
            assert rows_of(pilot).cursor_key == ("20261118-105436-ab12", "math_with_judge")
            assert "4 up" in text
            assert "Log  math_with_judge" in text and "task=19 rep=3" in text
            assert "$ gym env start --benchmark math_verified --model-type openai_model" in text
            for _ in range(10):
                await pilot.press("j")
                await settle(pilot)


async def test_the_log_follows_the_cursor() -> None:
    running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        await pilot.press("j")
        await settle(pilot, lambda: "simple_agent answers" in log_text(pilot))
        assert "Log  simple_agent" in text_of(app) and "Detail  simple_agent" in text_of(app)
        await pilot.press("home")
        await settle(pilot, lambda: "Detail  math_verified" in text_of(app))
        assert log_of(pilot).state is PaneState.EMPTY
        assert "simple_agent → math_with_judge," in text_of(app)


async def test_several_stacks_each_with_its_servers(measured: dict[str, Any]) -> None:
    running()
    other = (server("tools_agent", "responses_api_agents", 12001, 5001), server("head_server", "head_server", 12000, 5000))
    keep(
        stack(
            "20261118-110000-cd34",
            name="tools",
            servers=other,
            head_url="http://127.0.0.1:12000",
            started=NOW - 60,
            run="results/t_run",
        )
    )
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: "2 stacks · 6 up" in text_of(app))
        assert "tools   1 server · ready · head 127.0.0.1:12000 · up 1:00 · serves t.jsonl" in text_of(app)
        await pilot.press("end")
        await settle(pilot)
        assert "This server has no log file." in log_of(pilot).message_text
        await pilot.press("v")
        assert app.asked == [("rollouts", Target(Path("results/t_run")))]


async def test_nothing_runs() -> None:
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "Nothing runs." in text_of(app) and "$ gym env status" in text_of(app)
        for key in ("x", "X", "R", "u", "c", "v", "o", "n", "delete", "y"):
            await pilot.press(key)
        assert len(app.notices) == 10
        await pilot.press("r")
        assert app.asked == [("prefill", FIRST_STACK)]


async def test_starts_what_is_chosen_in_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Desk, "chosen_words", lambda _self: ("--benchmark", "mcqa", "+a=b c"))
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "r starts what is chosen in Config: --benchmark mcqa '+a=b c'" in text_of(app)
        await pilot.press("r")
        assert app.asked == [("prefill", "env start --benchmark mcqa '+a=b c'")]


async def test_stopping_takes_two_steps_and_says_what_depends_on_it(measured: dict[str, Any]) -> None:
    measured["policy_model"] = {"in_flight": 7}
    running()
    now = [NOW]
    app = desk(lambda: now[0])
    async with app.run_test(size=(160, 40)) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        await pilot.press("end", "x")
        question = "x again stops the stack math_verified: 3 servers; policy_model is called by math_with_judge, simple_agent; 7 requests in flight"
        assert app.notices[-1][2] == question
        assert screen_of(pilot).query_one("#servers", Pane)._foot == question
        assert app.asked == []
        now[0] += 6
        await settle(pilot, lambda: screen_of(pilot).query_one("#servers", Pane)._foot == "")
        await pilot.press("x")
        assert app.asked == []
        await pilot.press("x")
        assert app.asked == [("start", (["env", "stop", "math_verified"], None))]


async def test_another_row_is_asked_for_anew() -> None:
    running()
    keep(stack("20261118-110000-cd34", name="tools"))
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: "2 stacks" in text_of(app))
        await pilot.press("x", "end", "x")
        assert app.asked == []
        await pilot.press("X", "x", "X", "X")
        assert app.asked == [("start", (["env", "stop", "--all"], None))]


async def test_restarting_waits_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    record = running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        alive = [True]
        monkeypatch.setattr(watching, "is_running", lambda _record: alive[0])
        await pilot.press("R", "R")
        assert app.asked == [("start", (["env", "stop", "math_verified"], None))]
        alive[0] = False
        forget(record)
        await settle(pilot, lambda: len(app.asked) == 2)
        assert app.asked[1] == ("start", (["env", *record.command[2:]], "evaluations"))
        await settle(pilot, lambda: "ended" in text_of(app))
        running(stack_id="20261118-110630-ef56")
        await settle(pilot, lambda: "ended" not in text_of(app))
        assert rows_of(pilot).cursor_key == ("20261118-110630-ef56", "math_with_judge")


async def test_a_stack_that_has_ended_is_started_once_however_often_it_is_asked_for() -> None:
    record = running()
    now = [NOW]
    app = desk(lambda: now[0])
    start = ("start", (["env", *record.command[2:]], "evaluations"))
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        forget(record)
        await settle(pilot, lambda: "ended" in text_of(app))
        await pilot.press("R", "R", "R")
        assert app.asked == [start]
        assert app.notices[-1][2] == "the stack math_verified is being started again; J shows its job"
        now[0] += 6  # it may have failed to start
        await pilot.press("R")
        assert app.asked == [start]
        question = "R again starts the stack math_verified once more: it was started 6 s ago and is not there yet"
        assert app.notices[-1][2] == question
        await pilot.press("R")
        assert app.asked == [start] * 2
        running(stack_id="20261118-110630-ef56")
        await settle(pilot, lambda: "ended" not in text_of(app))
        await pilot.press("R")
        assert app.asked == [start] * 2 and app.notices[-1][2].startswith("R again stops the stack math_verified")


async def test_a_stack_that_is_about_to_end_is_started_once(monkeypatch: pytest.MonkeyPatch) -> None:
    record = running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        alive = [True]
        monkeypatch.setattr(watching, "is_running", lambda _record: alive[0])
        await pilot.press("R", "R", "R", "R")
        forget(record)
        await settle(pilot, lambda: "ended" in text_of(app), idle=False)
        await pilot.press("R")
        assert app.asked == [("start", (["env", "stop", "math_verified"], None))]
        assert app.notices[-1][2] == "the stack math_verified starts again as soon as it has ended"
        alive[0] = False
        await settle(pilot, lambda: len(app.asked) > 1)
        await pilot.press("R")
        assert app.asked[1:] == [("start", (["env", *record.command[2:]], "evaluations"))]


async def test_two_stacks_of_one_command_come_back_each_in_the_place_of_its_own() -> None:
    first, second = running(), running(stack_id="20261118-105500-cd34")
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: "2 stacks" in text_of(app))
        forget(first)
        await settle(pilot, lambda: "ended" in text_of(app))
        rows_of(pilot).move_to_key((first.id, "simple_agent"))
        await pilot.press("R")
        await settle(pilot)
        assert "ended" in text_of(app), "the other one is not the one that comes back"
        forget(second)
        await settle(pilot, lambda: text_of(app).count("ended") == 2)
        rows_of(pilot).move_to_key((second.id, "policy_model"))
        await pilot.press("R", "R")
        assert len(app.asked) == 2
        running(stack_id="20261118-110630-ef56")
        running(stack_id="20261118-110631-ab78")
        await settle(pilot, lambda: "2 stacks" in text_of(app) and "ended" not in text_of(app))


async def test_a_stack_that_does_not_end_can_be_restarted_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    running()
    app = desk()
    monkeypatch.setattr(watching, "GONE_SECONDS", 0.0)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        await pilot.press("R", "R")
        await settle(pilot, lambda: "has not ended after" in app.notices[-1][2])
        await pilot.press("R", "R")
        assert app.asked == [("start", (["env", "stop", "math_verified"], None))] * 2


async def test_a_stack_that_belongs_to_a_run_is_not_restarted() -> None:
    running(run="results/m_run")
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        await pilot.press("R")
        assert "belongs to a run" in app.notices[-1][2]
        assert app.asked == []


async def test_a_stack_that_ends_stays_until_it_is_taken_off() -> None:
    record = running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        forget(record)
        await settle(pilot, lambda: "math_verified   3 servers · ended 0 s ago" in text_of(app))
        await settle(pilot, lambda: "○ stopped" in text_of(app) and "task=19 rep=3" in log_text(pilot))
        await pilot.press("x")
        assert "has ended already" in app.notices[-1][2]
        await pilot.press("R")
        assert app.asked == [("start", (["env", *record.command[2:]], "evaluations"))]
        await pilot.press("delete")
        await settle(pilot, lambda: "Nothing runs." in text_of(app))


async def test_a_server_that_died_is_named_with_its_last_line() -> None:
    record = running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        servers = tuple(
            replace(each, state="ended", code=1) if each.name == "math_with_judge" else each for each in record.servers
        )
        keep(replace(record, servers=servers))
        await settle(pilot, lambda: "✗ exit 1" in text_of(app))
        line = next(line for line in text_of(app).splitlines() if "math_with_judge  rs" in line)
        assert "2026-11-18 11:06:11,002 INFO POST /verify 200 9 ms task=19 rep=3" in line
        assert "3 up · 1 failed" in text_of(app)


async def test_steps_of_a_start_are_told() -> None:
    starting = tuple(
        replace(each, state="starting", phase="importing", phase_since=NOW - 3.1) if each.name == "math_with_judge" else each
        for each in stack().servers
    )
    record = running(servers=starting, state="starting")
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: "◐ importing" in text_of(app))
        assert "3 servers · starting, 2 ready" in text_of(app)
        assert "✓ preparing  200 ms" in text_of(app) and "◐ importing   3.1 s" in text_of(app)
        keep(replace(record, state="ready", servers=with_logs(stack()).servers))
        await settle(pilot, lambda: "● up" in text_of(app).split("math_with_judge")[1])
        details = screen_of(pilot).query_one("#detail-text", VirtualText)
        await settle(pilot, lambda: details.blocks[0].head == "Server")
        assert (details.cursor, details.scroll_offset.y) == (0, 0)  # nobody has asked to look at the steps, which are below now


async def test_the_step_in_which_a_server_died_does_not_go_on(measured: dict[str, Any]) -> None:
    starting = tuple(replace(each, state="starting", phase="importing", phase_since=NOW - 9) for each in stack().servers)
    record = running(servers=starting, state="starting")
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: "◐ importing" in text_of(app))
        end = {"type": "server.ended", "name": "math_with_judge", "code": 1, "t": NOW - 2}
        write_events(Path(record.events), [*start_events(record), end])
        forget(record)
        await settle(pilot, lambda: "✗ exit 1" in text_of(app))
        details = screen_of(pilot).query_one("#detail-text", VirtualText)
        assert details.blocks[0].kind == "error" and (details.cursor, details.scroll_offset.y) == (0, 0)
        start = next(block.body for block in details.blocks if block.head == "Start")
        assert start.splitlines()[-1].split() == ["✗", "importing", "7.0", "s"]


async def test_watching_stops_where_nobody_can_see_it(measured: dict[str, Any]) -> None:
    running()
    now = [NOW]
    app = desk(lambda: now[0])
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        screen, pane = screen_of(pilot), screen_of(pilot).query_one("#servers", Pane)
        app.post_message(AppBlur())
        await settle(pilot, lambda: pane.state is PaneState.STALE)
        assert "stale" not in text_of(app)
        measured["math_with_judge"] = {"latency_ms": 99.0}
        now[0] += 14
        await settle(pilot, lambda: "stale 14 s" in text_of(app))
        assert "200 99ms" not in text_of(app)
        app.post_message(AppFocus())
        await settle(pilot, lambda: "200 99ms" in text_of(app))
        assert pane.state is PaneState.READY
        app.switch_mode("results")
        await settle(pilot, lambda: not screen._watching)
        app.switch_mode("servers")
        await settle(pilot, lambda: screen._watching and pane.state is PaneState.READY)
        await pilot.press("p")
        await settle(pilot, lambda: "paused 0 s" in text_of(app))
        await pilot.press("p")
        await settle(pilot, lambda: pane.state is PaneState.READY)


async def test_what_cannot_be_read_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    running()
    app = desk()

    def fail() -> None:
        raise OSError("the disk is gone")

    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        with monkeypatch.context() as broken:
            broken.setattr(watching, "running_stacks", fail)
            await settle(pilot, lambda: "OSError: the disk is gone" in text_of(app))
            assert "math_with_judge" in text_of(app)
        screen_of(pilot)._look_at_clock()
        screen_of(pilot).draw()
        screen_of(pilot)._take(screen_of(pilot).snapshot)  # as taking a stack off the list does, which reads nothing
        await settle(pilot)
        assert "OSError: the disk is gone" in text_of(app) and "─ old · " in text_of(app)
        await pilot.press("p", "p")
        await settle(pilot, lambda: screen_of(pilot).query_one("#servers", Pane).state is PaneState.READY)


async def test_copies() -> None:
    record = running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        await pilot.press("u", "y", "l", "y", "enter")
        screen_of(pilot).show_pane("detail")
        await pilot.press("y", "Y")
        texts = [text for what, text in app.asked if what == "copy"]
        assert texts[:3] == ["http://127.0.0.1:11003"] * 2 + [str(Path(record.servers[0].log))]
        assert texts[3].startswith("url      http://127.0.0.1:11003")
        assert texts[4] == "gym env start --benchmark math_verified --model-type openai_model"


async def test_links_lead_to_other_servers() -> None:
    running()
    app = desk()
    async with app.run_test(size=(120, 60)) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        await pilot.press("enter")
        text = screen_of(pilot)._detail.text
        assert text.move_to_key(("calls", "policy_model", "to"))
        await pilot.press("enter")
        await settle(pilot, lambda: "Detail  policy_model" in text_of(app))
        assert "called by → simple_agent" in text_of(app)


async def test_config_opens_with_the_words() -> None:
    running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        await pilot.press("c")
        words = ("--benchmark", "math_verified", "--model-type", "openai_model")
        assert app.asked == [("config", Target(Path("evaluations"), words=words))]


async def test_sorting(measured: dict[str, Any]) -> None:
    measured["policy_model"] = {"cpu_percent": 80.0}
    running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: "80%" in text_of(app))
        await pilot.press("s", "s", "s")
        await settle(pilot)
        assert "CPU▼" in text_of(app)
        names = [key[1] for index in range(5) if isinstance(key := rows_of(pilot).rows.key(index), tuple)]
        assert names == ["", "head_server", "policy_model", "math_with_judge", "simple_agent"]
        assert rows_of(pilot).cursor_key == ("20261118-105436-ab12", "math_with_judge")


async def log_open(pilot: Pilot[Any]) -> Path:
    await settle(pilot, lambda: "task=19 rep=3" in log_text(pilot))
    path = log_of(pilot).path
    assert path is not None
    return path


def append(path: Path, *lines: str) -> None:
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


async def test_the_log_is_followed() -> None:
    running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        path = await log_open(pilot)
        append(path, *[f"line {number}" for number in range(50)])
        await settle(pilot, lambda: "line 49" in log_text(pilot))
        assert "follow · 57 lines" in text_of(app)
        await pilot.press("l", "pageup")
        append(path, "one more")
        await settle(pilot, lambda: "+1 new line below: f" in text_of(app))
        assert "paused · 58 lines" in text_of(app)
        await pilot.press("f")
        await settle(pilot, lambda: "one more" in log_text(pilot))
        assert "follow" in text_of(app)
        os.replace(path, path.with_suffix(".1"))
        append(path, "after the rotation")
        await settle(pilot, lambda: "follow · 1 line" in text_of(app) and "after the rotation" in log_text(pilot))


async def test_only_errors_and_back() -> None:
    running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        path = await log_open(pilot)
        await pilot.press("E")
        await settle(pilot)
        assert [line for line in log_text(pilot).splitlines() if line] == [
            "2026-11-18 11:06:10,447 ERROR judge request failed: 503 [/red] Service",
            "Unavailable",
            "    retry 1/3 in 0.5 s",
        ]
        assert "errors only · follow · 2 of 7 lines" in text_of(app)
        append(path, "INFO no", "ERROR yes")
        await settle(pilot, lambda: "ERROR yes" in log_text(pilot))
        assert "INFO no" not in log_text(pilot)
        await pilot.press("escape")
        await settle(pilot, lambda: "INFO no" in log_text(pilot))


async def test_words_narrow_the_log() -> None:
    running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await log_open(pilot)
        await pilot.press("ampersand", *"verify -rep=2", "enter")
        await settle(pilot)
        assert [line for line in log_text(pilot).splitlines() if line] == [LOG[-1]]
        await pilot.press("escape")
        await settle(pilot)
        assert "Uvicorn running" in log_text(pilot)
        await pilot.press("ampersand", *"nowhere")
        await settle(pilot)
        assert log_of(pilot).message_text.startswith("No line passes the filter.")
        await pilot.press("escape")
        await settle(pilot)
        assert "Uvicorn running" in log_text(pilot)


async def test_times_and_the_last_minutes() -> None:
    running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await log_open(pilot)
        await pilot.press("t")
        await settle(pilot)
        assert "11:06:11.002 INFO POST /verify 200 9 ms task=19 rep=3" in log_text(pilot)
        await pilot.press("ctrl+t")
        await settle(pilot)
        assert "last 1 min" in text_of(app)
        assert next(line.strip() for line in log_text(pilot).splitlines() if line).startswith("11:06:10.447 ERROR")
        await pilot.press("ctrl+t")
        await settle(pilot)
        assert "11:05:10.020 WARNING" in log_text(pilot) and "task=17" not in log_text(pilot)
        await pilot.press("ctrl+t", "ctrl+t", "t")
        await settle(pilot)
        assert LOG[0] in log_text(pilot)


async def test_searching_the_log() -> None:
    running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await log_open(pilot)
        await pilot.press("slash", *"verify", "enter")
        await settle(pilot)
        assert "match 1/2  n N  esc" in text_of(app)
        await pilot.press("n")
        await settle(pilot)
        assert "match 2/2" in text_of(app)
        await pilot.press("N", "escape")
        await settle(pilot)
        assert "match" not in text_of(app)
        assert not screen_of(pilot).query_one("#log-search", FilterBox).has_class("-open")
        await pilot.press("slash", *"nowhere", "enter", "n")
        await settle(pilot)
        assert "no match" in text_of(app)
        assert app.notices[-1][2].startswith("there is no hit")


async def test_saving_the_log_as_it_is_narrowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, str]] = []
    monkeypatch.setattr(Desk, "write_text", lambda _self, text, name: written.append((text, name)))
    running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await log_open(pilot)
        await pilot.press("E", "w")
        text, name = written[0]
        assert name == "math_with_judge"
        assert text.splitlines() == [
            "2026-11-18 11:06:10,447 ERROR judge request failed: 503 [/red] Service Unavailable",
            "    retry 1/3 in 0.5 s",
        ]


async def test_a_long_log_opens_at_its_end_without_a_stall() -> None:
    record = stack()
    lines = [f"2026-11-18 10:00:00,000 INFO request {number} " + "x" * 60 for number in range(60_000)]
    keep(with_logs(record, {"math_with_judge": lines}))
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        async with heartbeat():
            await settle(pilot, lambda: "request 59999" in log_text(pilot))
            await settle(pilot, lambda: "the last 10 000 lines" in text_of(app))
        async with heartbeat():
            await pilot.press("E", "E", "t", "W")
            await settle(pilot)
            await pilot.press("slash", *"request 59990", "enter")
            await settle(pilot, lambda: "match 1/1" in text_of(app))


async def test_hostile_text_is_only_text(measured: dict[str, Any]) -> None:
    measured["evil"] = {"health": "connection_error", "error": HOSTILE}
    servers = (
        server(
            "evil", "resources_servers", 11003, 7, implementation=HOSTILE, folder=HOSTILE, environment=HOSTILE, uses=(HOSTILE,)
        ),
        server(HOSTILE, HOSTILE, 11004, 8, url=HOSTILE, phase=HOSTILE, state="starting"),
        server("dead", "resources_servers", 11005, 9, state="ended", code=1),
    )
    record = with_logs(stack(servers=(), name=HOSTILE, command=("gym", "env", "start", HOSTILE), run=HOSTILE))
    Path("evil.log").write_text(f"ERROR {HOSTILE}\n")
    keep(replace(record, servers=tuple(replace(each, log="evil.log") for each in servers), folder=HOSTILE))
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: "refused" in text_of(app))
        for key in ("j", "j", "x", "enter", "home", "R", "u", "tab", "tab"):
            await pilot.press(key)
            await settle(pilot)
        await pilot.press("home", "j", "l", "E", "t", "w")
        await settle(pilot)
        assert "[/red]" in text_of(app)
        for line in text_of(app).splitlines():
            assert line.replace("␛", "").isprintable() and "\u202e" not in line


async def test_forty_servers_scroll() -> None:
    many = tuple(server(f"server_{number:02}", "resources_servers", 11100 + number, 6000 + number) for number in range(40))
    running(servers=many)
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        async with heartbeat():
            await pilot.press("end")
            await settle(pilot)
            assert "server_39" in text_of(app) and "server_00" not in text_of(app).split("╭─ Log")[0]
            await settle(pilot)


async def test_narrow_terminals_show_log_or_detail() -> None:
    running()
    app = desk()
    async with app.run_test(size=NARROW) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        assert "Log  math_with_judge" in text_of(app) and "Detail" not in text_of(app)
        await pilot.press("enter")
        await settle(pilot)
        assert "Detail  math_with_judge" in text_of(app) and "─ Log" not in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "Log  math_with_judge" in text_of(app)


async def test_survives_small_terminals() -> None:
    running()
    app = desk()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: sampled(pilot))
        for size in ((40, 12), (60, 16), (20, 5), (200, 60)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
        assert "math_with_judge" in text_of(app)
