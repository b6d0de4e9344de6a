"""`gym env stop`, several stacks on one machine, and what `gym env status` finds of them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from backend.cli.main import main
from backend.errors import GymError
from backend.io.redact import Redactor
from backend.servers import stopping
from backend.servers.stack_record import StackRecord, StackServer
from backend.servers.stacks import running_stacks, write_record
from backend.servers.stopping import choose_stacks, stop_stacks
from tests.conftest import Gym, unused_port, wait_until_gone
from tests.run_trees import make_run_tree


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "home"))


@pytest.fixture
def trees(tmp_path: Path, tiny_tree: Path) -> tuple[Path, Path]:
    """Two folders with the same component; the second one's configuration names its servers `other_…`."""
    second = tmp_path / "second"
    second.mkdir()
    (second / "resources_servers").symlink_to(tiny_tree / "resources_servers")
    (second / "tiny.yaml").write_text((tiny_tree / "tiny.yaml").read_text().replace("tiny_", "other_"))
    return tiny_tree, second


@contextmanager
def stack_in(folder: Path, *words: str) -> Iterator[Gym]:
    gym = Gym(folder)
    try:
        gym.start("env", "start", "--config", "tiny.yaml", *words)
        gym.wait_for("All 3 / 3 servers ready!")
        yield gym
    finally:
        if gym.started[-1].poll() is None:
            os.killpg(gym.started[-1].pid, signal.SIGKILL)
            gym.started[-1].wait()


def names(port: int) -> str:
    return f"++head_server.port={port}"


def test_two_stacks_are_seen_and_stopped_by_name(trees: tuple[Path, Path], gym: Gym) -> None:
    first_port, second_port = unused_port(), unused_port()
    with stack_in(trees[0], names(first_port)) as first, stack_in(trees[1], names(second_port)) as second:
        text = gym.run("env", "status").stdout
        assert text.endswith("6 servers found (6 healthy, 0 unhealthy)\n")
        assert [line for line in text.splitlines() if line.startswith("Stack ")] == [
            f"Stack `{record.name}` ({record.id}), head server at {record.head_url}:" for record in running_stacks()
        ]
        assert "[6] ✓ other_c (resources_servers/tiny)" in text
        named = gym.run("env", "status", names(second_port)).stdout
        assert named.endswith("3 servers found (3 healthy, 0 unhealthy)\n")
        assert "Stack `" not in named

        ambiguous = gym.run("env", "stop")
        assert ambiguous.returncode == 1
        assert "several stacks are running" in ambiguous.stderr
        assert all(record.id in ambiguous.stderr for record in running_stacks())

        stopped = gym.run("env", "stop", "other_b")
        assert stopped.returncode == 0
        assert re.fullmatch(
            r"other_a \(\S+, process \d+\): stopped after \d\.\d s: other_a, other_b, other_c, head_server\n", stopped.stdout
        )
        assert second.started[-1].wait(1) == 0  # as after Ctrl-C
        assert "NeMo Gym finished!" in second.output()
        assert first.started[-1].poll() is None

        assert gym.run("env", "stop", "other_b").returncode == 1
        assert "Did you mean `tiny_b`?" in gym.run("env", "stop", "tinyb").stderr
        assert gym.run("env", "stop", str(first_port)).returncode == 0
        assert first.started[-1].wait(1) == 0
    assert wait_until_gone(str(trees[0])) == []
    nothing = gym.run("env", "stop")
    assert nothing.returncode == 1
    assert "Error: no stack of servers is running on this machine" in nothing.stderr
    assert gym.run("env", "stop", "--all").stdout == "No stack is running.\n"


def test_status_tells_more_in_json(tiny_tree: Path, gym: Gym) -> None:
    with stack_in(tiny_tree, names(port := unused_port())):
        (record,) = running_stacks()
        servers = json.loads(gym.run("env", "status", "--json").stdout)
        assert [list(server) for server in servers] == [
            ["config_path", "dir_path", "entrypoint", "host", "name", "pid", "port", "process_name", "server_type", "start_time",
             "status", "uptime_seconds", "url", "health", "memory", "cpu", "in_flight", "stack"]
        ] * 3  # fmt: skip
        server = servers[1]
        assert (server["process_name"], server["name"], server["status"]) == ("tiny_b", "tiny", "success")
        assert server["health"]["http_status"] == 200
        assert server["health"]["phase"] == "ready"
        assert 1_000_000 < server["memory"] < 1_000_000_000
        assert server["in_flight"] == 0
        assert server["stack"] == {"id": record.id, "name": "tiny_a", "head_url": f"http://127.0.0.1:{port}"}
        asked = json.loads(gym.run("env", "status", "--json", names(port)).stdout)
        assert [entry["pid"] for entry in asked] == [entry["pid"] for entry in servers]


