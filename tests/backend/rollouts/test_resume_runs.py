"""`gym eval run --resume` through the real command line, with real servers and real kills."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from backend.io.event_log import read_events
from tests.conftest import Gym, wait_until_gone
from tests.run_trees import make_run_tree, read_rows, write_rows

RUN = ("eval", "run", "--config", "scripted.yaml", "--output", "out/r.jsonl", "--split", "validation")
RESUME = (*RUN, "--resume")


def keys(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows)


def cut_back(gym: Gym, kept: int) -> None:
    """Leave only the first rollouts of a run, as if it had been killed then."""
    rollouts = gym.cwd / "out" / "r.jsonl"
    rollouts.write_bytes(b"".join(rollouts.read_bytes().splitlines(keepends=True)[:kept]))


def run_record(gym: Gym) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((gym.cwd / "out" / "r_run" / "run.json").read_text())
    return record


def wait_for_lines(path: Path, count: int, timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def finished_run(gym: Gym, rows: list[dict[str, Any]], *words: str) -> None:
    make_run_tree(gym.cwd, rows)
    result = gym.run(*RUN, *words)
    assert result.returncode == 0, result.stderr


def test_only_what_is_missing_runs_and_everything_counts(gym: Gym) -> None:
    finished_run(gym, [{"expected_reward": 1.0}, {"expected_reward": 0.5}], "--num-repeats", "2", "--concurrency", "1")
    before = read_rows(gym.cwd / "out" / "r.jsonl")
    cut_back(gym, 3)
    (gym.cwd / "out" / "r_aggregate_metrics.json").write_text("stale")
    result = gym.run(*RESUME, "--num-repeats", "2", "--concurrency", "4")
    assert result.returncode == 0, result.stderr
    assert "Resuming: 3 of 4 rollouts are finished, 1 to run" in result.stdout
    assert "Finished 4 / 4 rollouts (100%)" in result.stdout
    assert "are replaced" not in result.stderr
    after = read_rows(gym.cwd / "out" / "r.jsonl")
    assert after[:3] == before[:3]
    assert keys(after) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    (entry,) = json.loads((gym.cwd / "out" / "r_aggregate_metrics.json").read_text())
    assert entry["agent_metrics"]["mean/reward"] == 0.75
    assert "reward/mean  0.750    0-1" in result.stdout
    record = run_record(gym)
    assert (record["state"], record["scored"], record["missing"], record["rollouts"]) == ("done", 4, 0, 4)
    (earlier,) = record["earlier"]
    assert (earlier["state"], earlier["command"]) == ("done", ["gym", *RUN, "--num-repeats", "2", "--concurrency", "1"])
    events = list(read_events(gym.cwd / "out" / "r_run" / "events.ndjson"))
    assert [event["seq"] for event in events] == list(range(len(events)))
    first, second = [event for event in events if event["type"] == "collection.started"]
    assert (first["total"], first["scored_before"], first["failed_before"]) == (4, 0, 0)
    assert (second["total"], second["scored_before"], second["failed_before"]) == (4, 3, 0)
    assert sum(event["type"] == "rollout.finished" for event in events) == 5


@pytest.mark.slow
def test_failures_are_attempted_again_up_to_the_cap(gym: Gym) -> None:
    finished_run(gym, [{}, {"act": "break"}, {"act": "kill"}])
    for attempt in (1, 2):
        result = gym.run(*RESUME)
        assert result.returncode == 0, result.stderr
        assert "2 to run (1 again after a failure)" in result.stdout
        events = [
            event for event in read_events(gym.cwd / "out" / "r_run" / "events.ndjson") if event["type"] == "rollout.finished"
        ]
        assert {(event["task"], event["attempt"]) for event in events[-2:]} == {(1, attempt), (2, 0)}
    failures = read_rows(gym.cwd / "out" / "r_failures.jsonl")
    assert [row.get("_ng_attempt_index") for row in failures] == [None, 1, 2]
    result = gym.run(*RESUME)
    assert result.returncode == 0
    assert "Resuming: 1 of 3 rollouts are finished, 1 given up, 1 to run" in result.stdout
    assert "task 1 rollout 0: agent_run_error after 3 attempts: the agent answered HTTP 500" in result.stderr
    assert "set NEMO_GYM_MAX_ROLLOUT_ATTEMPTS above 3" in result.stderr
    assert (run_record(gym)["failed"], run_record(gym)["missing"]) == (2, 0)
    gym.environment["NEMO_GYM_MAX_ROLLOUT_ATTEMPTS"] = "4"
    assert "2 to run (1 again after a failure)" in gym.run(*RESUME).stdout
    gym.environment["NEMO_GYM_MAX_ROLLOUT_ATTEMPTS"] = "none"
    assert "NEMO_GYM_MAX_ROLLOUT_ATTEMPTS must be a whole number of at least 1, not 'none'; 3 is used" in gym.run(*RESUME).stderr


def test_with_nothing_left_the_metrics_are_made_again(gym: Gym) -> None:
    finished_run(gym, [{}, {}])
    rollouts = (gym.cwd / "out" / "r.jsonl").read_bytes()
    metrics = gym.cwd / "out" / "r_aggregate_metrics.json"
    expected = metrics.read_bytes()
    metrics.unlink()
    result = gym.run(*RESUME)
    assert result.returncode == 0, result.stderr
    assert "Nothing is left to be run; the metrics are computed again" in result.stdout
    assert metrics.read_bytes() == expected
    assert (gym.cwd / "out" / "r.jsonl").read_bytes() == rollouts


def test_a_cut_off_line_is_set_aside_with_one_warning(gym: Gym) -> None:
    finished_run(gym, [{}, {}], "--concurrency", "1")
    rollouts = gym.cwd / "out" / "r.jsonl"
    content = rollouts.read_bytes()
    rollouts.write_bytes(content[:-20])
    result = gym.run(*RESUME)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("was cut off") == 1
    assert keys(read_rows(rollouts)) == [(0, 0), (1, 0)]
    assert (gym.cwd / "out" / "r.jsonl.torn").read_bytes() == content[:-20].splitlines(keepends=True)[1] + b"\n"


def test_two_records_of_a_rollout_are_remarked_and_the_newer_counts(gym: Gym) -> None:
    finished_run(gym, [{"expected_reward": 1.0}, {"expected_reward": 1.0}], "--concurrency", "1")
    rollouts = gym.cwd / "out" / "r.jsonl"
    first = json.loads(rollouts.read_text().splitlines()[0])
    with open(rollouts, "a") as file:
        file.write(json.dumps(first | {"reward": 0.0}) + "\n")
    result = gym.run(*RESUME)
    assert result.returncode == 0, result.stderr
    assert "more than one record of some rollouts; the newest of each counts: task 0 rollout 0" in result.stderr
    (entry,) = json.loads((gym.cwd / "out" / "r_aggregate_metrics.json").read_text())
    assert entry["agent_metrics"]["mean/reward"] == 0.5
    assert "reward/mean  0.500" in result.stdout


@pytest.mark.slow
def test_changed_settings_are_refused_and_may_be_accepted(gym: Gym) -> None:
    finished_run(gym, [{}, {}, {}], "--temperature", "0", "--concurrency", "1")
    cut_back(gym, 1)
    before = {path: path.read_bytes() for path in (gym.cwd / "out").rglob("*") if path.is_file() and path.name != "lock"}
    changed = (*RESUME, "--temperature", "1", "--num-repeats", "2", "++agent.responses_api_agents.scripted.kind=new")
    result = gym.run(*changed)
    assert result.returncode == 1
    assert "3 setting(s) are not those that the rollouts in out/r.jsonl were made with" in result.stderr
    for change in (
        "responses_create_params.temperature: 0.0 -> 1.0",
        "num_repeats: 1 -> 2",
        'agent.responses_api_agents.scripted.kind: (unset) -> "new"',
    ):
        assert change in result.stderr
    assert "--accept-changed-settings" in result.stderr
    assert {path: path.read_bytes() for path in before} == before
    result = gym.run(*changed, "--accept-changed-settings")
    assert result.returncode == 0, result.stderr
    assert "no effect on the rows" in result.stderr
    rows = sorted(read_rows(gym.cwd / "out" / "r.jsonl"), key=lambda row: int(row["_ng_task_index"]))
    assert [row["responses_create_params"]["temperature"] for row in rows] == [0.0, 1.0, 1.0]
    changes = run_record(gym)["accepted_changes"]
    assert {"setting": "responses_create_params.temperature", "before": 0.0, "now": 1.0} in changes
    assert gym.run(*changed).returncode == 0  # these are the settings now
    assert run_record(gym)["accepted_changes"] == changes


def test_what_does_not_decide_rollouts_may_change(gym: Gym) -> None:
    finished_run(gym, [{}, {}])
    cut_back(gym, 1)
    result = gym.run(
        *RESUME, "--concurrency", "1", "++nemo_gym_log_dir=logs", "++head_server.port=11234", "++policy_api_key=other"
    )
    assert result.returncode == 0, result.stderr


def test_data_of_the_run_are_not_prepared_again(gym: Gym) -> None:
    finished_run(gym, [{}, {}])
    cut_back(gym, 1)
    kept = [gym.cwd / "out" / "r_materialized_inputs.jsonl", gym.cwd / "out" / "r" / "preprocessed_datasets" / "validation.jsonl"]
    before = [path.read_bytes() for path in kept]
    write_rows(gym.cwd / "rows.jsonl", [{"act": "break"}] * 5)
    result = gym.run(*RESUME)
    assert result.returncode == 0, result.stderr
    assert [path.read_bytes() for path in kept] == before
    assert len(read_rows(gym.cwd / "out" / "r.jsonl")) == 2


def test_results_without_their_plan_are_never_deleted(gym: Gym) -> None:
    finished_run(gym, [{}, {}])
    rollouts = (gym.cwd / "out" / "r.jsonl").read_bytes()
    (gym.cwd / "out" / "r_materialized_inputs.jsonl").unlink()
    result = gym.run(*RESUME)
    assert result.returncode == 1
    assert "out/r_materialized_inputs.jsonl is missing" in result.stderr
    assert (gym.cwd / "out" / "r.jsonl").read_bytes() == rollouts


def test_resuming_nothing_starts_from_the_beginning(gym: Gym) -> None:
    make_run_tree(gym.cwd, [{}])
    result = gym.run(*RESUME)
    assert result.returncode == 0, result.stderr
    assert "nothing to resume, because out/r.jsonl is not there: the run starts from the beginning" in result.stdout
    assert "earlier" not in run_record(gym)


def test_results_without_a_record_are_resumed_with_a_warning(gym: Gym) -> None:
    finished_run(gym, [{}, {}], "--temperature", "0")
    cut_back(gym, 1)
    (gym.cwd / "out" / "r_run" / "run.json").unlink()
    refused = gym.run(*RESUME, "--temperature", "1")
    assert refused.returncode == 1
    assert "responses_create_params.temperature: 0.0 -> 1.0" in refused.stderr
    result = gym.run(*RESUME, "--temperature", "0")
    assert result.returncode == 0, result.stderr
    assert "nobody checks whether they changed" in result.stderr
    assert len(read_rows(gym.cwd / "out" / "r.jsonl")) == 2


def test_a_changed_input_file_is_refused(gym: Gym, free_port: int) -> None:
    make_run_tree(gym.cwd, [])
    write_rows(gym.cwd / "tasks.jsonl", [{}, {}])
    gym.start("env", "start", "--config", "scripted.yaml", f"++head_server.port={free_port}")
    gym.wait_for("servers ready!")
    words = ("eval", "run", "--no-serve", "--agent", "agent", "--input", "tasks.jsonl", "--output", "out/r.jsonl")
    assert gym.run(*words, f"++head_server.port={free_port}").returncode == 0
    cut_back(gym, 1)
    write_rows(gym.cwd / "tasks.jsonl", [{}, {}, {}])
    refused = gym.run(*words, f"++head_server.port={free_port}", "--resume")
    assert refused.returncode == 1
    assert "content of the input (SHA-256)" in refused.stderr
    (gym.cwd / "tasks.jsonl").unlink()
    result = gym.run(*words, f"++head_server.port={free_port}", "++resume_from_cache=true")
    assert result.returncode == 0, result.stderr
    assert "is not there any more" in result.stderr
    assert keys(read_rows(gym.cwd / "out" / "r.jsonl")) == [(0, 0), (1, 0)]


def test_a_stopped_run_names_the_command_that_goes_on(gym: Gym) -> None:
    make_run_tree(gym.cwd, [{} for _ in range(4)] + [{"seconds": 1} for _ in range(8)])
    gym.start(*RUN, "--concurrency", "4", "++remark='two words'")
    rollouts = gym.cwd / "out" / "r.jsonl"
    wait_for_lines(rollouts, 4)
    gym.started[-1].send_signal(signal.SIGINT)
    assert gym.started[-1].wait(15) == 130
    (line,) = [line for line in gym.output().splitlines() if line.startswith("Go on with: ")]
    words = shlex.split(line.removeprefix("Go on with: "))
    assert words == ["gym", *RUN, "--concurrency", "4", "++remark='two words'", "--resume"]
    result = gym.run(*words[1:])
    assert result.returncode == 0, result.stderr
    assert keys(read_rows(rollouts)) == [(task, 0) for task in range(12)]
    assert "Go on with" not in result.stdout
    assert run_record(gym)["earlier"][0]["state"] == "stopped"


def test_a_server_that_dies_leaves_the_command_that_goes_on(gym: Gym) -> None:
    make_run_tree(gym.cwd, [{}, {}, {"act": "die", "seconds": 0.3}, {"seconds": 30}])
    result = gym.run(*RUN, "--concurrency", "4")
    assert result.returncode == 1
    assert f"go on with: gym {' '.join(RUN)} --concurrency 4 --resume" in result.stderr


def test_a_server_that_dies_before_anything_is_scored_leaves_the_command_as_well(gym: Gym) -> None:
    make_run_tree(gym.cwd, [{"act": "die"}, {}])
    result = gym.run(*RUN, "--concurrency", "1")
    assert result.returncode == 1
    assert f"go on with: gym {' '.join(RUN)} --concurrency 1 --resume" in result.stderr
    assert "finished rollouts" not in result.stderr
    agent = gym.cwd / "responses_api_agents" / "scripted" / "app.py"
    agent.write_text(agent.read_text().replace('"die"', '"live"'))
    assert gym.run(*RUN, "--concurrency", "1", "--resume").returncode == 0
    assert keys(read_rows(gym.cwd / "out" / "r.jsonl")) == [(0, 0), (1, 0)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_is_killed_again_and_again_comes_to_the_same_end(gym: Gym, seed: int) -> None:
    rows: list[dict[str, Any]] = [{"seconds": 0.002 * (n % 9), "expected_reward": (n % 5) / 4} for n in range(1200)]
    rows.append({"act": "break"})
    make_run_tree(gym.cwd, rows)
    chance = random.Random(seed)
    rollouts = gym.cwd / "out" / "r.jsonl"
    finished = 0
    for number in range(8):
        process = gym.start(*(RESUME if number else RUN), "--concurrency", "8", "--num-repeats", "2")
        if number % 2:
            wait_for_lines(rollouts, finished + 1)
        time.sleep(chance.uniform(0.0, 0.4 if number % 2 else 1.5))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert wait_until_gone(str(gym.cwd), timeout=30) == []
        lines = rollouts.read_bytes().count(b"\n") if rollouts.exists() else 0
        assert lines >= finished, "finished rollouts were lost"
        finished = lines
    assert 4 <= finished < 2400
    gym.environment["NEMO_GYM_MAX_ROLLOUT_ATTEMPTS"] = "20"
    result = gym.run(*RESUME, "--concurrency", "8", "--num-repeats", "2", timeout=120)
    assert result.returncode == 0, result.stderr
    found = sorted((row["_ng_task_index"], row["_ng_rollout_index"], row["reward"]) for row in read_rows(rollouts))
    assert found == [(task, repeat, (task % 5) / 4) for task in range(1200) for repeat in range(2)]
    (entry,) = json.loads((gym.cwd / "out" / "r_aggregate_metrics.json").read_text())
    assert entry["agent_metrics"]["mean/reward"] == pytest.approx(0.5)
    record = run_record(gym)
    assert (record["state"], record["scored"], record["failed"], record["missing"]) == ("done", 2400, 2, 0)
    events = list(read_events(gym.cwd / "out" / "r_run" / "events.ndjson"))
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert Path(record["cwd"]) == gym.cwd
