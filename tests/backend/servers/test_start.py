"""`gym env start` and `gym env status` with real processes."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import socket
import time
from pathlib import Path

import httpx
import psutil
import pytest

from backend.io.event_log import read_events
from backend.servers.stacks import running_stacks
from tests.conftest import Gym, processes_of, wait_until_gone

READY = "All 3 / 3 servers ready!"


def start_three(gym: Gym, port: int, *words: str) -> None:
    gym.start("env", "start", "--config", "tiny.yaml", f"++head_server.port={port}", *words)


def wait_for_our_code(gym: Gym) -> None:
    """Wait until the command's first module has taken the interpreter's own answer to SIGINT away, which is a traceback."""
    process = gym.started[-1]
    deadline = time.monotonic() + 2
    seen = False
    while time.monotonic() < deadline and process.poll() is None:
        caught = re.search(r"SigCgt:\s*([0-9a-f]+)", Path(f"/proc/{process.pid}/status").read_text())
        interrupt_is_caught = bool(caught and int(caught[1], 16) >> (signal.SIGINT - 1) & 1)
        if seen and not interrupt_is_caught:
            return
        seen = seen or interrupt_is_caught
        time.sleep(0.002)


def test_three_servers_start_answer_and_stop(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    start_three(gym, free_port)
    output = gym.wait_for(READY)
    assert re.search(r"0 / 3 servers ready\. Waiting for servers to spin up: \['tiny_a', 'tiny_b', 'tiny_c'\]", output)
    assert "(tiny_a) tiny is starting" in output
    instances = httpx.get(f"http://127.0.0.1:{free_port}/server_instances").json()
    assert [instance["process_name"] for instance in instances] == ["tiny_a", "tiny_b", "tiny_c"]
    assert set(instances[0]) == {
        "config_path", "dir_path", "entrypoint", "host", "name", "pid", "port", "process_name", "server_type", "start_time",
        "status", "uptime_seconds", "url",
    }  # fmt: skip
    for instance in instances:
        answer = httpx.get(instance["url"])
        assert answer.json() == {"status": "ok"}
        assert answer.headers["x-gym-server"] == instance["process_name"]
        assert psutil.pid_exists(instance["pid"])
    gym.started[-1].send_signal(signal.SIGINT)
    assert gym.started[-1].wait(10) == 0
    assert wait_until_gone(str(tiny_tree)) == []
    assert "NeMo Gym finished!" in gym.output()


def test_status_of_a_running_stack(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    start_three(gym, free_port)
    gym.wait_for(READY)
    override = f"++head_server.port={free_port}"
    text = gym.run("env", "status", override)
    assert text.returncode == 0
    assert "3 servers found (3 healthy, 0 unhealthy)" in text.stdout
    servers = json.loads(gym.run("env", "status", "--json", override).stdout)
    assert [server["status"] for server in servers] == ["success"] * 3
    assert all(server["config_path"] is server["dir_path"] is server["start_time"] is None for server in servers)
    assert all(server["uptime_seconds"] > 0 for server in servers)


def test_status_without_a_stack(gym: Gym, free_port: int) -> None:
    result = gym.run("env", "status", "--json", f"++head_server.port={free_port}")
    assert (result.returncode, result.stdout) == (0, "[]\n")
    assert f"no head server answers at http://127.0.0.1:{free_port}" in result.stderr


def test_the_live_configuration_has_ports_and_no_secrets(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    start_three(gym, free_port, "++policy_api_key=sk-abcdefghijkl", "++note='see sk-abcdefghijkl'")
    gym.wait_for(READY)
    text = httpx.get(f"http://127.0.0.1:{free_port}/global_config_dict_yaml").json()
    assert "sk-abcdefghijkl" not in text
    assert "policy_api_key: '****'" in text
    assert re.search(r"port: 1\d{4}", text)
    for process in processes_of(str(tiny_tree)):
        if process.pid != gym.started[-1].pid:  # its own command line is what the user typed
            assert "sk-abcdefghijkl" not in " ".join(process.cmdline())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_signals_at_any_moment_leave_nothing(
    gym: Gym, tiny_tree: Path, free_port: int, number: signal.Signals, code: int
) -> None:
    for delay in (0.1, 0.6, 1.2):
        start_three(gym, free_port)
        wait_for_our_code(gym)
        time.sleep(delay)
        gym.started[-1].send_signal(number)
        result = gym.started[-1].wait(10)
        assert result in (code, 130, -number), f"{result}\n{gym.output()}"
        assert "Traceback" not in gym.output()
        assert wait_until_gone(str(tiny_tree)) == []


def test_sigterm_after_readiness_is_143(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    start_three(gym, free_port)
    gym.wait_for(READY)
    gym.started[-1].send_signal(signal.SIGTERM)
    assert gym.started[-1].wait(10) == 143
    assert wait_until_gone(str(tiny_tree)) == []


@pytest.mark.parametrize("moments", [5, pytest.param(60, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_killing_any_process_at_any_moment_leaves_nothing(gym: Gym, tiny_tree: Path, free_port: int, moments: int) -> None:
    choose = random.Random(7)
    for _ in range(moments):
        start_three(gym, free_port)
        time.sleep(choose.uniform(0.2, 2.5))
        victims = processes_of(str(tiny_tree))
        if victims:
            choose.choice(victims).kill()
        gym.started[-1].wait(15)
        assert wait_until_gone(str(tiny_tree)) == []


def test_a_server_that_dies_is_named_with_its_last_lines(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    start_three(gym, free_port)
    gym.wait_for(READY)
    victim = next(i for i in httpx.get(f"http://127.0.0.1:{free_port}/server_instances").json() if i["process_name"] == "tiny_b")
    os.kill(victim["pid"], signal.SIGKILL)
    assert gym.started[-1].wait(10) == 1
    errors = (tiny_tree / "stderr").read_text()
    assert "Error: Process `tiny_b` finished unexpectedly! (ended by SIGKILL" in errors
    assert "tiny is starting" in errors
    assert "Traceback" not in errors
    assert wait_until_gone(str(tiny_tree)) == []


def test_a_server_that_cannot_start_says_why(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    app = tiny_tree / "resources_servers" / "tiny" / "app.py"
    app.write_text("import no_such_module_here\n")
    start_three(gym, free_port)
    assert gym.started[-1].wait(15) == 1
    errors = (tiny_tree / "stderr").read_text()
    assert re.search(
        r"Process `tiny_[abc]` finished unexpectedly! \(ModuleNotFoundError: No module named 'no_such_module_here'", errors
    )
    assert f'Traceback (most recent call last):\n    File "{app}", line 1' in errors
    assert f"hint: name the package that has `no_such_module_here` in {app.with_name('requirements.txt')}" in errors


def test_a_taken_head_port_names_its_holder(gym: Gym, tiny_tree: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        result = gym.run("env", "start", "--config", "tiny.yaml", f"++head_server.port={port}")
    assert result.returncode == 1
    assert f"Error: port {port} for the head server is taken by process {os.getpid()}" in result.stderr
    assert "++head_server.port=" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_taken_server_port_is_named(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        result = gym.run(
            "env",
            "start",
            "--config",
            "tiny.yaml",
            f"++head_server.port={free_port}",
            f"++tiny_b.resources_servers.tiny.port={port}",
        )
    assert result.returncode == 1
    assert f"port {port} for server `tiny_b` is taken" in result.stderr


@pytest.mark.parametrize("words", [(), ("+dry_run=true",)])
def test_a_requirement_that_cannot_be_met_is_named(gym: Gym, tiny_tree: Path, free_port: int, words: tuple[str, ...]) -> None:
    (tiny_tree / "resources_servers" / "tiny" / "requirements.txt").write_text(
        "-e nemo-gym[dev] @ ../../\n--no-index\n# remark\norjson>=3\nno-such-package-here==1.0\n"
    )
    for _ in range(2):  # what the first one has begun is not taken for an environment
        result = gym.run("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}", *words)
        assert result.returncode == 1
        assert "requirements.txt:5: cannot build the environment of `tiny_a`, `tiny_b`, `tiny_c`" in result.stderr
        assert "which needs no-such-package-here==1.0" in result.stderr


def test_nothing_to_start(gym: Gym) -> None:
    result = gym.run("env", "start")
    assert result.returncode == 1
    assert "has no server to start" in result.stderr


def test_dry_run_constructs_every_server_and_ends(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    result = gym.run("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}", "++dry_run=true")
    assert result.returncode == 0, result.stderr
    (tiny_tree / "resources_servers" / "tiny" / "app.py").write_text("raise SystemExit(3)\n")
    result = gym.run("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}", "++dry_run=true")
    assert result.returncode == 1
    assert "`tiny_a` exited with 3" in result.stderr


def test_a_stack_notes_its_steps_and_keeps_its_logs(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    start_three(gym, free_port, "++policy_api_key=sk-abcdefghijkl")
    gym.wait_for(READY)
    (record,) = (record for record in running_stacks() if record.head_url.endswith(f":{free_port}"))
    assert (record.state, record.name, record.pid, record.folder) == ("ready", "tiny_a", gym.started[-1].pid, str(tiny_tree))
    assert record.command[:5] == ("gym", "env", "start", "--config", "tiny.yaml")
    assert record.command[-1] == "++policy_api_key=****"
    assert [(server.name, server.state, server.phase) for server in record.servers] == [
        (name, "ready", "ready") for name in ("tiny_a", "tiny_b", "tiny_c", "head_server")
    ]
    assert Path(record.servers[1].log).read_text() == "tiny is starting\n"
    gym.started[-1].send_signal(signal.SIGINT)
    assert gym.started[-1].wait(10) == 0
    assert record.id not in [left.id for left in running_stacks()]
    events = [(event["type"], event.get("phase")) for event in read_events(record.events) if event.get("name") == "tiny_b"]
    assert events == [("server.started", None), ("server.phase", "setting up"), ("server.ready", None), ("server.ended", None)]


def test_readiness_is_told_at_once(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    app = tiny_tree / "resources_servers" / "tiny" / "app.py"
    app.write_text(
        app.read_text().replace("TinyServer.run_webserver()", "import time; time.sleep(1); TinyServer.run_webserver()")
    )
    start_three(gym, free_port)
    gym.wait_for("tiny is starting")
    url = f"http://127.0.0.1:{free_port}"
    while gym.started[-1].poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            instances = httpx.get(f"{url}/server_instances").json()
            for instance in instances:
                httpx.get(instance["url"], timeout=20)
            break
    asked = 0
    while READY not in gym.output():
        httpx.get(instance["url"], timeout=20)
        asked += 1
    assert asked < 100, "it was looked for from time to time"


def test_logs_go_to_one_file_per_server(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    start_three(gym, free_port, "++nemo_gym_log_dir=server_logs")
    gym.wait_for(READY)
    assert (tiny_tree / "server_logs" / "tiny_c.log").read_text() == "tiny is starting\n"
