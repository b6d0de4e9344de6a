"""Servers that take their time, and endpoints that nobody serves: how long is waited, and what is said then."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from backend.servers.server_output import OutputSinks
from backend.servers.server_process import ServerProcess, not_ready_in_time, waiting_line
from tests.conftest import TINY_SERVER, Gym, wait_until_gone

SLEEPER = """    import os, time
    print("tiny is starting", flush=True)
    if os.environ["NEMO_GYM_CONFIG_PATH"] == "tiny_b":
        print("loading a very large model", flush=True)
        time.sleep(3600)
"""
LIMIT = "++server_readiness_timeout_seconds"


@pytest.fixture
def sleepy_tree(tiny_tree: Path) -> Path:
    """Three servers, one of which sleeps for an hour while it is imported."""
    (tiny_tree / "resources_servers" / "tiny" / "app.py").write_text(
        TINY_SERVER.replace('    print("tiny is starting")\n', SLEEPER)
    )
    return tiny_tree


@pytest.mark.slow
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_server_that_is_not_ready_in_time_is_named_with_its_step_log_and_last_lines(
    gym: Gym, sleepy_tree: Path, free_port: int, dry_run: bool
) -> None:
    words = ["++dry_run=true"] if dry_run else []
    result = gym.run("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}", f"{LIMIT}=6", *words)
    assert result.returncode == 1
    told = re.search(
        r"Error: (?:`tiny_\w`, )*`tiny_b`.* not ready after 6 s\n(?:.*\n)*?"
        r"`tiny_b`: importing for \d+ s; its output is in (\S+/tiny_b\.log)\n  tiny is starting\n  loading a very large model\n(?:.*\n)*?"
        rf"hint: {re.escape(LIMIT)}=… gives them more time, 0 all they need\n",
        result.stderr,
    )
    assert told, result.stderr
    assert Path(told[1]).read_text() == "tiny is starting\nloading a very large model\n"
    assert wait_until_gone(str(sleepy_tree)) == []


def test_a_limit_that_is_no_number_is_refused(gym: Gym, tiny_tree: Path) -> None:
    result = gym.run("env", "validate", "--config", "tiny.yaml", f"{LIMIT}=soon")
    assert result.returncode == 1
    assert "'server_readiness_timeout_seconds' must be a number of seconds" in result.stdout + result.stderr


def test_within_the_limit_all_is_as_ever(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    gym.start("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}", f"{LIMIT}=60")
    assert "not ready" not in gym.wait_for("All 3 / 3 servers ready!")
    assert gym.started[-1].poll() is None


def process(name: str, tmp_path: Path, *lines: str) -> ServerProcess:
    made = ServerProcess(name, "http://127.0.0.1:1", None, OutputSinks(name, None, True, None))
    made.last_lines.extend(lines)
    return made


def test_what_is_said_of_servers_that_are_waited_for(tmp_path: Path) -> None:
    quiet, busy = process("a/b", tmp_path), process("c", tmp_path, *(f"line {number}" for number in range(9)))
    busy.enter("setting up")
    busy.phase_since = time.monotonic() - 41.0
    assert waiting_line(quiet, tmp_path) == f"`a/b`: importing for 0 s; its output is in {tmp_path}/a_b.log"
    error = not_ready_in_time([quiet, busy], 2.5, None, "++limit=…")
    assert error.message == "`a/b`, `c` are not ready after 2.5 s"
    assert error.details == (
        "`a/b`: importing for 0 s", "  it has printed nothing",
        "`c`: setting up for 41 s", "  line 4", "  line 5", "  line 6", "  line 7", "  line 8",
    )  # fmt: skip
    assert error.hint == "++limit=…"


NOBODY = ("--benchmark", "first_steps", "--model-type", "openai_model", "--model", "m", "--model-api-key", "dummy")
NOBODY_THERE = "http://127.0.0.1:1/v1"
WAIT = "++model_endpoint_readiness_timeout_seconds"


def test_an_endpoint_that_nobody_serves_is_named_with_key_and_reason(gym: Gym, free_port: int) -> None:
    head = f"++head_server.port={free_port}"
    result = gym.run("env", "start", *NOBODY, "--model-url", NOBODY_THERE, head, f"{WAIT}=2")
    assert result.returncode == 1
    assert f"warning: model endpoint {NOBODY_THERE} (from policy_model.openai_base_url) does not answer yet" in result.stderr
    assert (
        f"Error: no model endpoint answered within 2 s: {NOBODY_THERE} (from policy_model.openai_base_url): Connection refused\n"
        in result.stderr
    )
    assert f"{WAIT}=… waits longer, 0 not at all" in result.stderr


def test_the_check_of_endpoints_can_be_left_out(gym: Gym, free_port: int) -> None:
    gym.start("env", "start", *NOBODY, "--model-url", NOBODY_THERE, f"++head_server.port={free_port}", f"{WAIT}=0")
    gym.wait_for("All 3 / 3 servers ready!")
    time.sleep(1)  # an endpoint that is asked for refuses at once
    assert gym.started[-1].poll() is None
    assert "model endpoint" not in gym.output()