def test_a_head_without_a_record_is_asked(tiny_tree: Path, gym: Gym) -> None:
    with stack_in(tiny_tree, names(port := unused_port())):
        elsewhere = Gym(tiny_tree, {"GYM_TUI_HOME": str(tiny_tree / "elsewhere")})
        servers = json.loads(elsewhere.run("env", "status", "--json", names(port)).stdout)
        assert [(server["status"], server["stack"]) for server in servers] == [("success", None)] * 3
        assert all(server["memory"] > 1_000_000 for server in servers)
        (tiny_tree / "env.yaml").write_text(f"head_server: {{port: {port}}}\n")
        assert "3 servers found (3 healthy, 0 unhealthy)" in elsewhere.run("env", "status").stdout


def test_a_head_port_of_ours_moves_only_where_nobody_asked(trees: tuple[Path, Path], gym: Gym) -> None:
    """The default port is set to a free one in a copy of the constant, so that nothing else on the machine matters."""
    code = "import sys; from backend.config import defaults, schema; port = int(sys.argv.pop(1)); "
    code += "schema.DEFAULT_HEAD_PORT = defaults.DEFAULT_HEAD_PORT = port; from backend.cli.main import main; sys.exit(main())"
    port = unused_port()
    with stack_in(trees[0], names(port)):
        (first,) = running_stacks()
        refused = gym.run("env", "start", "--config", "tiny.yaml", names(port))
        assert refused.returncode == 1
        assert f"it is the head server of the stack `tiny_a`, which `gym env stop {first.id}` stops" in refused.stderr

        second = Gym(trees[1])
        from tests import conftest

        command, conftest.COMMAND = conftest.COMMAND, [conftest.COMMAND[0], "-c", code, str(port)]
        try:
            second.start("env", "start", "--config", "tiny.yaml")
        finally:
            conftest.COMMAND = command
        second.wait_for("All 3 / 3 servers ready!")
        moved = running_stacks()[1].head_url.rpartition(":")[2]
        assert f"Port {port} belongs to the head server of the stack `tiny_a`" in second.output()
        assert f"other commands find this one with ++head_server.port={moved}" in second.output()
        assert gym.run("env", "stop", "--all").stdout.count("stopped after") == 2
        assert second.started[-1].wait(1) == 0


@pytest.mark.slow
def test_the_stack_of_a_run_is_seen_and_stopped(gym: Gym) -> None:
    make_run_tree(gym.cwd, [{}, {"seconds": 60}])
    gym.start("eval", "run", "--config", "scripted.yaml", "--output", "out/r.jsonl", "--split", "validation")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not [record for record in running_stacks() if record.state == "ready"]:
        time.sleep(0.05)
    (record,) = running_stacks()
    assert record.run == str(gym.cwd / "out" / "r_run")
    assert record.command[:3] == ("gym", "eval", "run")
    assert all(Path(server.log).parent == gym.cwd / "out" / "r_run" / "logs" for server in record.servers)
    assert (
        f"{len(record.servers) - 1} servers found ({len(record.servers) - 1} healthy, 0 unhealthy)"
        in gym.run("env", "status").stdout
    )
    assert gym.run("env", "stop").returncode == 0
    assert gym.started[-1].wait(1) == 130
    assert wait_until_gone(str(gym.cwd)) == []


def test_a_stranger_s_head_port_is_an_error(tiny_tree: Path, gym: Gym) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        result = gym.run("env", "start", "--config", "tiny.yaml", names(port))
    assert result.returncode == 1
    assert f"port {port} for the head server is taken by process {os.getpid()}" in result.stderr
    assert "gym env stop" not in result.stderr


def record_of(pid: int, **changes: object) -> StackRecord:
    process = psutil.Process(pid)
    server = StackServer("quiz", "resources_servers", "mcqa", "http://127.0.0.1:1")
    record = StackRecord(
        "id-1", pid, process.create_time(), 1.0, (), "", "http://127.0.0.1:11000", "ready", "", (server,), name="one",
        machine=os.uname().nodename,
    )  # fmt: skip
    return replace(record, **changes)  # type: ignore[arg-type]


