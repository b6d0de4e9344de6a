"""The Rollouts screen in pictures."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from gym_tui.app import WorkbenchApp
from screens.rollouts.following import Handshake
from screens.rollouts.screen import RolloutsScreen
from screens.rollouts.snapshot import Reading
from screens.widgets.background import Reporter
from tests.run_samples import DEAD_PID, START, add_events, live_run, planned, write_events, write_run_record
from tests.workbench import NARROW, WIDE, settle, workbench

AT = START + 95
Picture = Callable[..., bool]


def following(path: Path, **settings: Any) -> WorkbenchApp:
    return workbench(path, "rollouts", now=AT, **settings)


def previews_read(app: WorkbenchApp) -> bool:
    """Whether the records of the visible rows were read."""
    screen = app.screen
    return not isinstance(screen, RolloutsScreen) or "…" not in [line.split()[-1:] for line in screen.lines_on_screen()]


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_running(picture: Picture, tmp_path: Path, size: tuple[int, int]) -> None:
    live_run(tmp_path)
    assert picture(
        following(tmp_path), size, ["m.jsonl · running", "12 / 40   30.0 %", "reward 0.500", "The answer"], until=previews_read
    )  # fmt: skip


def test_running_light(picture: Picture, tmp_path: Path) -> None:
    live_run(tmp_path)
    assert picture(following(tmp_path, theme="gym-light"), WIDE, ["12 / 40", "In flight"], until=previews_read)


def test_ascii(picture: Picture, tmp_path: Path) -> None:
    live_run(tmp_path)
    assert picture(
        following(tmp_path, ascii=True), WIDE, ["12 / 40", "In flight", "####"], hides=["█", "╭", "●"], until=previews_read
    )


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_waiting_for_servers(picture: Picture, tmp_path: Path, size: tuple[int, int]) -> None:
    events = planned(40)[:6]
    events.append({"type": "stack.progress", "ready": 1, "total": 3, "waiting": ["policy_model"]})
    write_run_record(tmp_path, "m", "running")
    write_events(tmp_path / "m_run" / "events.ndjson", events)
    os.utime(tmp_path / "m_run" / "events.ndjson", (AT, AT))
    assert picture(following(tmp_path), size, ["waiting for servers", "waiting for 2 servers: first_steps_agent, policy_model"])


def test_draining(picture: Picture, tmp_path: Path) -> None:
    live_run(tmp_path)
    add_events(tmp_path / "m_run", [{"type": "run.control", "action": "drain", "by": "ada@node7", "t": START + 92}])
    os.utime(tmp_path / "m_run" / "events.ndjson", (AT, AT))
    assert picture(following(tmp_path), WIDE, ["draining", "drain asked for by ada@node7"], until=previews_read)


def test_done(picture: Picture, tmp_path: Path) -> None:
    live_run(tmp_path, done=12, total=12, state="done", scored=11, failed=1, missing=0)
    assert picture(following(tmp_path), WIDE, ["m.jsonl · done", "12 / 12   100.0 %", "The run is over."], until=previews_read)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_died(picture: Picture, tmp_path: Path, size: tuple[int, int]) -> None:
    live_run(tmp_path, host=os.uname().nodename, pid=DEAD_PID)
    assert picture(
        following(tmp_path), size, ["m.jsonl · died", f"the process of this run ({DEAD_PID} on", "R resumes it: gym eval run"],
        steps=_hide_host, until=previews_read,
    )  # fmt: skip


async def _hide_host(pilot: Pilot[Any]) -> None:
    """The machine's name must not be in a picture."""
    screen = pilot.app.screen
    assert isinstance(screen, RolloutsScreen)
    assert screen.shot is not None
    from dataclasses import replace

    screen.background.stop_all()
    screen.shot = replace(screen.shot, entry=replace(screen.shot.entry, host="node7"))
    screen.draw()


def test_silent_elsewhere(picture: Picture, tmp_path: Path) -> None:
    live_run(tmp_path)
    os.utime(tmp_path / "m_run" / "events.ndjson", (AT - 600, AT - 600))
    assert picture(following(tmp_path), WIDE, ["no sign of life for 10 min"], until=previews_read)


