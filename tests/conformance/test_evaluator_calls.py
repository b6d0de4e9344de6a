"""The three calls that the NeMo Evaluator SDK's Gym runner makes, with the arguments it makes them with."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, Gym, unused_port, wait_until_gone
from tests.run_trees import read_rows

EXAMPLE = ROOT / "resources_servers" / "mcqa" / "data" / "example.jsonl"
READY = re.compile(r"All \d+ / \d+ servers ready")
WAITING = re.compile(r"(\d+)\s*/\s*(\d+) servers ready\. Waiting for servers to spin up: \[([^\]]*)\]")


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The mock endpoint, in a process of its own."""
    port = unused_port()
    script = Path(__file__).with_name("mock_endpoint.py")
    process = subprocess.Popen([sys.executable, str(script), "--port", str(port)])
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def test_ten_of_ten_trials(gym: Gym, endpoint: str) -> None:
    captures = gym.cwd / "run" / "model_calls"
    (gym.cwd / "env.yaml").write_text(f"policy_base_url: {endpoint}\npolicy_api_key: dummy\npolicy_model_name: mock\n")
    head = unused_port()
    selection = [
        "--config", "responses_api_agents/simple_agent/configs/simple_agent.yaml",
        "--model-type", "inference_provider", "--resources-server", "mcqa",
        "+simple_agent.responses_api_agents.simple_agent.resources_server.name=mcqa",
        f"++head_server.port={head}", "++model={temperature:0.7,note:'it\\'s'}", "++empty={}",
        f"hydra.run.dir='{gym.cwd}/run/gym_hydra'", "++observability_enabled=true", f"++model_call_capture_dir='{captures}'",
    ]  # fmt: skip
    validated = gym.run("env", "validate", *selection)
    assert validated.returncode == 0, validated.stderr
    gym.start("env", "start", *selection)
    output = gym.wait_for("servers ready!")
    assert READY.search(output)
    assert WAITING.findall(output)[-1][1] == "4"
    rows = [{**row, "_ng_task_index": number} for number, row in enumerate(read_rows(EXAMPLE))]
    (gym.cwd / "run").mkdir(exist_ok=True)
    (gym.cwd / "run" / "gym_input.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = gym.run(
        "eval", "run", "--no-serve", "--agent", "simple_agent", "--input", "run/gym_input.jsonl", "--output", "run/rollouts.jsonl",
        "--num-repeats", "2", "--concurrency", "4", f"++head_server.port={head}", f"hydra.run.dir='{gym.cwd}/run/gym_hydra'",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    rollouts = read_rows(gym.cwd / "run" / "rollouts.jsonl")
    assert sorted((row["_ng_task_index"], row["_ng_rollout_index"]) for row in rollouts) == [
        (t, r) for t in range(5) for r in range(2)
    ]
    assert {row["reward"] for row in rollouts} <= {0.0, 1.0}
    assert all(row["response"]["usage"]["input_tokens"] == 20 and row["response"]["output"] for row in rollouts)
    (entry,) = json.loads((gym.cwd / "run" / "rollouts_aggregate_metrics.json").read_text())
    assert {"mean/reward", "max/reward", "min/reward", "median/reward", "std/reward", "pass@1/accuracy"} <= set(
        entry["agent_metrics"]
    )
    names = sorted(path.name for path in captures.glob("*.capture.jsonl"))
    assert names == sorted(f"{task}-{repeat}.capture.jsonl" for task in range(5) for repeat in range(2))
    assert json.loads((captures / "0-0.capture.jsonl").read_text())["status_code"] == 200
    os.killpg(gym.started[-1].pid, signal.SIGINT)
    assert gym.started[-1].wait(10) == 0
    assert wait_until_gone(str(gym.cwd)) == []