def test_a_command_that_ignores_the_interrupt_is_killed(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess
    import sys

    monkeypatch.setattr(stopping, "STOP_SECONDS", 0.5)
    code = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('x', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        write_record(record_of(process.pid), Redactor())
        (stopped,) = stop_stacks(choose_stacks("one"))
        assert (stopped.killed, stopped.name, stopped.servers) == (True, "one", ("quiz",))
        assert process.wait(1) == -signal.SIGKILL
    assert running_stacks() == ()


def test_a_process_that_only_has_the_number_is_never_signalled() -> None:
    import subprocess
    import sys

    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        record = record_of(process.pid, created=psutil.Process(process.pid).create_time() - 3600)
        assert [stopped.id for stopped in stop_stacks([record])] == ["id-1"]
        time.sleep(0.2)
        assert process.poll() is None
        process.kill()


def test_choosing(monkeypatch: pytest.MonkeyPatch) -> None:
    one = record_of(os.getpid())
    two = record_of(os.getpid(), id="id-2", name="two", head_url="http://127.0.0.1:12000", run="/results/x_run")
    monkeypatch.setattr(stopping, "running_stacks", lambda: (one, two))
    assert choose_stacks("one") == (one,)
    assert choose_stacks("id-2") == (two,)
    assert choose_stacks("12000") == (two,)
    assert choose_stacks(None, every=True) == (one, two)
    with pytest.raises(GymError, match="several stacks are called `quiz`") as caught:
        choose_stacks("quiz")
    assert caught.value.details[1].endswith("serves a run")
    with pytest.raises(GymError, match="several stacks are running"):
        choose_stacks(None)
    with pytest.raises(GymError, match="no running stack is called `three`"):
        choose_stacks("three")
    monkeypatch.setattr(stopping, "running_stacks", lambda: (one,))
    assert choose_stacks(None) == choose_stacks("quiz") == (one,)


def test_what_was_stopped_is_told_as_json(trees: tuple[Path, Path], gym: Gym) -> None:
    with stack_in(trees[0], names(unused_port())) as first, stack_in(trees[1], names(unused_port())) as second:
        records = {record.id: record for record in running_stacks()}
        ambiguous = gym.run("env", "stop", "--json")
        assert (ambiguous.returncode, ambiguous.stdout) == (1, "")
        assert json.loads(ambiguous.stderr)["error"]["message"] == "several stacks are running"
        result = gym.run("env", "stop", "--all", "--json")
        assert (result.returncode, result.stdout.count("\n")) == (0, 1)
        stopped = json.loads(result.stdout)
        assert {entry["id"] for entry in stopped} == set(records)
        for entry in stopped:
            record = records[entry["id"]]
            assert list(entry) == ["id", "name", "pid", "servers", "seconds", "killed"]
            assert (entry["name"], entry["pid"], entry["killed"]) == (record.name, record.pid, False)
            assert entry["servers"] == [server.name for server in record.servers]
            assert 0 <= entry["seconds"] < stopping.STOP_SECONDS
        assert [stack.started[-1].wait(1) for stack in (first, second)] == [0, 0]
    nothing = gym.run("env", "stop", "--all", "--json")
    assert (nothing.returncode, nothing.stdout) == (0, "[]\n")


def test_a_stack_that_does_not_end_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = record_of(os.getpid()), record_of(os.getpid(), id="id-2", name="two")

    def stop(records: Sequence[StackRecord]) -> Iterator[stopping.StackStopped]:
        yield stopping.StackStopped(one.id, one.name, one.pid, ("quiz",), 0.5, False)
        raise GymError("some stacks do not end")

    monkeypatch.setattr("backend.cli.env_stop.choose_stacks", lambda wanted, every: (one, two))
    monkeypatch.setattr("backend.cli.env_stop.stop_stacks", stop)
    assert main(["env", "stop", "--all", "--json"]) == 1
    said = capsys.readouterr()
    assert [entry["id"] for entry in json.loads(said.out)] == ["id-1"]
    assert json.loads(said.err)["error"]["message"] == "some stacks do not end"


def test_all_and_a_name_do_not_go_together(gym: Gym) -> None:
    assert gym.run("env", "stop", "mcqa", "--all").returncode == 2
