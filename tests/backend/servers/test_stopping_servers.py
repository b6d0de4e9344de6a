"""How servers end when their stack is stopped: with requests in flight, with helpers, with a will of their own, all at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from backend.io.homes import state_home
from backend.servers.stacks import running_stacks
from tests.conftest import ROOT, TINY_SERVER, Gym, processes_of, unused_port, wait_until_gone
from tests.loopback import serving_in_thread

SLOW_ROUTE = """
    def setup_webserver(self):
        app = super().setup_webserver()
        app.post("/slow")(self.slow)
        return app

    async def slow(self) -> dict:
        import os
        from nemo_gym.server_utils import request
        answer = await request("POST", os.environ["UPSTREAM"] + "/v1/x", json={"a": 1})
        return await answer.json()
"""
SLOW_SERVER = TINY_SERVER.replace("\n    async def verify", f"{SLOW_ROUTE}\n    async def verify")
STUBBORN = (
    '    import time, uvicorn\n    uvicorn.Server.handle_exit = lambda *_: time.sleep(3600)\n    print("tiny is starting")\n'
)
STUBBORN_SERVER = SLOW_SERVER.replace('    print("tiny is starting")\n', STUBBORN)
IN_FLIGHT = 50

HELPER_SERVER = '''
import atexit
import os
import subprocess
import sys
import time
from contextlib import asynccontextmanager

from fastapi import FastAPI

from nemo_gym.base_resources_server import BaseResourcesServerConfig, BaseVerifyRequest, BaseVerifyResponse, SimpleResourcesServer

HELPER = """
import os, socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), reuse_port=False)
print("it listens", flush=True)
time.sleep(3600)
"""


class OwnerServer(SimpleResourcesServer):
    config: BaseResourcesServerConfig

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        inner = app.router.lifespan_context

        @asynccontextmanager
        async def lifespan(application):
            own_session = os.environ["HELPER_HAS"] == "a session of its own"
            command = [sys.executable, "-c", HELPER, os.environ["HELPER_PORT"]]
            helper = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=own_session)
            assert helper.stdout.readline() == b"it listens\\n"
            async with inner(application) as state:
                yield state
            print("closing the helper", flush=True)
            if os.environ["SHUTDOWN"] == "hangs":
                time.sleep(3600)
            helper.terminate()
            print("the helper is closed", helper.wait() != 0, flush=True)

        app.router.lifespan_context = lifespan
        return app

    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        return BaseVerifyResponse(**body.model_dump(), reward=1.0)


if __name__ == "__main__":
    atexit.register(lambda: print("registered at exit", flush=True))
    OwnerServer.run_webserver()
    print("after serving", flush=True)
'''


def put_server(tree: Path, source: str, instances: str = "abc") -> None:
    (tree / "resources_servers" / "tiny" / "app.py").write_text(source)
    block = "{resources_servers: {tiny: {entrypoint: app.py, domain: other}}}"
    (tree / "tiny.yaml").write_text("".join(f"tiny_{name}: {block}\n" for name in instances))


class Upstream:
    """An endpoint that never answers, and how many wait for it."""

    def __init__(self) -> None:
        self.waiting: set[object] = set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        mark = object()
        self.waiting.add(mark)
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            self.waiting.discard(mark)


@contextmanager
def slow_requests(gym: Gym, tree: Path, source: str, port: int) -> Iterator[Upstream]:
    """A stack with 50 requests in flight through its servers to an endpoint that does not answer."""
    put_server(tree, source)
    upstream = Upstream()
    with serving_in_thread(upstream) as url:
        gym.environment["UPSTREAM"] = url
        gym.start("env", "start", "--config", "tiny.yaml", f"++head_server.port={port}")
        gym.wait_for("All 3 / 3 servers ready!")
        servers = [str(entry["url"]) for entry in httpx.get(f"http://127.0.0.1:{port}/server_instances").json()]

        def call(number: int) -> None:
            try:
                httpx.post(f"{servers[number % 3]}/slow", timeout=60)
            except httpx.HTTPError:
                pass

        callers = [threading.Thread(target=call, args=(number,)) for number in range(IN_FLIGHT)]
        for caller in callers:
            caller.start()
        wait_for(lambda: len(upstream.waiting) == IN_FLIGHT)
        yield upstream
        for caller in callers:
            caller.join()


def wait_for(is_so: Any, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert is_so()


@pytest.mark.slow
def test_ctrl_c_with_fifty_slow_requests_leaves_no_process_and_no_connection(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    with slow_requests(gym, tiny_tree, SLOW_SERVER, free_port) as upstream:
        gym.started[-1].send_signal(signal.SIGINT)
        assert gym.started[-1].wait(10) == 0
        assert processes_of(str(tiny_tree)) == []
        wait_for(lambda: not upstream.waiting)
    assert "Traceback" not in gym.output()


def test_the_second_ctrl_c_does_not_wait_for_stubborn_servers(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    with slow_requests(gym, tiny_tree, STUBBORN_SERVER, free_port) as upstream:
        (record,) = (record for record in running_stacks() if record.head_url.endswith(f":{free_port}"))
        began = time.monotonic()
        gym.started[-1].send_signal(signal.SIGINT)
        wait_for(lambda: running_stacks()[-1].state == "stopping" and time.monotonic() - began > 0.3)
        assert gym.started[-1].poll() is None
        second = time.monotonic()
        gym.started[-1].send_signal(signal.SIGINT)
        assert gym.started[-1].wait(10) == 0
        assert time.monotonic() - second < 3  # what the servers would have been given
        assert processes_of(str(tiny_tree)) == []
        assert not (state_home("stacks") / f"{record.id}.json").exists()
        wait_for(lambda: not upstream.waiting)
    assert "Traceback" not in gym.output()


STOP_AGAIN_AND_AGAIN = """
import ctypes, sys
import psutil
from backend.servers import supervisor
from nemo_gym.cli.env import RunHelper
from nemo_gym.global_config import GlobalConfigDictParserConfig
supervisor.STOP_GRACE_SECONDS = 0.2  # they do not use it
if sys.argv[2] == "adopts":
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # as the first process of a container, to which all orphans come
config = {"config_paths": ["tiny.yaml"], "head_server": {"host": "127.0.0.1", "port": int(sys.argv[3])}}
for _ in range(int(sys.argv[1])):
    helper = RunHelper()
    helper.start(GlobalConfigDictParserConfig(initial_global_config_dict=config))
    helper.shutdown()
    print("left:", [(child.pid, child.status()) for child in psutil.Process().children(recursive=True)], flush=True)
