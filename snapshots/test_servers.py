"""The Servers screen in pictures."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from backend.servers.stack_record import StackRecord
from screens.servers import watching
from screens.servers.log_pane import LogPane
from screens.servers.screen import ServersScreen
from screens.widgets.background import Reporter
from tests.server_samples import samples, server, stack, with_logs
from tests.workbench import NARROW, NOW, WIDE, settle, workbench

Picture = Callable[..., bool]
MOMENTS = 20
"""Samples that are taken before the picture."""
BUSY: dict[str, Any] = {
    "math_with_judge": {
        "cpu_percent": [10.0, 35.0, 62.0, 94.0, 80.0, 55.0, 43.0], "memory": [600_000_000 + 1_000_000 * n for n in range(20)],
        "latency_ms": [8.0, 7.0, 31.0, 8.0, 9.0], "in_flight": [0, 2, 4, 9, 12, 7, 3], "requests": list(range(1000, 1400, 20)),
        "errors": [3] * 10 + [4, 5] * 5, "health": ["success"] * 13 + ["timeout"] + ["success"] * 6,
    },
    "simple_agent": {"cpu_percent": [5.0, 9.0, 7.0], "in_flight": 12},
    "policy_model": {"cpu_percent": [70.0, 101.0, 98.0], "memory": 3_100_000_000, "latency_ms": 640.0, "in_flight": 12},
}  # fmt: skip


def fixed(monkeypatch: pytest.MonkeyPatch, *records: StackRecord, moments: int = MOMENTS, **measured: Any) -> list[StackRecord]:
    """These stacks run; they are sampled so often and not again. The list may be changed."""
    running = list(records)
    number = itertools.count()

    def sample(now: Sequence[StackRecord], _earlier: object) -> Any:
        current = next(number)
        if current == moments - 1:
            monkeypatch.setattr(watching, "SAMPLE_SECONDS", 1e9)
        return tuple(samples(record, current, **(measured or BUSY)) for record in now)

    monkeypatch.setattr(watching, "running_stacks", lambda: tuple(running))
    monkeypatch.setattr(watching, "sample_stacks", sample)
    monkeypatch.setattr(watching, "SAMPLE_SECONDS", 0.0)
    monkeypatch.setattr(watching, "RECORD_SECONDS", 0.01)
    return running


def measured_enough(moments: int = MOMENTS) -> Callable[[Any], bool]:
    def enough(app: Any) -> bool:
        screen = app.screen
        if not isinstance(screen, ServersScreen) or screen.snapshot is None:
            return False
        views = [view for stack_view in screen.snapshot.stacks for view in stack_view.servers if not view.over]
        return bool(views) and all(len(view.cpu) == moments or view.ended for view in views)

    return enough


def app_of(**settings: Any) -> Any:
    return workbench(Path("."), "servers", **settings)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_running(picture: Picture, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    fixed(monkeypatch, with_logs(stack()))
    shows = [
        "math_verified   3 servers · ready",
        "▸  math_with_judge",
        "● up",
        "55%",
        "ERROR judge request failed: 503 [/red]",
        "follow · 7 lines",
    ]
    assert picture(app_of(), size, shows, until=measured_enough())


def test_running_light(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed(monkeypatch, with_logs(stack()))
    assert picture(app_of(theme="gym-light"), WIDE, ["4 up", "p50 8 ms"], until=measured_enough())


def test_ascii(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed(monkeypatch, with_logs(stack()))
    assert picture(app_of(ascii=True), WIDE, ["O up", "vvvvvvvvvvvvvxvvvvvv"], hides=["●", "▁", "╭"], until=measured_enough())


def five_states() -> StackRecord:
    kinds = ("resources_servers", "responses_api_agents", "responses_api_models")
    servers = (
        server("math_with_judge", kinds[0], 11003, 4188, uses=("judge_model",)),
        server("code_gen", kinds[0], 11007, 4194, state="preparing", phase="preparing", phase_since=NOW - 75, seconds=None),
        server("simple_agent", kinds[1], 11004, 4190, uses=("math_with_judge", "policy_model")),
        server("policy_model", kinds[2], 11005, 4192, state="starting", phase="importing", phase_since=NOW - 31, seconds=None),
        server("judge_model", kinds[2], 11006, 4193, state="ended", code=1),
        server("old_model", kinds[2], 11008, 4195, state="ended", code=0),
        server("head_server", "head_server", 11000, 4121),
    )
    logs = {
        "math_with_judge": ["INFO: fine"],
        "judge_model": [
            "INFO: starting",
            "Traceback (most recent call last):",
            '  File "app.py", line 3',
            "RuntimeError: no GPU [/x]",
        ],
    }
    return with_logs(stack(servers=servers, state="starting"), logs)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_states(picture: Picture, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    fixed(monkeypatch, five_states(), math_with_judge={"health": "timeout", "latency_ms": None, "error": "no answer within 2 s"})
    shows = ["! silent", "◐ preparing", "◐ importing", "✗ exit 1", "RuntimeError: no GPU [/x]", "timeout"]

    shows += ["○ stopped"] if size == WIDE else []

    async def to_the_dead(pilot: Pilot[Any]) -> None:
        screen = pilot.app.screen
        assert isinstance(screen, ServersScreen)
        screen._list.move_to_key(("20261118-105436-ab12", "judge_model"))
        await settle(pilot, lambda: "no GPU" in "\n".join(screen._log_pane.text.visible_text()))

    assert picture(app_of(), size, shows, steps=to_the_dead, until=measured_enough())


def test_steps_of_a_start(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed(monkeypatch, five_states())

    async def to_the_start(pilot: Pilot[Any]) -> None:
        screen = pilot.app.screen
        assert isinstance(screen, ServersScreen)
        screen._list.move_to_key(("20261118-105436-ab12", "policy_model"))

    assert picture(app_of(), WIDE, ["✓ preparing", "◐ importing", "31.0 s"], steps=to_the_start, until=measured_enough())


def test_several_stacks(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = (
        server("tools_agent", "responses_api_agents", 12001, 5001, uses=("tools",)),
        server("tools", "resources_servers", 12002, 5002),
        server("head_server", "head_server", 12000, 5000),
    )
    command = ("gym", "eval", "run", "--benchmark", "tools", "--output", "results/tools.jsonl")
    other = stack(
        "20261118-110000-cd34", name="tools", servers=tools, head_url="http://127.0.0.1:12000", started=NOW - 60,
        run="results/tools_run", command=command, pid=4999,
    )  # fmt: skip
    fixed(monkeypatch, with_logs(stack(pid=4120)), with_logs(other))

    async def to_the_run(pilot: Pilot[Any]) -> None:
        screen = pilot.app.screen
        assert isinstance(screen, ServersScreen)
        screen._list.move_to_key(("20261118-110000-cd34", ""))

    shows = [
        "2 stacks · 7 up",
        "serves tools.jsonl",
        "$ gym eval run --benchmark tools",
        "Who calls whom",
        "The log of the server under the cursor",
    ]
    assert picture(app_of(), WIDE, shows, steps=to_the_run, until=measured_enough())


def test_asked_to_stop(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed(monkeypatch, with_logs(stack()))

    async def press(pilot: Pilot[Any]) -> None:
        await pilot.press("x")

    shows = ["x again stops the stack math_verified: 3 servers; math_with_judge is called by simple_agent"]
    assert picture(app_of(), WIDE, shows, steps=press, until=measured_enough())


def test_a_stack_that_ended(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    running = fixed(monkeypatch, with_logs(stack()))

    async def end(pilot: Pilot[Any]) -> None:
        running.clear()
        screen = pilot.app.screen
        assert isinstance(screen, ServersScreen)
        await settle(pilot, lambda: screen.snapshot is not None and not screen.snapshot.running)

    shows = ["math_verified   3 servers · ended 0 s ago", "○ stopped", "task=19 rep=3"]
    enough = measured_enough()
    assert picture(app_of(), WIDE, shows, steps=end, until=lambda app: enough(app) or not running)


def test_search_with_a_hit(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed(monkeypatch, with_logs(stack()))

    async def search(pilot: Pilot[Any]) -> None:
        await pilot.press("slash", *"verify", "enter", "n")

    assert picture(app_of(), WIDE, ["match 2/2  n N  esc"], steps=search, until=measured_enough())


def test_errors_with_times(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed(monkeypatch, with_logs(stack()))

    async def press(pilot: Pilot[Any]) -> None:
        await pilot.press("E", "t")

    assert picture(
        app_of(), WIDE, ["errors only · follow · 2 of 7 lines", "11:06:10.447 ERROR"], steps=press, until=measured_enough()
    )


def test_paused_with_new_lines_below(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    record = with_logs(stack(), {"math_with_judge": [f"INFO: request {number}" for number in range(100)]})
    fixed(monkeypatch, record)

    async def scroll_up(pilot: Pilot[Any]) -> None:
        await pilot.press("l", "pageup", "pageup")
        with open(record.servers[0].log, "a") as file:
            file.writelines(f"INFO: later {number}\n" for number in range(12))
        pane = pilot.app.screen.query_one(LogPane)
        await settle(pilot, lambda: pane.text.pending == 12)

    # Nobody looks again at when the log was written.
    shows = ["+12 new lines below: f", "paused · 112 lines"]
    assert picture(app_of(), WIDE, shows, steps=scroll_up, until=measured_enough())


def test_stale(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed(monkeypatch, with_logs(stack()))
    now = [NOW]
    app = app_of()
    app._clock = lambda: now[0]

    async def leave(pilot: Pilot[Any]) -> None:
        await pilot.press("p")
        now[0] += 14
        await settle(pilot, lambda: "paused 14 s" in "\n".join(app.screen.lines_on_screen()))

    assert picture(app, WIDE, ["paused 14 s"], steps=leave, until=measured_enough())


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_nothing_runs(picture: Picture, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    fixed(monkeypatch)
    assert picture(app_of(), size, ["Nothing runs.", "r puts a command", "$ gym env status"])


def test_loading(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_board: object, _clock: object, reporter: Reporter) -> None:
        reporter.wait(60)

    monkeypatch.setattr("screens.servers.screen.watch_stacks", never)
    assert picture(app_of(), WIDE, ["Looking for stacks"], idle=False)


def test_failed(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("the disk [/red] is gone")

    monkeypatch.setattr(watching, "running_stacks", fail)
    assert picture(app_of(), WIDE, ["✗ OSError: the disk [/red] is gone", "p twice tries again"])


def test_detail_in_a_narrow_terminal(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed(monkeypatch, with_logs(stack()))

    async def press(pilot: Pilot[Any]) -> None:
        await pilot.press("enter")

    assert picture(app_of(), NARROW, ["Detail  math_with_judge", "✓✓✓✓✓✓✓✓✓✓✓✓✓✗✓✓✓✓✓✓"], steps=press, until=measured_enough())


def test_forty_servers(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    many = tuple(server(f"server_{n:02}", "resources_servers", 11100 + n, 6000 + n) for n in range(40))
    fixed(monkeypatch, with_logs(stack(servers=many)))

    async def press(pilot: Pilot[Any]) -> None:
        await pilot.press("end")

    assert picture(app_of(), WIDE, ["server_39", "40 up"], steps=press, until=measured_enough())


def test_too_small(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed(monkeypatch, with_logs(stack()))
    assert picture(app_of(), (40, 12), ["needs 60x16"], until=measured_enough())


def test_least_size(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed(monkeypatch, with_logs(stack()))
    assert picture(app_of(), (60, 16), ["● up", "task=19"], until=measured_enough())
