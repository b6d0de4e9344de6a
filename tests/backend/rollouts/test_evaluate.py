"""`gym eval run` with real servers: files, failures, interruptions, bad input."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from backend.io.event_log import read_events
from tests.conftest import Gym, processes_of, wait_until_gone
from tests.run_trees import make_run_tree, read_rows, write_rows

RUN = ("eval", "run", "--config", "scripted.yaml", "--output", "out/r.jsonl", "--split", "validation")


def run_rows(gym: Gym, rows: list[dict[str, Any]], *words: str) -> Any:
    make_run_tree(gym.cwd, rows)
    return gym.run(*RUN, *words)


def test_a_run_leaves_the_documented_files(gym: Gym) -> None:
    result = run_rows(gym, [{"expected_reward": 1.0, "task_source": "x"}, {"expected_reward": 0.5}], "--num-repeats", "2")
    assert result.returncode == 0, result.stderr
    out = gym.cwd / "out"
    inputs = read_rows(out / "r_materialized_inputs.jsonl")
    assert [(row["_ng_task_index"], row["_ng_rollout_index"]) for row in inputs] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all(row["agent_ref"] == {"name": "agent"} and row["task_source"] == "verifier" for row in inputs)
    rollouts = read_rows(out / "r.jsonl")
    assert sorted((row["_ng_task_index"], row["_ng_rollout_index"], row["reward"]) for row in rollouts) == [
        (0, 0, 1.0), (0, 1, 1.0), (1, 0, 0.5), (1, 1, 0.5),
    ]  # fmt: skip
    assert all(row["agent_ref"] == {"name": "agent"} and row["task_source"] == "verifier" for row in rollouts)
    assert all(row["response"]["usage"]["total_tokens"] == 5 for row in rollouts)
    assert (out / "r_failures.jsonl").read_text() == ""
    (entry,) = json.loads((out / "r_aggregate_metrics.json").read_text())
    assert entry["agent_ref"] == {"name": "agent"}
    assert entry["agent_metrics"]["mean/reward"] == 0.75
    assert [group["num_rollouts"] for group in entry["group_level_metrics"]] == [2, 2]
    assert len(entry["repeat_level_metrics"]) == 2
    assert "Finished 4 / 4 rollouts (100%)" in result.stdout
    assert "All 2 / 2 servers ready!" in result.stdout
    assert "reward/mean  0.750    0-1" in result.stdout
    assert wait_until_gone(str(gym.cwd)) == []


def test_the_run_folder_tells_the_story(gym: Gym) -> None:
    result = run_rows(
        gym, [{}, {"act": "break"}], "++policy_api_key=sk-very-secret-1", "++remark='sk-very-secret-1'", "--events", "copy.ndjson"
    )
    assert result.returncode == 0, result.stderr
    folder = gym.cwd / "out" / "r_run"
    record = json.loads((folder / "run.json").read_text())
    assert record["state"] == "done"
    assert (record["scored"], record["failed"], record["missing"]) == (1, 1, 0)
    assert record["command"][:3] == ["gym", "eval", "run"]
    assert record["config"]["policy_api_key"] == "****"
    assert record["config"]["remark"] == "****"
    events = list(read_events(folder / "events.ndjson"))
    types = [event["type"] for event in events]
    assert next(kind for kind in types if kind != "notice") == "run.planned"
    assert types[-2:] == ["run.summary", "run.ended"]
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert {event["v"] for event in events} == {1}
    finished = [event for event in events if event["type"] == "rollout.finished"]
    (scored,) = [event for event in finished if event["failure"] is None]
    with open(gym.cwd / "out" / "r.jsonl", "rb") as rollouts:
        rollouts.seek(scored["offset"])
        assert json.loads(rollouts.readline())["_ng_task_index"] == scored["task"]
    assert [event["type"] for event in read_events(gym.cwd / "copy.ndjson")] == types
    assert (folder / "logs" / "agent.log").exists()
    for path in [path for path in gym.cwd.rglob("*") if path.is_file() and path.name not in ("stdout", "stderr")]:
        assert b"sk-very-secret-1" not in path.read_bytes(), path


def test_every_answer_goes_where_it_belongs(gym: Gym) -> None:
    acts = ["answer", "break", "busy", "judge", "kill", "list"]
    result = run_rows(gym, [{"act": act} for act in acts])
    assert result.returncode == 0, result.stderr
    assert [row["_ng_task_index"] for row in read_rows(gym.cwd / "out" / "r.jsonl")] == [0]
    failures = {row["_ng_task_index"]: row for row in read_rows(gym.cwd / "out" / "r_failures.jsonl")}
    assert {acts[task]: row["_ng_failure_class"] for task, row in failures.items()} == {
        "break": "agent_run_error",
        "busy": "agent_request_failed",
        "judge": "judge_failed",
        "list": "agent_run_error",
    }
    assert failures[1]["_ng_failure_http_status"] == 500
    assert failures[1]["_ng_failure_response_body"] == "\"RuntimeError('the agent broke')\""
    assert "Coverage: 5 of 6 dispatched rollouts failed" in result.stdout
    assert "reward/mean  1.000    0-1" in result.stdout


def test_failures_may_count_as_zero(gym: Gym) -> None:
    result = run_rows(gym, [{}, {"act": "break"}], "+count_failure_classes_as_zero=[agent_run_error]")
    assert result.returncode == 0, result.stderr
    (entry,) = json.loads((gym.cwd / "out" / "r_aggregate_metrics.json").read_text())
    assert entry["agent_metrics"]["mean/reward"] == 0.5


def test_a_run_without_any_result_fails_and_says_why(gym: Gym) -> None:
    result = run_rows(gym, [{"act": "break"}, {"act": "break"}])
    assert result.returncode == 1
    assert "Error: nothing produced a result: 2 of 2 rollouts failed (agent_run_error: 2)" in result.stderr
    assert "the agent broke" in result.stderr
    assert not (gym.cwd / "out" / "r_aggregate_metrics.json").exists()
    assert json.loads((gym.cwd / "out" / "r_run" / "run.json").read_text())["state"] == "failed"


def test_a_server_that_dies_ends_the_run_and_keeps_what_is_finished(gym: Gym) -> None:
    result = run_rows(gym, [{}, {}, {"act": "die", "seconds": 0.3}, {"seconds": 30}], "--concurrency", "4")
    assert result.returncode == 1
    assert "Process `agent` finished unexpectedly! (exit code 9, while it ran)" in result.stderr
    assert len(read_rows(gym.cwd / "out" / "r.jsonl")) == 2
    assert wait_until_gone(str(gym.cwd)) == []


def test_concurrency_is_the_most_in_flight(gym: Gym) -> None:
    result = run_rows(gym, [{"seconds": 0.05} for _ in range(12)], "--concurrency", "3")
    assert result.returncode == 0, result.stderr
    in_flight = most = 0
    for event in read_events(gym.cwd / "out" / "r_run" / "events.ndjson"):
        in_flight += {"rollout.started": 1, "rollout.finished": -1}.get(event["type"], 0)
        most = max(most, in_flight)
    assert most == 3


def start_slow_run(gym: Gym, *words: str) -> Path:
    """A run of quick rows and slow ones, of which some quick ones are finished when this returns."""
    make_run_tree(gym.cwd, [{} for _ in range(4)] + [{"seconds": 2.0}] + [{"seconds": 60} for _ in range(3)])
    gym.start(*RUN, "--concurrency", "4", *words)
    rollouts = gym.cwd / "out" / "r.jsonl"
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not (rollouts.exists() and len(read_rows(rollouts)) >= 4):
        time.sleep(0.05)
    return rollouts


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_drains_and_scores_what_is_there(gym: Gym, number: signal.Signals, code: int) -> None:
    rollouts = start_slow_run(gym)
    began = time.monotonic()
    gym.started[-1].send_signal(number)
    assert gym.started[-1].wait(15) == code
    assert time.monotonic() - began < 9
    assert len(read_rows(rollouts)) == 5  # the one of two seconds was let finish
    (entry,) = json.loads((gym.cwd / "out" / "r_aggregate_metrics.json").read_text())
    assert entry["agent_metrics"]["mean/reward"] == 1.0
    assert "Stopped after 5 of 8 rollouts." in gym.output()
    assert "Traceback" not in gym.output()
    assert json.loads((gym.cwd / "out" / "r_run" / "run.json").read_text())["state"] == "stopped"
    assert wait_until_gone(str(gym.cwd)) == []


def test_the_second_signal_stops_at_once(gym: Gym) -> None:
    rollouts = start_slow_run(gym)
    began = time.monotonic()
    gym.started[-1].send_signal(signal.SIGINT)
    time.sleep(0.3)
    gym.started[-1].send_signal(signal.SIGINT)
    assert gym.started[-1].wait(10) == 130
    assert time.monotonic() - began < 5  # what the first signal alone gives to rollouts in flight
    assert len(read_rows(rollouts)) >= 4
    assert "Traceback" not in gym.output()
    assert wait_until_gone(str(gym.cwd)) == []


@pytest.mark.parametrize("delay", [0.2, 0.7, 1.2])
def test_ctrl_c_while_starting(gym: Gym, delay: float) -> None:
    make_run_tree(gym.cwd, [{"seconds": 60}])
    gym.start(*RUN)
    time.sleep(delay)
    gym.started[-1].send_signal(signal.SIGINT)
    assert gym.started[-1].wait(12) in (130, -signal.SIGINT)
    assert "Traceback" not in gym.output()
    assert wait_until_gone(str(gym.cwd)) == []


@pytest.mark.parametrize("attempt", range(3))
def test_killing_the_command_keeps_every_finished_rollout(gym: Gym, attempt: int) -> None:
    make_run_tree(gym.cwd, [{"seconds": 0.01 * (n % 7)} for n in range(3000)])
    gym.start(*RUN, "--concurrency", "16")
    events = gym.cwd / "out" / "r_run" / "events.ndjson"
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not (events.exists() and b"rollout.finished" in events.read_bytes()):
        time.sleep(0.02)
    time.sleep(0.2 + 0.2 * attempt)
    os.kill(gym.started[-1].pid, signal.SIGKILL)
    gym.started[-1].wait()
    assert wait_until_gone(str(gym.cwd)) == []
    said = sum(event["type"] == "rollout.finished" for event in read_events(events))
    lines = (gym.cwd / "out" / "r.jsonl").read_bytes().split(b"\n")
    whole = [json.loads(line) for line in lines[:-1]]
    assert len(whole) >= said > 0


def test_a_second_run_into_the_same_file_is_refused(gym: Gym) -> None:
    start_slow_run(gym)
    before = (gym.cwd / "out" / "r.jsonl").read_bytes()
    result = gym.run(*RUN)
    assert result.returncode == 1
    assert "another run is writing out/r.jsonl (process" in result.stderr
    assert (gym.cwd / "out" / "r.jsonl").read_bytes().startswith(before)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--split", "validation"), 2, "missing required configuration: output_jsonl_fpath"),
        (("--output", "o.jsonl"), 2, "missing required configuration: split\nhint: add --split validation"),
        (
            ("--output", "o.jsonl", "--split", "train"),
            1,
            "no dataset of the split 'train' is declared; the configuration declares: validation",
        ),
        (("--output", "o.jsonl", "--split", "example"), 1, "`example` is not a split that can be run"),
        (("--output", "o.jsonl", "--split", "validation", "--limit", "0"), 2, "invalid configuration: limit"),
        (("--output", "o.jsonl", "--split", "validation", "--limit", "many"), 2, "--limit needs a whole number, not `many`"),
        (("--output", "o.jsonl", "--split", "validation", "--temperature", "hot"), 2, "--temperature needs a number"),
        (("--output", "o.jsonl", "--split", "validation", "--agent", "agnet"), 1, "Did you mean `agent`?"),
        (("--output", "o.jsonl", "--split", "validation", "--input", "rows.jsonl"), 1, "--input is for runs against servers"),
        (("--output", ".", "--split", "validation"), 2, "is a folder"),
        (("--output", "~nobody-of-this-name/o.jsonl", "--split", "train"), 1, "no dataset of the split 'train'"),
        (("--output", "rows.jsonl/x/o.jsonl", "--split", "validation"), 1, "cannot create the folder"),
        (("--output", "o.jsonl", "--split", "validation", "stray"), 2, "unexpected word: stray"),
        (("--output", "o.jsonl", "--split", "validation", "+a=1,2"), 1, "+a=1,2"),
    ],
)
def test_bad_input_is_one_clear_message(gym: Gym, words: tuple[str, ...], code: int, message: str) -> None:
    make_run_tree(gym.cwd, [{}])
    result = gym.run("eval", "run", "--config", "scripted.yaml", *words)
    assert result.returncode == code, result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"responses_create_params": {"input": "a"}}\n{"responses_create_params": \n', "rows.jsonl:2:"),
        ("[1]\n", "rows.jsonl:1:1: expected a JSON object, found an array"),
        ("", "has no rows"),
        ('{"question": "a"}\n', "the row has no responses_create_params"),
    ],
)
def test_bad_data_is_named_and_old_results_stay(gym: Gym, content: str, message: str) -> None:
    make_run_tree(gym.cwd, [])
    (gym.cwd / "rows.jsonl").write_text(content)
    (gym.cwd / "out").mkdir()
    (gym.cwd / "out" / "r.jsonl").write_text("precious\n")
    result = gym.run(*RUN)
    assert result.returncode == 1, result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert (gym.cwd / "out" / "r.jsonl").read_text() == "precious\n"


def test_a_run_against_servers_that_are_up(gym: Gym, free_port: int) -> None:
    make_run_tree(gym.cwd, [{}])
    write_rows(gym.cwd / "tasks.jsonl", [{"expected_reward": 0.25, "_ng_task_index": 7}, {}])
    gym.start("env", "start", "--config", "scripted.yaml", f"++head_server.port={free_port}")
    gym.wait_for("servers ready!")
    words = (
        "eval",
        "run",
        "--no-serve",
        "--input",
        "tasks.jsonl",
        "--output",
        "o/rollouts.jsonl",
        "--num-repeats",
        "2",
        "--concurrency",
        "3",
    )
    result = gym.run(*words, "--agent", "agent", f"++head_server.port={free_port}", "hydra.run.dir='o/gym_hydra'")
    assert result.returncode == 0, result.stderr
    rows = read_rows(gym.cwd / "o" / "rollouts.jsonl")
    assert sorted((row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows) == [(0, 0), (0, 1), (7, 0), (7, 1)]
    assert not (gym.cwd / "outputs").exists()
    wrong = gym.run(*words, "--agent", "agnet", f"++head_server.port={free_port}")
    assert wrong.returncode == 1
    assert "Did you mean `agent`?" in wrong.stderr
    assert len(read_rows(gym.cwd / "o" / "rollouts.jsonl")) == 4
    assert processes_of(str(gym.cwd))


def test_no_servers_to_run_against(gym: Gym, free_port: int) -> None:
    write_rows(gym.cwd / "tasks.jsonl", [{}])
    (gym.cwd / "o.jsonl").write_text("precious\n")
    words = ("--no-serve", "--agent", "agent", "--input", "tasks.jsonl", "--output", "o.jsonl", f"++head_server.port={free_port}")
    result = gym.run("eval", "run", *words)
    assert result.returncode == 1
    assert f"no head server answers at http://127.0.0.1:{free_port}" in result.stderr
    assert (gym.cwd / "o.jsonl").read_text() == "precious\n"


def test_an_output_folder_that_cannot_be_written(gym: Gym) -> None:
    if os.geteuid() == 0:
        # Permissions do not bind root; a file system that refuses everybody does.
        result = run_rows(gym, [{}], "++output_jsonl_fpath=/proc/results/r.jsonl")
    else:
        (gym.cwd / "out").mkdir(mode=0o500)
        result = run_rows(gym, [{}])
    assert result.returncode == 1
    assert "cannot create the folder" in result.stderr or "is not writable" in result.stderr


@pytest.mark.parametrize("name", ["o.jsonl", "o_failures.jsonl", "o_materialized_inputs.jsonl"])
def test_a_run_never_replaces_its_own_input(gym: Gym, free_port: int, name: str) -> None:
    make_run_tree(gym.cwd, [{}])
    write_rows(gym.cwd / name, [{}])
    before = (gym.cwd / name).read_bytes()
    gym.start("env", "start", "--config", "scripted.yaml", f"++head_server.port={free_port}")
    gym.wait_for("servers ready!")
    result = gym.run(
        "eval", "run", "--no-serve", "--agent", "agent", "--input", name, "--output", "o.jsonl", f"++head_server.port={free_port}"
    )
    assert result.returncode == 2
    assert f"the input {gym.cwd / name} is a file that this run would replace" in result.stderr
    assert (gym.cwd / name).read_bytes() == before


def test_an_input_is_found_in_the_search_roots(gym: Gym, free_port: int) -> None:
    make_run_tree(gym.cwd, [{}])
    elsewhere = gym.cwd / "elsewhere" / "data"
    elsewhere.mkdir(parents=True)
    write_rows(elsewhere / "tasks.jsonl", [{}, {}])
    gym.start("env", "start", "--config", "scripted.yaml", f"++head_server.port={free_port}")
    gym.wait_for("servers ready!")
    gym.environment["NEMO_GYM_EXTRA_ROOTS"] = str(gym.cwd / "elsewhere")
    words = (
        "--no-serve",
        "--agent",
        "agent",
        "--input",
        "data/tasks.jsonl",
        "--output",
        "o.jsonl",
        f"++head_server.port={free_port}",
    )
    result = gym.run("eval", "run", *words)
    assert result.returncode == 0, result.stderr
    assert len(read_rows(gym.cwd / "o.jsonl")) == 2


def test_a_dry_run_keeps_old_results(gym: Gym) -> None:
    make_run_tree(gym.cwd, [{}])
    (gym.cwd / "out").mkdir()
    (gym.cwd / "out" / "r.jsonl").write_text("precious\n")
    result = gym.run(*RUN, "++dry_run=true")
    assert result.returncode == 0, result.stderr
    assert "no rollout was collected" in result.stdout
    assert (gym.cwd / "out" / "r.jsonl").read_text() == "precious\n"


def test_a_server_that_dies_while_it_aggregates_is_named(gym: Gym) -> None:
    make_run_tree(gym.cwd, [{}])
    app = gym.cwd / "responses_api_agents" / "scripted" / "app.py"
    app.write_text(
        app.read_text().replace(
            "    async def run(", "    async def aggregate_metrics(self, body: dict):\n        os._exit(7)\n\n    async def run("
        )
    )
    result = gym.run(*RUN)
    assert result.returncode == 1
    assert "Process `agent` finished unexpectedly! (exit code 7" in result.stderr
    assert len(read_rows(gym.cwd / "out" / "r.jsonl")) == 1


def test_credentials_in_urls_reach_no_file_and_no_line(gym: Gym, free_port: int) -> None:
    result = gym.run(
        "eval", "run", "--benchmark", "first_steps", "--model-type", "inference_provider", "--split", "benchmark", "--limit", "1",
        "--output", "o.jsonl", "--model", "m", "--model-api-key", "dummy",
        "--model-url", f"http://someone:hunter2hunter2@127.0.0.1:{free_port}/v1", "++model_endpoint_readiness_timeout_seconds=1",
        "--events", "events.ndjson",
    )  # fmt: skip
    assert result.returncode == 1
    assert "http://someone:****@127.0.0.1" in result.stderr
    assert "hunter2hunter2" not in result.stderr + result.stdout
    for path in [path for path in gym.cwd.rglob("*") if path.is_file()]:
        assert b"hunter2hunter2" not in path.read_bytes(), path


def test_a_second_run_into_a_folder_starts_with_fresh_logs_and_captures(gym: Gym) -> None:
    make_run_tree(gym.cwd, [{}])
    for _ in range(2):
        result = gym.run(*RUN, "--observe")
        assert result.returncode == 0, result.stderr
        captures = gym.cwd / "out" / "r_run" / "model_calls"
        captures.mkdir(exist_ok=True)
        (captures / "0-0.capture.jsonl").write_text("{}\n")
        (gym.cwd / "out" / "r_run" / "logs" / "agent.log").write_text("old line\n")
    assert gym.run(*RUN, "--observe").returncode == 0
    assert not (captures / "0-0.capture.jsonl").exists()
    assert "old line" not in (gym.cwd / "out" / "r_run" / "logs" / "agent.log").read_text()


@pytest.mark.parametrize("value", ["agent_run_error", "[agent_run_error]", "'agent_run_error,judge_failed'"])
def test_failure_classes_as_list_or_text(gym: Gym, value: str) -> None:
    result = run_rows(gym, [{}, {"act": "break"}], f"+count_failure_classes_as_zero={value}")
    assert result.returncode == 0, result.stderr
    (entry,) = json.loads((gym.cwd / "out" / "r_aggregate_metrics.json").read_text())
    assert entry["agent_metrics"]["mean/reward"] == 0.5


def test_an_output_without_suffix_or_that_is_no_file(gym: Gym) -> None:
    make_run_tree(gym.cwd, [{}])
    words = ("eval", "run", "--config", "scripted.yaml", "--split", "validation", "--output")
    result = gym.run(*words, "out/r")
    assert (result.returncode, "call it r.jsonl" in result.stderr) == (2, True)
    result = gym.run(*words, f"out/{'x' * 250}.jsonl")
    assert (result.returncode, "the name of --output is too long: 256 bytes" in result.stderr) == (2, True)
    result = gym.run(*words, f"{'y' * 300}/r.jsonl")
    assert (result.returncode, "File name too long" in result.stderr, "Traceback" in result.stderr) == (1, True, False)
    result = gym.run(*words, "/dev/null")
    assert (result.returncode, "is not a regular file" in result.stderr) == (2, True)


@pytest.mark.parametrize(("repeats", "words"), [(1, ()), (2, ()), (2, ("--limit", "5"))])
def test_equal_rows_of_a_declared_dataset_are_remarked_the_last_without_its_newline_too(
    gym: Gym, repeats: int, words: tuple[str, ...]
) -> None:
    make_run_tree(gym.cwd, [])
    row = '{"responses_create_params": {"input": "same"}}'
    (gym.cwd / "rows.jsonl").write_text(f"{row}\n{row}\n{row}")
    config = gym.cwd / "scripted.yaml"
    config.write_text(config.read_text().replace("{name: rows,", f"{{name: rows, num_repeats: {repeats},"))
    result = gym.run(*RUN, *words)
    assert result.returncode == 0, result.stderr
    assert "2 row(s) of out/r/preprocessed_datasets/validation.jsonl equal an earlier one" in result.stderr
    keys = sorted((row["_ng_task_index"], row["_ng_rollout_index"]) for row in read_rows(gym.cwd / "out" / "r.jsonl"))
    assert keys == [(0, number) for number in range(5 if words else 3 * repeats)]


def test_a_datasets_own_repeats_are_no_equal_rows(gym: Gym) -> None:
    make_run_tree(gym.cwd, [{}, {}])
    config = gym.cwd / "scripted.yaml"
    config.write_text(config.read_text().replace("{name: rows,", "{name: rows, num_repeats: 3,"))
    result = gym.run(*RUN)
    assert result.returncode == 0, result.stderr
    assert "equal an earlier one" not in result.stderr


def test_equal_rows_and_agents_in_rows_are_remarked(gym: Gym, free_port: int) -> None:
    make_run_tree(gym.cwd, [{}])
    row = {"responses_create_params": {"input": "same"}, "agent_ref": {"name": "agent"}}
    write_rows(gym.cwd / "tasks.jsonl", [row, row, row | {"other": 1}])
    gym.start("env", "start", "--config", "scripted.yaml", f"++head_server.port={free_port}")
    gym.wait_for("servers ready!")
    result = gym.run(
        "eval", "run", "--no-serve", "--input", "tasks.jsonl", "--output", "o.jsonl", f"++head_server.port={free_port}"
    )
    assert result.returncode == 0, result.stderr
    assert "1 row(s) of" in result.stderr
    assert "count as further repeats of its task" in result.stderr
    assert "3 row(s) are routed by an agent_ref of their own" in result.stderr
    assert f"Using the servers behind http://127.0.0.1:{free_port}" in result.stdout
    keys = sorted((row["_ng_task_index"], row["_ng_rollout_index"]) for row in read_rows(gym.cwd / "o.jsonl"))
    assert keys == [(0, 0), (0, 1), (1, 0)]
