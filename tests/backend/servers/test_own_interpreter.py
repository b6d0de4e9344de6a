"""Servers in an environment of their own beside forked ones: they start, find their configuration, and die with their stack."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest

from backend.servers.stacks import running_stacks
from tests.conftest import TINY_SERVER, Gym, processes_of, wait_until_gone

OWN_SERVER = TINY_SERVER.replace(
    'print("tiny is starting")',
    """
    import json, os, subprocess, sys
    read = "import os; text = open(os.environ['NEMO_GYM_CONFIG_FILE']).read(); print('note: sk-secret-note' in text)"
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    told = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True)
    facts = {
        "prefix": sys.prefix, "cwd": os.getcwd(), "stdin": sys.stdin.read(), "tool": told.stdout.strip(),
        "variables": {name: value for name, value in os.environ.items() if "sk-secret" in value},
        "paths": [path for path in os.environ["PYTHONPATH"].split(os.pathsep)][:1],
    }
    print("facts", json.dumps(facts), flush=True)
""",
)
READY = "All 3 / 3 servers ready!"


@pytest.fixture
def mixed_tree(tiny_tree: Path) -> Path:
    """`tiny.yaml` has two servers that are forked and `own`, for which a virtual environment is there."""
    folder = tiny_tree / "resources_servers" / "own"
    folder.mkdir()
    (folder / "app.py").write_text(OWN_SERVER)
    (folder / "requirements.txt").write_text("-e nemo-gym[dev] @ ../../\n")
    lines = (tiny_tree / "tiny.yaml").read_text().splitlines()[:2]
    lines.append("own: {resources_servers: {own: {entrypoint: app.py, domain: other}}}")
    (tiny_tree / "tiny.yaml").write_text("\n".join([*lines, "note: sk-secret-note", ""]))
    environment = tiny_tree / "environments_of_servers" / "resources_servers" / "own" / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    return tiny_tree


def start_mixed(gym: Gym, port: int) -> None:
    gym.start(
        "env", "start", "--config", "tiny.yaml", f"++head_server.port={port}", "++skip_venv_if_present=true",
        "++uv_venv_dir=environments_of_servers",
    )  # fmt: skip


def test_it_runs_in_its_environment(gym: Gym, mixed_tree: Path, free_port: int) -> None:
    start_mixed(gym, free_port)
    output = gym.wait_for(READY)
    line = next(line for line in output.splitlines() if line.startswith("(own) facts "))
    facts = json.loads(line.removeprefix("(own) facts "))
    environment = mixed_tree / "environments_of_servers" / "resources_servers" / "own" / ".venv"
    folder = str(mixed_tree / "resources_servers" / "own")
    assert facts == {
        "prefix": str(environment), "cwd": folder, "stdin": "", "tool": "True", "variables": {}, "paths": [folder],
    }  # fmt: skip
    record = next(record for record in running_stacks() if record.head_url.endswith(f":{free_port}"))
    assert {server.name: server.environment for server in record.servers if server.environment} == {"own": str(environment)}
    instances = httpx.get(f"http://127.0.0.1:{free_port}/server_instances").json()
    assert httpx.get(instances[2]["url"]).headers["x-gym-server"] == "own"
    assert str(environment) in " ".join(psutil.Process(instances[2]["pid"]).cmdline())
    gym.started[-1].send_signal(signal.SIGINT)
    assert gym.started[-1].wait(10) == 0
    assert wait_until_gone(str(mixed_tree)) == []


def test_an_interpreter_that_cannot_be_started_is_named(gym: Gym, mixed_tree: Path, free_port: int) -> None:
    python = mixed_tree / "environments_of_servers" / "resources_servers" / "own" / ".venv" / "bin" / "python"
    python.unlink()
    python.write_text("#!/nonexistent/interpreter\n")
    python.chmod(0o755)
    start_mixed(gym, free_port)
    assert gym.started[-1].wait(30) == 1
    assert str(python) in gym.output()
    assert "Traceback" not in gym.output()
    assert wait_until_gone(str(mixed_tree)) == []


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["server", "command", "warm parent"])
def test_its_tools_die_with_it(gym: Gym, mixed_tree: Path, free_port: int, victim: str) -> None:
    start_mixed(gym, free_port)
    gym.wait_for(READY)
    command = psutil.Process(gym.started[-1].pid)
    instances = httpx.get(f"http://127.0.0.1:{free_port}/server_instances").json()
    targets = {"server": instances[2]["pid"], "command": command.pid, "warm parent": command.children()[0].pid}
    os.kill(targets[victim], signal.SIGKILL)
    gym.started[-1].wait(10)
    assert wait_until_gone(str(mixed_tree)) == []


def kill_one(victim: psutil.Process, command: int) -> bool:
    """Kill `victim`; true where its stack lives on: a tool that a server has started is no part of it."""
    with contextlib.suppress(psutil.NoSuchProcess):
        above = [process.pid for process in victim.parents()]
        victim.kill()
        return command in above[2:]  # the warm parent is the command's child, the servers are the warm parent's
    return True


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_kills_of_any_process_at_any_moment_leave_nothing(gym: Gym, mixed_tree: Path, free_port: int) -> None:
    choose = random.Random(11)
    killed = 0
    while killed < 200:
        start_mixed(gym, free_port)
        time.sleep(choose.uniform(0.1, 4))
        victims = processes_of(str(mixed_tree))
        if victims:
            killed += 1
            if kill_one(choose.choice(victims), gym.started[-1].pid):
                gym.started[-1].send_signal(signal.SIGINT)
        gym.started.pop().wait(20)
        assert wait_until_gone(str(mixed_tree)) == []
    assert [record for record in running_stacks() if record.folder == str(mixed_tree)] == []
