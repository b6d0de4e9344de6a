"""Ports: held from the moment they are chosen, and named with whoever has them."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from backend.config.resolution import ServerInstance
from backend.errors import GymError
from backend.servers.port_holder import holder_of
from backend.servers.ports import bind_in_range, bind_stack
from tests.conftest import Gym, unused_port, wait_until_gone

NARROW = 60
SERVERS = 20


@pytest.mark.slow
def test_two_stacks_that_start_at_once_share_a_narrow_range(tiny_tree: Path) -> None:
    low = random.randrange(21_000, 31_000)
    block = "{resources_servers: {tiny: {entrypoint: app.py, domain: other}}}"
    heads, stacks = [], []
    for name in ("x", "y"):
        folder = tiny_tree / name
        folder.mkdir()
        (folder / "resources_servers").symlink_to(tiny_tree / "resources_servers")
        (folder / "many.yaml").write_text("".join(f"{name}_{number}: {block}\n" for number in range(SERVERS)))
        heads.append(unused_port())
        stacks.append(Gym(folder))
    try:
        for stack, head in zip(stacks, heads, strict=True):
            narrow = (f"++port_range_low={low}", f"++port_range_high={low + NARROW - 1}")
            stack.start("env", "start", "--config", "many.yaml", f"++head_server.port={head}", *narrow)
        for stack in stacks:
            stack.wait_for(f"All {SERVERS} / {SERVERS} servers ready!", 90)
        ports = [
            int(server["port"]) for head in heads for server in httpx.get(f"http://127.0.0.1:{head}/server_instances").json()
        ]
        assert len(set(ports)) == 2 * SERVERS
        assert low <= min(ports) and max(ports) < low + NARROW
    finally:
        for stack in stacks:
            stack.started[-1].send_signal(signal.SIGINT)
            assert stack.started[-1].wait(30) == 0
    assert wait_until_gone(str(tiny_tree)) == []


def instance(name: str) -> ServerInstance:
    return ServerInstance(name, "resources_servers", "tiny", "app.py", "127.0.0.1", None, None, {})


def test_a_range_that_is_used_up_gives_every_port_once_and_then_says_so() -> None:
    low = random.randrange(21_000, 31_000)
    held = [bind_in_range("127.0.0.1", low, low + 19, (), purpose="a test") for _ in range(15)]
    try:
        names = [f"s{number}" for number in range(6)]
        config = {"head_server": {"host": "127.0.0.1", "port": 0}, "port_range_low": low, "port_range_high": low + 19}
        config |= {name: {"resources_servers": {"tiny": {}}} for name in names}
        with pytest.raises(GymError, match=f"no free port between {low} and {low + 19} for server `s5`"):
            bind_stack([instance(name) for name in names], config, any_head_port=False)
        again = [bind_in_range("127.0.0.1", low, low + 19, (), purpose="a test") for _ in range(5)]  # all were let go
        held += again
        assert len({listener.getsockname()[1] for listener in held}) == 20
    finally:
        for listener in held:
            listener.close()


def test_a_stack_that_is_not_known_here_is_named_by_its_command(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    """Its servers have the command line of the process they were forked from, which tells a person nothing."""
    gym.start("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}", "++policy_api_key=sk-never-shown-1")
    gym.wait_for("All 3 / 3 servers ready!")
    pid = gym.started[-1].pid
    elsewhere = Gym(tiny_tree, {"GYM_TUI_HOME": str(tiny_tree / "elsewhere")})
    result = elsewhere.run("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}")
    assert result.returncode == 1
    assert (
        f"Error: port {free_port} for the head server is taken by process {pid} ({sys.executable} -m backend.cli env start"
        in result.stderr
    )
    assert f"that is a stack of servers of this program; Ctrl-C there, or `kill -INT {pid}`, ends it\n" in result.stderr
    assert "choose another port with ++head_server.port=…" in result.stderr
    assert "sk-never-shown-1" not in result.stderr
    known = gym.run("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}")
    assert f"is taken by process {pid} (" in known.stderr
    assert "which `gym env stop " in known.stderr and "kill -INT" not in known.stderr


def test_the_holder_is_whoever_has_this_address() -> None:
    other = "import socket, sys; s = socket.create_server(('127.0.0.2', int(sys.argv[1]))); print('x', flush=True); input()"
    with socket.create_server(("127.0.0.1", 0)) as mine:
        port = mine.getsockname()[1]
        command = [sys.executable, "-c", other, str(port)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            holders = [holder_of(host, port) for host in ("127.0.0.1", "127.0.0.2")]
            process.kill()
    assert [holder and holder.pid for holder in holders] == [os.getpid(), process.pid]
    assert not any(holder and holder.is_stack for holder in holders)
    assert holder_of("127.0.0.1", port) is None