@pytest.mark.parametrize(
    ("size", "axis"),
    [((100, 24), "0.0   0.5  1.0"), ((110, 30), "0.0         0.5        1.0")],
    ids=["100x24", "110x30"],
)
def test_charts_in_a_third_of_little(picture: Picture, tmp_path: Path, size: tuple[int, int], axis: str) -> None:
    live_run(tmp_path, done=12, total=12, state="done", scored=11, failed=1, missing=0)
    assert picture(
        following(tmp_path), size, [axis, "11 tasks done", "mixed 3", "p50 3.5 s", "5.5 s  The answer"], until=previews_read
    )


def test_reading(picture: Picture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half_way(_entry: object, _clock: object, handshake: Handshake, reporter: Reporter) -> None:
        handshake.take()
        reporter.tell(Reading(0.4))
        reporter.wait(60)

    monkeypatch.setattr("screens.rollouts.following_screen.follow_run", half_way)
    live_run(tmp_path)
    assert picture(
        following(tmp_path), WIDE, ["m.jsonl", "reading the events of the run 40 %"], hides=["scored", "eta"], idle=False
    )


def test_histogram_of_tokens(picture: Picture, tmp_path: Path) -> None:
    live_run(tmp_path)

    async def press(pilot: Pilot[Any]) -> None:
        await pilot.press("h")

    assert picture(following(tmp_path), WIDE, ["Output tokens", "12 rollouts, p50"], steps=press, until=previews_read)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_no_run(picture: Picture, tmp_path: Path, size: tuple[int, int]) -> None:
    assert picture(following(tmp_path), size, ["No run below . yet.", "r starts one"])


def test_looking_for_a_run(picture: Picture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_root: Path, _cache: object, _now: float, reporter: Reporter) -> None:
        reporter.wait(60)

    monkeypatch.setattr("screens.rollouts.screen.newest_run", never)
    assert picture(following(tmp_path), WIDE, ["looking for a run"], idle=False)


def test_what_is_no_run(picture: Picture, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no run")
    assert picture(following(tmp_path / "notes.txt"), WIDE, ["notes.txt is no rollouts file of a run"])


def test_only_failures(picture: Picture, tmp_path: Path) -> None:
    live_run(tmp_path)

    async def press(pilot: Pilot[Any]) -> None:
        await pilot.press("F")

    assert picture(
        following(tmp_path),
        WIDE,
        ["1 of 12", "only failures", "HTTP 500: the tool server said no"],
        steps=press,
        until=previews_read,
    )


def test_paused_with_a_log(picture: Picture, tmp_path: Path) -> None:
    live_run(tmp_path)

    async def press(pilot: Pilot[Any]) -> None:
        await pilot.press("p", "l")
        await settle(pilot, lambda: "request 39" in "\n".join(pilot.app.screen.lines_on_screen()))  # type: ignore[attr-defined]

    assert picture(
        following(tmp_path), WIDE, ["paused", "Log  policy_model", "request 39 answered [/ok]"], steps=press, until=previews_read
    )


@pytest.mark.parametrize("pane", ["flight", "rewards", "failures", "tokens"])
def test_narrow_panes(picture: Picture, tmp_path: Path, pane: str) -> None:
    live_run(tmp_path)

    async def show(pilot: Pilot[Any]) -> None:
        assert isinstance(pilot.app.screen, RolloutsScreen)
        pilot.app.screen.show_pane(pane)

    shows = {
        "flight": "model call 2",
        "rewards": "tasks done, with a score",
        "failures": "agent_run_error",
        "tokens": "rate, last 5 min",
    }
    assert picture(following(tmp_path), NARROW, [shows[pane]], steps=show, until=previews_read)


def test_too_small(picture: Picture, tmp_path: Path) -> None:
    live_run(tmp_path)
    assert picture(following(tmp_path), (40, 12), ["needs 60x16"])


def test_least_size(picture: Picture, tmp_path: Path) -> None:
    live_run(tmp_path)
    assert picture(following(tmp_path), (60, 16), ["12 / 40", "The"], until=previews_read)