"""
TOOLS_AND_NO_END = """    import signal, subprocess, sys, time, uvicorn
    signal.signal(signal.SIGINT, lambda *_: time.sleep(3600))
    uvicorn.Server.handle_exit = lambda *_: time.sleep(3600)
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    print("tiny is starting")
"""


@pytest.mark.parametrize(
    ("times", "parent"),
    [
        (2, "adopts"),
        pytest.param(2, "plain", marks=pytest.mark.slow),
        pytest.param(10, "adopts", marks=[pytest.mark.slow, pytest.mark.timeout(600)]),
    ],
)
def test_servers_that_ignore_their_end_leave_no_child_and_no_corpse(
    tiny_tree: Path, free_port: int, times: int, parent: str
) -> None:
    put_server(tiny_tree, TINY_SERVER.replace('    print("tiny is starting")\n', TOOLS_AND_NO_END), "ab")
    result = subprocess.run(
        [sys.executable, "-c", STOP_AGAIN_AND_AGAIN, str(times), parent, str(free_port)],
        cwd=tiny_tree, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert [line for line in result.stdout.splitlines() if line.startswith("left:")] == ["left: []"] * times
    assert processes_of(str(tiny_tree)) == []


def stop_and_start_again(gym: Gym, tree: Path, **environment: str) -> list[str]:
    """Start, stop with Ctrl-C, and again, with one port for the helper; returns what the server said at its second end."""
    put_server(tree, HELPER_SERVER, "a")
    gym.environment.update(HELPER_PORT=str(unused_port()), **environment)
    for _ in range(2):
        gym.start("env", "start", "--config", "tiny.yaml", f"++head_server.port={unused_port()}")
        gym.wait_for("All 1 / 1 servers ready!")
        gym.started[-1].send_signal(signal.SIGINT)
        assert gym.started[-1].wait(15) == 0
        assert wait_until_gone(str(tree), timeout=0.2) == []
    return [line.removeprefix("(tiny_a) ") for line in gym.output().splitlines() if line.startswith("(tiny_a) ")]


def test_a_server_closes_its_helper_before_the_next_start(gym: Gym, tiny_tree: Path) -> None:
    said = stop_and_start_again(gym, tiny_tree, SHUTDOWN="works", HELPER_HAS="the group of its server")
    assert said == ["closing the helper", "the helper is closed True", "after serving", "registered at exit"]


@pytest.mark.slow
@pytest.mark.parametrize("has", ["the group of its server", "a session of its own"])
def test_a_helper_goes_with_a_server_whose_shutdown_hangs(gym: Gym, tiny_tree: Path, has: str) -> None:
    assert stop_and_start_again(gym, tiny_tree, SHUTDOWN="hangs", HELPER_HAS=has) == ["closing the helper"]


@pytest.mark.parametrize("victim", ["server", "command", "warm parent"])
def test_a_helper_with_a_session_of_its_own_goes_with_whatever_is_killed(gym: Gym, tiny_tree: Path, victim: str) -> None:
    put_server(tiny_tree, HELPER_SERVER, "a")
    gym.environment.update(HELPER_PORT=str(unused_port()), SHUTDOWN="works", HELPER_HAS="a session of its own")
    gym.start("env", "start", "--config", "tiny.yaml", f"++head_server.port={(port := unused_port())}")
    gym.wait_for("All 1 / 1 servers ready!")
    pid = httpx.get(f"http://127.0.0.1:{port}/server_instances").json()[0]["pid"]
    command = psutil.Process(gym.started[-1].pid)
    os.kill({"server": pid, "command": command.pid, "warm parent": command.children()[0].pid}[victim], signal.SIGKILL)
    gym.started[-1].wait(10)
    assert wait_until_gone(str(tiny_tree)) == []


@pytest.mark.parametrize("order", ["command first", "servers first"])
def test_sigterm_to_every_process_at_once_is_a_stop(gym: Gym, tiny_tree: Path, free_port: int, order: str) -> None:
    """As a batch system may send it."""
    gym.start("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}")
    gym.wait_for("All 3 / 3 servers ready!")
    command = psutil.Process(gym.started[-1].pid)
    everybody = [command, *command.children(recursive=True)]
    for process in everybody if order == "command first" else reversed(everybody):
        process.terminate()
    assert gym.started[-1].wait(10) == 143
    assert "Traceback" not in gym.output()
    assert wait_until_gone(str(tiny_tree)) == []
