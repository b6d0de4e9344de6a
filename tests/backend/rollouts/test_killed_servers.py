"""What a run says and keeps when a server is killed under it, and when everything is told to end at once."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from backend.io.jsonl import read_jsonl
from backend.servers.stacks import running_stacks
from tests.conftest import Gym, wait_until_gone
from tests.loopback import serving_in_thread
from tests.run_trees import make_run_tree

RUN = ("eval", "run", "--config", "scripted.yaml", "--output", "out/r.jsonl", "--split", "validation", "--concurrency", "5")


def rows(path: Path) -> list[Any]:
    return [line.value for line in read_jsonl(path, allow_torn_tail=True)] if path.exists() else []


def start_run(gym: Gym) -> None:
    """A run of ten rollouts, four of which are finished and five in flight when this returns."""
    make_run_tree(gym.cwd, [{} for _ in range(4)] + [{"seconds": 60} for _ in range(6)])
    app = gym.cwd / "responses_api_agents" / "scripted" / "app.py"
    app.write_text(
        app.read_text().replace(
            'row.get("seconds", 0))', 'print("asked", row.get("seconds", 0), flush=True) or row.get("seconds", 0))'
        )
    )
    gym.start(*RUN)
    log = gym.cwd / "out" / "r_run" / "logs" / "agent.log"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if len(rows(gym.cwd / "out" / "r.jsonl")) == 4 and log.read_text().count("asked 60") == 5:
            return
        time.sleep(0.05)
    raise AssertionError(gym.output())


def test_a_server_that_is_killed_is_named_and_what_is_lost_is_counted(gym: Gym) -> None:
    start_run(gym)
    (record,) = (record for record in running_stacks() if record.folder == str(gym.cwd))
    os.kill(next(server.pid for server in record.servers if server.name == "agent"), signal.SIGKILL)
    assert gym.started[-1].wait(15) == 1
    said = (gym.cwd / "stderr").read_text()
    assert (
        "Error: Process `agent` finished unexpectedly! (ended by SIGKILL (exit code 137): killed, perhaps for lack of memory, while it ran)"
    ) in said
    assert "  asked 60" in said  # its last lines
    assert "rollouts in flight that are lost: 5\n4 finished rollouts are safe in out/r.jsonl\ngo on with: gym eval run " in said
    assert len(rows(gym.cwd / "out" / "r.jsonl")) == 4
    assert rows(gym.cwd / "out" / "r_failures.jsonl") == []  # resuming runs them again
    assert wait_until_gone(str(gym.cwd)) == []


@pytest.mark.parametrize("order", ["command first", "servers first"])
def test_sigterm_to_every_process_at_once_keeps_what_is_finished_and_writes_no_failures(gym: Gym, order: str) -> None:
    """As a batch system may send it before it kills."""
    start_run(gym)
    command = psutil.Process(gym.started[-1].pid)
    everybody = [command, *command.children(recursive=True)]
    for process in everybody if order == "command first" else reversed(everybody):
        process.terminate()
    assert gym.started[-1].wait(10) == 143
    assert "Traceback" not in gym.output() and "KeyboardInterrupt" not in gym.output()
    assert "go on with: gym eval run " in gym.output()
    assert len(rows(gym.cwd / "out" / "r.jsonl")) == 4
    assert rows(gym.cwd / "out" / "r_failures.jsonl") == []
    assert json.loads((gym.cwd / "out" / "r_run" / "run.json").read_text())["state"] in ("failed", "stopped")
    assert wait_until_gone(str(gym.cwd)) == []


@pytest.mark.slow
def test_an_endpoint_that_falls_silent_is_told_long_before_any_limit(gym: Gym) -> None:
    """It accepts requests and never answers, and its connections stand; 10 s later the run says that nothing comes back."""

    async def silent(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if not scope["path"].endswith("/models"):
            while (await receive())["type"] != "http.disconnect":
                pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    with serving_in_thread(silent) as url:
        gym.start(
            "eval", "run", "--benchmark", "first_steps", "--split", "benchmark", "--limit", "3", "--output", "o.jsonl",
            "--model-type", "openai_model", "--model-url", f"{url}/v1", "--model", "m", "--model-api-key", "k",
        )  # fmt: skip
        gym.wait_for("Waiting: 0 / 3 finished, 3 in flight, no answer for 10 s", 60)
        for _ in range(2):
            gym.started[-1].send_signal(signal.SIGINT)
            time.sleep(0.3)
        assert gym.started[-1].wait(15) == 130
    stages = [event for event in rows(gym.cwd / "o_run" / "events.ndjson") if event["type"] == "rollout.stage"]
    assert {(event["stage"], event["detail"]) for event in stages} == {("model call 1", "policy_model")}
