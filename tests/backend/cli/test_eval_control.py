"""`gym eval control` on real runs."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import pytest

from backend.io.event_log import read_events
from tests.conftest import Gym, unused_port, wait_until_gone
from tests.run_trees import make_run_tree, read_rows

RUN = ("eval", "run", "--config", "scripted.yaml", "--output", "out/r.jsonl", "--split", "validation")
OUTPUT = "out/r.jsonl"


def control(gym: Gym, *words: str) -> Any:
    return gym.run("eval", "control", *words)


def start_run(gym: Gym, rows: list[dict[str, Any]], finished: int, *words: str) -> None:
    """Start a run, and wait until `finished` rollouts are written."""
    make_run_tree(gym.cwd, rows)
    gym.start(*RUN, *words)
    rollouts = gym.cwd / OUTPUT
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not (rollouts.exists() and len(read_rows(rollouts)) >= finished):
        time.sleep(0.02)
    time.sleep(0.2)


def events_of(gym: Gym) -> list[dict[str, Any]]:
    return list(read_events(gym.cwd / "out" / "r_run" / "events.ndjson"))


def record_of(gym: Gym) -> Any:
    return json.loads((gym.cwd / "out" / "r_run" / "run.json").read_text())


QUICK_THEN_SLOW = [{}, {}, {"seconds": 7.0}, {"seconds": 7.0}, {}, {}]


@pytest.mark.slow
def test_a_drain_lets_what_is_in_flight_finish_however_long_it_takes(gym: Gym) -> None:
    start_run(gym, QUICK_THEN_SLOW, 2, "--concurrency", "2")
    told = control(gym, OUTPUT, "drain")
    assert told.returncode == 0, told.stderr
    assert "has acknowledged: it sends nothing more" in told.stdout
    assert gym.started[-1].wait(20) == 4
    assert len(read_rows(gym.cwd / OUTPUT)) == 4
    assert "Stopped after 4 of 6 rollouts." in gym.output()
    assert "asked to drain" in gym.output()
    assert "Traceback" not in gym.output()
    record, events = record_of(gym), events_of(gym)
    assert (record["state"], record["scored"], record["missing"]) == ("stopped", 4, 2)
    (request,) = [event for event in events if event["type"] == "run.control"]
    assert request["action"] == "drain" and f"@{os.uname().nodename} " in request["by"]
    assert [event["type"] for event in events][-2:] == ["run.summary", "run.ended"]
    assert (events[-1]["state"], events[-1]["error"]) == ("stopped", None)
    assert (gym.cwd / "out" / "r_aggregate_metrics.json").exists()
    assert not (gym.cwd / "out" / "r_run" / "control").exists()
    assert wait_until_gone(str(gym.cwd)) == []


def test_a_cancel_gives_up_what_is_in_flight_and_scores_what_there_is(gym: Gym) -> None:
    start_run(gym, [{}, {}, {"seconds": 60}, {"seconds": 60}, {}], 2, "--concurrency", "2")
    began = time.monotonic()
    told = control(gym, "out/r_run", "cancel", "--json")
    assert told.returncode == 0, told.stderr
    answer = json.loads(told.stdout)
    assert (answer["rollouts"], answer["action"], answer["acknowledged"]) == (OUTPUT, "cancel", True)
    assert gym.started[-1].wait(20) == 4
    assert time.monotonic() - began < 10
    assert "Gave up 2 rollouts in flight." in gym.output()
    assert "Stopped after 2 of 5 rollouts." in gym.output()
    assert record_of(gym)["state"] == "stopped"
    assert events_of(gym)[-1]["state"] == "stopped"
    assert wait_until_gone(str(gym.cwd)) == []


@pytest.mark.slow
def test_a_cancel_ends_a_drain(gym: Gym) -> None:
    start_run(gym, [{}, {"seconds": 60}, {}], 1, "--concurrency", "1")
    assert control(gym, OUTPUT, "drain").returncode == 0
    assert gym.started[-1].poll() is None
    assert control(gym, "out/r_run/run.json", "cancel").returncode == 0
    assert gym.started[-1].wait(20) == 4
    actions = [event["action"] for event in events_of(gym) if event["type"] == "run.control"]
    assert actions == ["drain", "cancel"]


@pytest.mark.slow
def test_a_drain_of_a_run_that_has_sent_everything_is_a_run_that_is_done(gym: Gym) -> None:
    start_run(gym, [{}, {"seconds": 2.5}], 1)
    assert control(gym, OUTPUT, "drain").returncode == 0
    assert gym.started[-1].wait(20) == 0
    assert record_of(gym)["state"] == "done"
    assert events_of(gym)[-1] | {"seq": 0, "t": 0} == {
        "v": 1, "seq": 0, "t": 0, "type": "run.ended", "state": "done", "error": None,
    }  # fmt: skip


@pytest.mark.slow
def test_ctrl_c_after_a_drain_still_means_five_seconds(gym: Gym) -> None:
    start_run(gym, [{}, {"seconds": 60}, {}], 1, "--concurrency", "1")
    assert control(gym, OUTPUT, "drain").returncode == 0
    began = time.monotonic()
    gym.started[-1].send_signal(signal.SIGINT)
    assert gym.started[-1].wait(20) == 130
    assert 4 < time.monotonic() - began < 9
    assert "Stopped after 1 of 3 rollouts." in gym.output()


@pytest.mark.parametrize("action", ["cancel", "drain"])
def test_a_start_is_stopped_and_earlier_results_stay(gym: Gym, action: str) -> None:
    make_run_tree(gym.cwd, [{}])
    agent = gym.cwd / "responses_api_agents" / "scripted" / "app.py"
    agent.write_text("import time\ntime.sleep(60)\n" + agent.read_text())
    (gym.cwd / "out" / "r_run").mkdir(parents=True)
    (gym.cwd / OUTPUT).write_text('{"precious": 1}\n')
    (gym.cwd / "out" / "r_run" / "run.json").write_text('{"state": "done"}')
    gym.start(*RUN, "--events", "copy.ndjson")
    gym.wait_for("Waiting for servers to spin up")
    told = control(gym, OUTPUT, action)
    assert told.returncode == 0, told.stderr
    assert gym.started[-1].wait(15) == 4
    assert "Stopped before any rollout was sent" in gym.output()
    assert (gym.cwd / OUTPUT).read_text() == '{"precious": 1}\n'
    assert record_of(gym) == {"state": "done"}
    copied = list(read_events(gym.cwd / "copy.ndjson"))
    assert copied[-1]["type"] == "run.ended" and copied[-1]["state"] == "stopped"
    assert [event["action"] for event in copied if event["type"] == "run.control"] == [action]
    assert "Traceback" not in gym.output()
    assert wait_until_gone(str(gym.cwd)) == []


def test_a_first_run_that_waits_for_its_model_is_stopped_and_leaves_no_results(gym: Gym) -> None:
    make_run_tree(gym.cwd, [{}])
    model = (
        f"{{responses_api_models: {{openai_model: {{entrypoint: app.py, openai_base_url: 'http://127.0.0.1:{unused_port()}/v1', "
    )
    (gym.cwd / "model.yaml").write_text(f"policy_model: {model}openai_api_key: none, openai_model: m}}}}}}\n")
    gym.start(*RUN, "--config", "model.yaml")
    gym.wait_for("does not answer yet")
    assert control(gym, OUTPUT, "cancel").returncode == 0
    assert gym.started[-1].wait(15) == 4
    assert not (gym.cwd / OUTPUT).exists()
    assert json.loads((gym.cwd / "out" / "r_run" / "run.json").read_text())["state"] == "stopped"
    assert not (gym.cwd / "out" / "r_run" / "control").exists()


def test_runs_that_do_not_run_are_refused(gym: Gym) -> None:
    make_run_tree(gym.cwd, [{}])
    assert gym.run(*RUN).returncode == 0
    done = control(gym, OUTPUT, "drain")
    assert done.returncode == 1
    assert f"the run of {OUTPUT} is not running: it is done" in done.stderr
    record = record_of(gym)
    (gym.cwd / "out" / "r_run" / "run.json").write_text(json.dumps({**record, "state": "running"}))
    died = control(gym, OUTPUT, "drain", "--json")
    assert died.returncode == 1
    assert f"its process {record['pid']} is gone" in json.loads(died.stderr)["error"]["message"]
    assert not (gym.cwd / "out" / "r_run" / "control").exists()
    assert control(gym, "nowhere.jsonl", "drain").returncode == 1
    assert control(gym, OUTPUT, "explode").returncode == 2
    assert control(gym, OUTPUT).returncode == 2
    assert control(gym, OUTPUT, "drain", "+a=1").returncode == 2


def test_a_killed_run_is_refused(gym: Gym) -> None:
    start_run(gym, [{}, {"seconds": 60}], 1)
    os.kill(gym.started[-1].pid, signal.SIGKILL)
    gym.started[-1].wait()
    refused = control(gym, OUTPUT, "cancel")
    assert refused.returncode == 1
    assert "is gone" in refused.stderr and "--resume" in refused.stderr


def test_a_request_left_over_from_an_earlier_run_does_nothing(gym: Gym) -> None:
    make_run_tree(gym.cwd, [{}])
    (gym.cwd / "out" / "r_run").mkdir(parents=True)
    (gym.cwd / "out" / "r_run" / "control").write_text('{"action": "cancel", "by": "the past"}\n')
    assert gym.run(*RUN).returncode == 0
    assert record_of(gym)["state"] == "done"
