"""Finding runs, telling how each one stands, and what a path means."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from backend.errors import GymError
from backend.io.event_stream import EventStream
from backend.rollouts.run_entry import STATES, Headline, RunEntry, read_run
from backend.rollouts.run_list import RunCache, find_runs, locate_run
from backend.rollouts.run_progress import RunProgress
from backend.rollouts.run_progress_parts import Phase
from backend.rollouts.run_progress_scores import TaskOutcomes
from backend.rollouts.run_record import read_run_record
from tests.conftest import Gym
from tests.run_folders import AGENT, BEGAN, event, failed, finished, record, started, summary, write_events, write_run
from tests.run_trees import make_run_tree


def only(folder: Path) -> RunEntry:
    (entry,) = find_runs(folder)
    return entry


def names(folder: Path) -> list[str]:
    return [entry.name for entry in find_runs(folder)]


@pytest.fixture
def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_run_that_is_done(tmp_path: Path) -> None:
    write_run(tmp_path / "m.jsonl")
    entry = only(tmp_path)
    assert (entry.name, entry.state, entry.benchmark, entry.model) == ("m", "done", "first_steps", "small-7b")
    assert entry.headline == Headline("reward/mean", 0.5, "0-1", 0.4, 0.6)
    assert (entry.scored, entry.failed, entry.missing, entry.planned) == (10, 0, 0, 10)
    assert (entry.started_at, entry.ended_at, entry.last_sign) == (BEGAN, BEGAN + 60, BEGAN + 60)
    assert (entry.agents, entry.resumable, entry.problem) == ((AGENT,), False, None)
    assert entry.paths.rollouts == tmp_path / "m.jsonl"


def test_a_stopped_run_can_be_resumed_by_its_own_command(tmp_path: Path) -> None:
    write_run(tmp_path / "m.jsonl", state="stopped", scored=4, failed=1, missing=5)
    entry = only(tmp_path)
    assert entry.resume_command == (*record(tmp_path / "m.jsonl")["command"], "--resume")
    assert (entry.cwd, entry.resume_needs_secret) == (str(tmp_path), False)


def test_a_resumed_command_is_not_resumed_twice_and_a_masked_key_is_told(tmp_path: Path) -> None:
    command = ["gym", "eval", "run", "--resume", "--model-api-key", "****"]
    write_run(tmp_path / "m.jsonl", state="stopped", missing=5, command=command, earlier=[{}, {}])
    entry = only(tmp_path)
    expected = ("gym", "eval", "run", "--model-api-key", "****", "--resume")
    assert (entry.resume_command, entry.resume_needs_secret, entry.sessions) == (expected, True, 3)


def test_nothing_to_resume_without_the_rows_or_when_all_is_done(tmp_path: Path) -> None:
    write_run(tmp_path / "a.jsonl", state="stopped", missing=5)
    (tmp_path / "a_materialized_inputs.jsonl").unlink()
    assert not only(tmp_path).resumable


def test_a_done_run_with_failures_can_be_resumed(tmp_path: Path) -> None:
    write_run(tmp_path / "a.jsonl", failed=2, scored=8)
    assert only(tmp_path).resumable


def test_a_living_run(tmp_path: Path) -> None:
    events = [
        event("collection.started", BEGAN, total=100),
        event(
            "collection.progress", BEGAN, finished=50, total=100, seconds=9.0, left={}, failed=2,
            averages={AGENT: {"reward": 0.25}, "b": {"reward": 1.0}}, counts={AGENT: 30, "b": 10},
        ),
        finished(50), failed(51), started(52), {"torn": 1},
    ]  # fmt: skip
    folder = write_run(tmp_path / "m.jsonl", events, state="running", ended_at=None, rollouts=100, scored=None, failed=None)
    with open(folder / "events.ndjson", "a") as file:
        file.write('{"type":"rollout.fin')
    process_began = 1e12  # later than any process
    (folder / "run.json").write_text(
        json.dumps(
            record(tmp_path / "m.jsonl", state="running", started_at=process_began, scored=None, failed=None, rollouts=100)
        )
    )
    entry = only(tmp_path)
    assert (entry.state, entry.scored, entry.failed, entry.missing, entry.planned) == ("running", 49, 3, 48, 100)
    assert entry.headline == Headline("reward/mean", (0.25 * 30 + 10) / 40, "0-1", final=False)
    assert (entry.silent_for, entry.resumable) == (None, False)


def test_a_run_whose_process_is_gone_has_died(tmp_path: Path, dead_pid: int) -> None:
    events = [event("collection.started", BEGAN, total=10, scored_before=3, failed_before=1), finished(5), failed(6)]
    write_run(tmp_path / "m.jsonl", events, state="running", pid=dead_pid, scored=None, failed=None, missing=None)
    entry = only(tmp_path)
    assert (entry.state, entry.scored, entry.failed, entry.missing) == ("died", 4, 2, 4)
    assert entry.resumable


def test_a_number_that_another_process_has_by_now_means_died(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        write_run(tmp_path / "m.jsonl", state="running", pid=process.pid, started_at=BEGAN)
        assert only(tmp_path).state == "died"
        write_run(tmp_path / "n.jsonl", state="running", pid=process.pid, started_at=1e12)
        assert read_run(locate_run(tmp_path / "n.jsonl")).state == "running"
    finally:
        process.communicate(b"\n")


def test_a_process_that_holds_the_lock_is_the_run_whatever_the_clock_says(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "m.jsonl")
    script = f"import sys; lock = open({str(folder / 'lock')!r}, 'w'); print('open', flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdout.readline()
        (folder / "run.json").write_text(json.dumps(record(tmp_path / "m.jsonl", state="running", pid=process.pid)))
        assert only(tmp_path).state == "running"
    finally:
        process.communicate(b"\n")


def test_a_zombie_has_died(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    try:
        write_run(tmp_path / "m.jsonl", state="running", pid=process.pid, started_at=1e12)
        assert only(tmp_path).state == "died"
    finally:
        process.wait()


def test_a_run_on_another_host_is_running_and_tells_its_silence(tmp_path: Path, dead_pid: int) -> None:
    folder = write_run(tmp_path / "m.jsonl", state="running", host="elsewhere", pid=dead_pid, ended_at=None)
    os.utime(folder / "events.ndjson", (BEGAN + 10, BEGAN + 10))
    (entry,) = find_runs(tmp_path, now=BEGAN + 100)
    assert (entry.state, entry.silent_for, entry.last_sign) == ("running", 90, BEGAN + 10)
    assert socket.gethostname() != "elsewhere"


def test_the_summary_of_an_earlier_session_is_not_that_of_the_one_that_runs(tmp_path: Path) -> None:
    events = [summary(BEGAN, 4, 0, 6, 0.5, "stopped"), event("run.planned", BEGAN + 9, rollouts=10)]
    write_run(tmp_path / "m.jsonl", events, state="running", host="elsewhere", scored=None, failed=None, missing=None)
    entry = only(tmp_path)
    assert (entry.headline, entry.scored, entry.planned) == (None, None, 10)


def test_results_without_a_record(tmp_path: Path) -> None:
    (tmp_path / "old.jsonl").write_text("{}\n")
    metrics = tmp_path / "old_aggregate_metrics.json"
    metrics.write_text(
        json.dumps([{"agent_ref": {"name": "a"}, "key_metrics": {"mean/reward": 0.25}}, {"agent_ref": {"name": "b"}}])
    )
    (tmp_path / "alone_aggregate_metrics.json").write_text("[]")
    entry = only(tmp_path)
    assert (entry.name, entry.state, entry.agents) == ("old", "no record", ("a", "b"))
    assert entry.headline == Headline("mean/reward", 0.25, "0-1")
    assert entry.last_sign == metrics.stat().st_mtime


@pytest.mark.parametrize(
    ("key_metrics", "headline"),
    [
        ({"mean/reward": 5.2}, Headline("mean/reward", 5.2, "raw")),
        ({"pass@1/accuracy": 50.0}, Headline("pass@1/accuracy", 50.0, "0-100")),
        ({"win_rate": 0.5}, Headline("win_rate", 0.5, "raw")),
        ({}, None),
    ],
)
def test_headlines_of_results_without_a_record(tmp_path: Path, key_metrics: dict[str, float], headline: Headline | None) -> None:
    (tmp_path / "old.jsonl").touch()
    (tmp_path / "old_aggregate_metrics.json").write_text(json.dumps([{"key_metrics": key_metrics}]))
    assert only(tmp_path).headline == headline


def test_only_the_ends_of_big_metrics_are_read(tmp_path: Path) -> None:
    (tmp_path / "old.jsonl").touch()
    entry = {"agent_ref": {"name": "a"}, "group_level_metrics": ["x" * 1000] * 5000, "key_metrics": {"mean/reward": 0.5}}
    (tmp_path / "old_aggregate_metrics.json").write_text(json.dumps([entry], indent=2))
    found = only(tmp_path)
    assert (found.headline, found.agents) == (Headline("mean/reward", 0.5, "0-1"), ("a",))


def test_one_broken_run_does_not_hide_the_others(tmp_path: Path) -> None:
    for name, text in (("a", "{"), ("b", "[]"), ("c", '{"state": 5, "pid": "x", "command": 3, "agents": [], "config": "?"}')):
        (write_run(tmp_path / f"{name}.jsonl") / "run.json").write_text(text)
    (write_run(tmp_path / "d.jsonl") / "run.json").unlink()
    (write_run(tmp_path / "e.jsonl") / "events.ndjson").unlink()
    write_run(tmp_path / "f.jsonl", [{"type": "run.summary", "scores": [5, {"value": "x"}], "scored": "x"}])
    write_run(tmp_path / "g.jsonl", state="paused")
    runs = {entry.name: entry for entry in find_runs(tmp_path)}
    assert sorted(runs) == ["a", "b", "c", "d", "e", "f", "g"]
    assert [name for name, entry in sorted(runs.items()) if entry.problem] == ["a", "b", "c", "d", "g"]
    assert all(entry.state in STATES for entry in runs.values())
    assert (runs["e"].state, runs["e"].headline, runs["e"].scored) == ("done", None, 10)
    assert runs["a"].headline == Headline("reward/mean", 0.5, "0-1", 0.4, 0.6)
    assert runs["g"].problem == "the run record has no known state: paused"


def test_where_runs_are_looked_for(tmp_path: Path) -> None:
    for place in ("", "week/one", ".hidden", "node_modules", "m_run_notes", "a/model_calls", "a/logs", "d1/d2/d3/d4/d5/d6/d7"):
        write_run(tmp_path / place / "m.jsonl")
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    write_run(tmp_path / "env" / "m.jsonl")
    write_run(tmp_path / "dry_run" / "inner.jsonl")  # named like a run's folder, and is none
    assert names(tmp_path) == ["m", "dry_run/inner", "m_run_notes/m", "week/one/m"]
    assert "d1/d2/d3/d4/d5/d6/d7/m" in [entry.name for entry in find_runs(tmp_path, limit_depth=7)]


def test_links_are_followed_once_and_never_upwards(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    write_run(root / "m.jsonl")
    write_run(other / "n.jsonl")
    (root / "link").symlink_to(other)
    (root / "again").symlink_to(other)
    (root / "up").symlink_to(tmp_path)
    (root / "self").symlink_to(root)
    (root / "nowhere").symlink_to(tmp_path / "missing")
    assert names(root) == ["m", "again/n"]


def test_a_folder_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GymError, match=r"cannot search .* for runs"):
        list(find_runs(tmp_path / "missing"))


def test_a_rescan_reads_what_has_changed(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "m.jsonl")
    write_run(tmp_path / "n.jsonl")
    cache = RunCache()
    first = {entry.name: entry for entry in find_runs(tmp_path, cache=cache)}
    write_events(folder / "events.ndjson", [summary(BEGAN, 10, 0, 0, 0.25), event("run.ended", BEGAN, state="done")])
    again = {entry.name: entry for entry in find_runs(tmp_path, cache=cache)}
    assert again["n"] is first["n"]
    assert again["m"].headline == Headline("reward/mean", 0.25, "0-1", 0.15, 0.35)


def test_a_running_run_is_looked_at_in_every_scan(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    write_run(tmp_path / "m.jsonl", state="running", pid=process.pid, started_at=1e12)
    cache = RunCache()
    assert [entry.state for entry in find_runs(tmp_path, cache=cache)] == ["running"]
    process.communicate(b"\n")
    assert [entry.state for entry in find_runs(tmp_path, cache=cache)] == ["died"]


@pytest.mark.parametrize(
    "word", ["m.jsonl", "m_run", "m_run/run.json", "m_run/events.ndjson", "m_failures.jsonl", "m_materialized_inputs.jsonl"]
)
def test_what_a_path_means(tmp_path: Path, word: str) -> None:
    write_run(tmp_path / "m.jsonl")
    assert locate_run(tmp_path / word).rollouts == tmp_path / "m.jsonl"


def test_a_run_is_known_before_it_has_rollouts_and_after_its_folder_has_moved(tmp_path: Path) -> None:
    write_run(tmp_path / "a" / "m.data")
    (tmp_path / "a" / "m.data").unlink()
    (tmp_path / "a").rename(tmp_path / "b")
    assert locate_run(tmp_path / "b" / "m_run").rollouts == tmp_path / "b" / "m.data"
    assert locate_run(tmp_path / "b" / "m.data").run_folder == tmp_path / "b" / "m_run"


def test_a_renamed_run_folder_counts_by_its_own_name(tmp_path: Path) -> None:
    write_run(tmp_path / "m.jsonl").rename(tmp_path / "n_run")
    (tmp_path / "m.jsonl").rename(tmp_path / "n.txt")
    assert locate_run(tmp_path / "n_run").rollouts == tmp_path / "n.txt"


def test_rollouts_without_a_run_folder_are_a_run_too(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").touch()
    assert locate_run(tmp_path / "r.jsonl").rollouts == tmp_path / "r.jsonl"


def test_what_is_no_run_says_what_to_name(tmp_path: Path) -> None:
    write_run(tmp_path / "first.jsonl")
    (tmp_path / "notes.md").touch()
    (tmp_path / "empty").mkdir()
    for word, message, hint in (
        ("frist.jsonl", "there is no run", "Did you mean `first.jsonl`?"),
        ("notes.md", "no rollouts file of a run", "runs in .*: first.jsonl"),
        ("", "is a folder, and not that of a run", "runs in .*: first.jsonl"),
        ("empty", "is a folder, and not that of a run", "gym list runs FOLDER"),
        ("missing/x.jsonl", "there is no run", "gym list runs FOLDER"),
    ):
        with pytest.raises(GymError, match=message) as raised:
            locate_run(tmp_path / word)
        assert raised.value.hint is not None
        assert re.search(hint, raised.value.hint), (word, raised.value.hint)


def test_benchmark_and_model_when_no_selector_names_them(tmp_path: Path) -> None:
    config = {
        "split": "validation",
        "agent": {
            "responses_api_agents": {
                "simple": {"datasets": [{"name": "train_rows", "type": "train"}, {"name": "math", "type": "validation"}]}
            }
        },
        "unused": {"responses_api_agents": {"simple": {"datasets": [{"name": "other", "type": "validation"}]}}},
        "verifier": {"resources_servers": {"v": {"datasets": [{"type": "validation", "jsonl_fpath": "data/rows.jsonl"}]}}},
        "model": {"responses_api_models": {"openai_model": {"openai_model": "gpt", "openai_base_url": "x"}}},
    }
    path = write_run(tmp_path / "m.jsonl", command=["gym", "eval", "run"], agents={"agent": 3}, config=config) / "run.json"
    found = read_run_record(path)
    assert (found.benchmark, found.model) == ("math, rows", "gpt")
    path.write_text(json.dumps(record(tmp_path / "m.jsonl", command=["gym"], config={}, inputs="in/tasks.jsonl")))
    found = read_run_record(path)
    assert (found.benchmark, found.model) == ("tasks", None)
    path.write_text(json.dumps(record(tmp_path / "m.jsonl", command=["gym", "--environment=e", "--resources-server", "r"])))
    assert read_run_record(path).benchmark == "e"


def test_a_real_run_is_listed_and_its_events_add_up_to_its_summary(gym: Gym) -> None:
    rows = [{"expected_reward": float(number % 3 == 0)} for number in range(6)]
    make_run_tree(gym.cwd, [*rows, {"act": "break"}])
    words = ("eval", "run", "--config", "scripted.yaml", "--output", "out/r.jsonl", "--split", "validation", "--num-repeats", "2")
    assert gym.run(*words).returncode == 0
    entry = only(gym.cwd)
    assert (entry.name, entry.state, entry.benchmark, entry.agents) == ("out/r", "done", "rows", ("agent",))
    assert (entry.scored, entry.failed, entry.missing, entry.planned) == (12, 2, 0, 14)
    assert entry.paths.rollouts == gym.cwd / "out" / "r.jsonl"
    assert entry.resume_command == ("gym", *words, "--resume")

    progress = RunProgress()
    with EventStream(entry.paths.events) as stream:
        progress.feed(stream.read())
    assert entry.headline is not None and progress.summary is not None
    assert (progress.phase, progress.scored, progress.failed, progress.missing) == (Phase.DONE, 12, 2, 0)
    assert progress.mean_reward == pytest.approx(entry.headline.value)
    assert progress.task_outcomes() == TaskOutcomes(all_pass=2, all_fail=4, mixed=0)
    assert {server.state for server in progress.servers.values()} <= {"up", "ended"}
    assert {name: tally.count for name, tally in progress.failures.items()} == progress.summary["failure_classes"]
