"""`gym list runs` through the real command line."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

from tests.conftest import COMMAND, Gym
from tests.run_folders import AGENT, BEGAN, write_run

HOUR = 3600.0


def write_three(folder: Path) -> None:
    now = time.time()
    write_run(folder / "results" / "old.jsonl", started_at=now - 50 * HOUR, ended_at=now - 49 * HOUR)
    write_run(folder / "results" / "new.jsonl", state="stopped", started_at=now - 2.5 * HOUR, scored=4, failed=1, missing=5)
    write_run(
        folder / "results" / "dead.jsonl", state="running", pid=2**22 + 1, started_at=now - 26 * HOUR, scored=None, failed=None
    )


def test_the_table_has_the_newest_first(gym: Gym) -> None:
    write_three(gym.cwd)
    result = gym.run("list", "runs")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[:5] == [
        "Runs: 3",
        "State    Begun  Score                  Scored  Failed  Benchmark    Model     Run",
        "stopped  2h     0.500 (0.400 … 0.600)  4/10         1  first_steps  small-7b  results/new",
        "died     1d     0.500 (0.400 … 0.600)  10/10        0  first_steps  small-7b  results/dead",
        "done     2d     0.500 (0.400 … 0.600)  10/10        0  first_steps  small-7b  results/old",
    ]
    assert len(lines) == 5  # the run that died has nothing left to do


def test_a_run_that_died_tells_how_to_go_on(gym: Gym) -> None:
    write_run(gym.cwd / "m.jsonl", [], state="running", pid=2**22 + 1, scored=None, failed=None, missing=None)
    lines = gym.run("list", "runs").stdout.splitlines()
    assert lines[3:] == [
        "",
        "m died and can be resumed:",
        f"  cd {gym.cwd} && gym eval run --benchmark first_steps --output {gym.cwd / 'm.jsonl'} --resume",
    ]


def test_json(gym: Gym) -> None:
    write_run(gym.cwd / "m.jsonl", state="stopped", missing=5)
    (run,) = json.loads(gym.run("list", "runs", "m_run", "--json").stdout)
    assert run["rollouts"] == "m.jsonl"
    assert run["run_folder"] == "m_run"
    assert (run["name"], run["state"], run["benchmark"], run["model"], run["agents"]) == (
        "m",
        "stopped",
        "first_steps",
        "small-7b",
        [AGENT],
    )
    assert run["headline"] == {"name": "reward/mean", "value": 0.5, "scale": "0-1", "low": 0.4, "high": 0.6, "final": True}
    assert (run["scored"], run["failed"], run["missing"], run["planned"]) == (10, 0, 5, 10)
    assert (run["started_at"], run["ended_at"], run["resumable"]) == (BEGAN, BEGAN + 60, True)
    assert run["resume_command"][-1] == "--resume"


def test_no_runs(gym: Gym) -> None:
    assert gym.run("list", "runs").stdout == "Runs: 0\n"
    assert gym.run("list", "runs", "--json").stdout == "[]\n"


def test_filter_and_order(gym: Gym) -> None:
    write_three(gym.cwd)
    result = gym.run("list", "runs", "results", "--filter", "-state:stopped age>1d", "--sort", "name", "--json")
    assert [run["name"] for run in json.loads(result.stdout)] == ["dead", "old"]
    result = gym.run("list", "runs", "--filter", "colour:red")
    assert (result.returncode, result.stdout) == (1, "")
    assert "runs have no `colour`" in result.stderr


def test_a_broken_record_is_told_on_stderr_and_the_rest_is_listed(gym: Gym) -> None:
    write_run(gym.cwd / "good.jsonl")
    (write_run(gym.cwd / "bad.jsonl") / "run.json").write_text("{")
    result = gym.run("list", "runs", "--json")
    assert result.returncode == 0
    assert {run["name"]: run["state"] for run in json.loads(result.stdout)} == {"good": "done", "bad": "no record"}
    assert "warning: bad: the run record" in result.stderr


def test_what_is_no_run_is_refused(gym: Gym) -> None:
    result = gym.run("list", "runs", "nothing.jsonl")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: nothing.jsonl: there is no run nothing.jsonl\nhint: ")
    assert gym.run("list", "runs", "+a=1").returncode == 2


def test_the_table_fits_the_terminal_and_keeps_the_ends_of_names(gym: Gym) -> None:
    write_run(gym.cwd / ("deep" * 20) / "m.jsonl", config={"policy_model_name": f"models/{'x' * 40}-7b"})
    leader, follower = os.openpty()
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "COLUMNS": "120"}
    words = [*COMMAND, "list", "runs"]
    process = subprocess.run(words, cwd=gym.cwd, env=environment, stdout=follower, stderr=subprocess.PIPE, check=False)
    os.close(follower)
    lines = os.read(leader, 10_000).decode().splitlines()
    os.close(leader)
    assert (process.returncode, process.stderr) == (0, b"")
    assert max(map(len, lines)) <= 120
    assert lines[2].endswith("deep/m") and "x-7b  …" in lines[2]
