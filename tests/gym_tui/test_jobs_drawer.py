"""The drawer: what ran, its output, stopping in two steps, starting again; the frame tells of running jobs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from backend.io.homes import state_home
from gym_tui.command_line import CommandInput, CommandLine
from gym_tui.jobs import Job, save_job
from gym_tui.jobs_drawer import JobsDrawer
from screens.widgets.virtual_list import VirtualList
from screens.widgets.virtual_text import VirtualText
from tests.gym_tui.small_screens import SmallScreen, small_workbench
from tests.run_samples import live_run
from tests.workbench import NOW, heartbeat, lines, settle, text_of, workbench

pytestmark = pytest.mark.slow

STUBBORN = (
    "import signal, sys, time\nsignal.signal(signal.SIGINT, lambda *_: sys.exit(7))\nprint('up', flush=True)\ntime.sleep(60)"
)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Job]:
    """A running process of an earlier workbench, with output."""
    folder = state_home("jobs")
    folder.mkdir(parents=True)
    log = folder / "earlier.log"
    with open(log, "wb") as out:
        process = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=out, start_new_session=True)
    while b"up" not in log.read_bytes():
        time.sleep(0.01)
    job = Job("earlier", ("env", "start"), tmp_path, log, process.pid, psutil.Process(process.pid).create_time(), NOW - 61)
    save_job(job)
    yield job
    process.kill()
    process.wait()


async def test_it_opens_below_the_screen_which_stays_in_use(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        before = app.front.focused
        await pilot.press("J")
        await settle(pilot)
        assert "Nothing was started from here." in text_of(app) and "task 0" in text_of(app)
        await pilot.press("5")
        await settle(pilot, lambda: app.current_mode == "viewer")
        await pilot.press("7")
        await settle(pilot, lambda: app.current_mode == "results")
        app.front.query_one("#job-list").focus()
        await settle(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert not app.front.query(JobsDrawer)
        assert app.front.focused is before


async def test_j_goes_to_the_open_drawer_and_then_closes_it(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("J")
        await settle(pilot)
        app.front.query_one("#rows").focus()
        await settle(pilot)
        await pilot.press("J")
        await settle(pilot)
        assert app.front.query_one("#job-list").has_focus
        await pilot.press("J")
        await settle(pilot)
        assert not app.front.query(JobsDrawer)


async def test_escape_in_the_screen_closes_it_last(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("J")
        await settle(pilot)
        app.front.query_one("#rows").focus()
        await settle(pilot)
        await pilot.press("z", "escape")
        await settle(pilot)
        assert app.front.query(JobsDrawer)
        await pilot.press("escape")
        await settle(pilot)
        assert not app.front.query(JobsDrawer)


async def test_a_command_shows_its_output_and_its_end(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await settle(pilot)
        app.start_command(["list", "benchmarks", "no_such_thing"])
        await settle(pilot, lambda: bool(app.jobs.all) and not app.jobs.all[0].running)
        drawer = app.front.query_one(JobsDrawer)
        await settle(pilot, lambda: "no_such_thing" in "\n".join(drawer.query_one(VirtualText).visible_text()))
        assert "exit 1" in text_of(app)
        assert app.notices[-1][1:] == ("error", "gym list benchmarks: ended with exit code 1; J shows its output")


async def test_a_stack_is_shown_among_the_servers(tmp_path: Path) -> None:
    app = workbench(tmp_path, "results")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        app.start_command(["env", "start", "--benchmark", "no_such_thing"])
        await settle(pilot, lambda: app.current_mode == "servers")
        assert not app.front.query(JobsDrawer)
        assert app.notices[0][2] == "started: gym env start --benchmark no_such_thing"
        await settle(pilot, lambda: not app.jobs.all[0].running)
        assert app.notices[-1][1:] == ("error", "gym env start: ended with exit code 2; J shows its output")


async def test_stopping_a_stack_opens_no_drawer(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        app.start_command(["env", "stop", "--all"])
        await settle(pilot, lambda: bool(app.jobs.all) and not app.jobs.all[0].running)
        assert app.jobs.all[0].code == 0
        assert not app.front.query(JobsDrawer)
        assert not app.notices


async def test_an_earlier_job_is_found_and_stopped_in_two_steps(running: Job, tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot, lambda: bool(app.jobs.all))
        await settle(pilot, lambda: "1 job" in lines(app)[0])
        await pilot.press("J")
        drawer = None

        def opened() -> bool:
            return bool(app.front.query(JobsDrawer)) and "up" in "\n".join(app.front.query_one(VirtualText).visible_text())

        async with heartbeat():
            await settle(pilot, opened)
        drawer = app.front.query_one(JobsDrawer)
        assert "gym env" in text_of(app) and "1:01" in text_of(app)
        await pilot.press("x")
        await settle(pilot)
        assert "x once more stops it" in text_of(app)
        await pilot.press("k")
        await settle(pilot)
        assert "x once more" not in text_of(app)
        await pilot.press("x", "x")
        await settle(pilot, lambda: not app.jobs.all[0].running)
        assert app.jobs.all[0].stops == 1
        assert drawer.job is app.jobs.all[0]
        await settle(pilot, lambda: "ended" in text_of(app))
        await settle(pilot, lambda: "job" not in lines(app)[0])


async def test_steering_a_run_takes_no_focus_away(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        before = app.focused
        app.start_command(["eval", "control", "missing.jsonl", "drain"])
        await settle(pilot, lambda: bool(app.jobs.all) and not app.jobs.all[0].running)
        assert app.focused is before and not app.front.query(JobsDrawer)
        assert app.notices[-1][1:] == ("error", "gym eval control: ended with exit code 1; J shows its output")


@pytest.mark.parametrize(
    ("code", "state", "notice"),
    [
        (4, "stopped", ("warning", "gym eval run: stopped before its end; J shows its output")),
        (130, "stopped", ("warning", "gym eval run: stopped before its end; J shows its output")),
        (3, "exit 3", ("error", "gym eval run: ended with exit code 3; J shows its output")),
        (-9, "signal 9", ("error", "gym eval run: ended with signal 9; J shows its output")),
    ],
)
async def test_a_run_that_somebody_stopped_has_not_failed(tmp_path: Path, code: int, state: str, notice: tuple[str, str]) -> None:
    app = small_workbench(tmp_path)
    log = tmp_path / "job.log"
    log.touch()
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        job = Job("job", ("eval", "run"), tmp_path, log, 1, 1.0, 1.0, code=code, ended_at=2.0)
        app.jobs.all.append(job)
        app.jobs._tell_end(job)
        assert app.notices[-1][1:] == notice
        await pilot.press("J")
        await settle(pilot, lambda: state in text_of(app))


async def test_a_command_runs_in_the_folder_it_is_for_and_again_there(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        app.prefill_command("--version", str(other))
        await settle(pilot)
        assert "in " in text_of(app) and "other" in text_of(app)
        await pilot.press("enter")
        await settle(pilot, lambda: bool(app.jobs.all) and not app.jobs.all[0].running)
        app.jobs.again(app.jobs.all[0])
        await settle(pilot, lambda: len(app.jobs.all) == 2 and not app.jobs.all[1].running)
        assert [job.folder for job in app.jobs.all] == [other, other]
        app.start_command(["--version"], str(tmp_path / "gone"))
        assert len(app.jobs.all) == 2 and "there is no such folder" in app.notices[-1][2]


async def test_again_and_copy(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        app.start_command(["--version"])
        await settle(pilot, lambda: bool(app.jobs.all) and not app.jobs.all[0].running)
        await pilot.press("Y")
        await settle(pilot)
        assert app.notices[-1][2].startswith("copied the command (13 characters)")
        await pilot.press("R")
        await settle(pilot, lambda: len(app.jobs.all) == 2 and not app.jobs.all[1].running)
        assert app.jobs.all[1].words == ("--version",)
        assert app.front.query_one("#job-list", VirtualList).cursor_key == app.jobs.all[1].name


def ended_evaluation(folder: Path, code: int) -> Job:
    log = folder / "job.log"
    log.touch()
    words = "eval run --benchmark first_steps --model-type llama_cpp_model --output m.jsonl"
    return Job("job", tuple(words.split()), folder, log, 1, 1.0, 1.0, folder / "m.jsonl", code=code, ended_at=2.0)


@pytest.mark.parametrize(
    ("code", "run", "proposed"),
    [
        (0, {"state": "done", "scored": 12, "failed": 0, "missing": 0}, "--output m-2.jsonl"),
        (4, {"state": "stopped", "scored": 11, "failed": 1, "missing": 28}, "--output m.jsonl --resume"),
    ],
)
async def test_again_never_replaces_results_unasked(tmp_path: Path, code: int, run: dict[str, Any], proposed: str) -> None:
    rows = live_run(tmp_path, **run).read_bytes()
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        app.jobs.all.append(ended_evaluation(tmp_path, code))
        await pilot.press("J")
        await settle(pilot, lambda: app.front.query_one("#job-list").has_focus)
        await pilot.press("R")
        await settle(pilot, lambda: isinstance(app.screen, CommandLine))
        assert app.screen.query_one(CommandInput).value.endswith(proposed)
        assert len(app.jobs.all) == 1
        await pilot.press("escape")
        await settle(pilot, lambda: app.screen is app.front)
        assert len(app.jobs.all) == 1 and (tmp_path / "m.jsonl").read_bytes() == rows


async def test_again_starts_an_evaluation_that_has_no_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        started: list[Job] = []
        monkeypatch.setattr(app.jobs, "again", started.append)
        app.jobs.all.append(ended_evaluation(tmp_path, 3))
        await pilot.press("J")
        await settle(pilot, lambda: app.front.query_one("#job-list").has_focus)
        await pilot.press("R")
        await settle(pilot, lambda: bool(started))
        assert started == app.jobs.all and app.screen is app.front


async def test_tab_goes_through_the_parts(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("J")
        await settle(pilot)
        seen = []
        for key in ("tab", "tab", "tab", "shift+tab"):
            await pilot.press(key)
            await settle(pilot)
            seen.append(app.front.focused.id if app.front.focused else None)
        assert seen == ["job-log", "notice-list", "job-list", "notice-list"]


async def test_a_run_is_brought_to_the_screen_when_its_folder_is_there(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        app.start_command(["eval", "run", "--no-serve", "--output", "out.jsonl", "--input", "missing.jsonl"])
        job = app.jobs.all[0]
        assert job.output == tmp_path / "out.jsonl"
        folder = tmp_path / "out_run"
        folder.mkdir()
        (folder / "run.json").write_text("{}")
        await settle(pilot, lambda: app.current_mode == "rollouts" or not job.running)
        if job.shown:
            screen = app.front
            assert isinstance(screen, SmallScreen)
            await settle(pilot, lambda: [target.path for target in screen.targets] == [folder])
        await settle(pilot, lambda: not job.running)


async def test_keys_are_not_started(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        app.start_command(["eval", "run", "--model-api-key", "abcdefgh"])
        await settle(pilot)
        assert app.jobs.all == []
        assert "keys do not go into a command line" in app.notices[-1][2]
        assert "abcdefgh" not in app.notices[-1][2]


async def test_a_job_goes_on_when_the_workbench_ends(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        app.start_command(["list", "benchmarks"])
        pid = app.jobs.all[0].pid
        process = app.jobs.all[0].process
    assert process is not None and process.wait(30) == 0
    assert not os.path.exists(f"/proc/{pid}")
