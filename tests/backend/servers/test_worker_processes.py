"""`num_workers`: several processes behind one port, and who may have them."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import httpx
import psutil
import pytest

from backend.config.resolution import ServerInstance
from backend.errors import GymError
from backend.servers.http_client import client_settings
from backend.servers.stacks import running_stacks
from backend.servers.worker_processes import require_worker_branch
from tests.conftest import Gym, wait_until_gone

SHARED_SERVER = """
import os
from fastapi import FastAPI
from nemo_gym.base_resources_server import BaseResourcesServerConfig, BaseVerifyRequest, BaseVerifyResponse, SimpleResourcesServer
from nemo_gym.server_utils import get_nemo_gym_fastapi_num_workers, is_nemo_gym_fastapi_entrypoint, is_nemo_gym_fastapi_worker


class SharedServer(SimpleResourcesServer):
    config: BaseResourcesServerConfig

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.get("/who")(self.who)
        return app

    async def who(self) -> dict:
        from backend.servers.http_client import _holder
        return {
            "pid": os.getpid(), "worker": is_nemo_gym_fastapi_worker(), "count": get_nemo_gym_fastapi_num_workers(),
            "module": type(self).__module__, "limit": _holder.settings.connector_limit,
            "entrypoint": os.environ["IS_NEMO_GYM_FASTAPI_ENTRYPOINT"], "instance": self.config.name,
        }

    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        return BaseVerifyResponse(**body.model_dump(), reward=1.0)


if __name__ == "__main__":
    SharedServer.run_webserver()
elif is_nemo_gym_fastapi_entrypoint(__file__):
    print("a worker begins")
    app = SharedServer.run_webserver()
"""
WORKERS = 3


@pytest.fixture
def shared_tree(tiny_tree: Path) -> Path:
    (tiny_tree / "resources_servers" / "tiny" / "app.py").write_text(SHARED_SERVER)
    return tiny_tree


def start_shared(gym: Gym, port: int) -> str:
    """Start the three servers, the first with several workers; returns its URL."""
    gym.start(
        "env", "start", "--config", "tiny.yaml", f"++head_server.port={port}", "++global_aiohttp_connector_limit=300",
        f"++tiny_a.resources_servers.tiny.num_workers={WORKERS}",
    )  # fmt: skip
    gym.wait_for("All 3 / 3 servers ready!")
    return str(httpx.get(f"http://127.0.0.1:{port}/server_instances").json()[0]["url"])


def ask_all_workers(url: str) -> dict[int, dict[str, object]]:
    """What each worker says: new connections until every one has answered."""
    answers: dict[int, dict[str, object]] = {}
    for _ in range(2000):
        with httpx.Client() as client:
            answer = client.get(f"{url}/who").json()
        answers[answer["pid"]] = answer
        if len(answers) == WORKERS:
            break
    return answers


def test_workers_share_a_port(gym: Gym, shared_tree: Path, free_port: int) -> None:
    url = start_shared(gym, free_port)
    assert gym.output().count("(tiny_a) a worker begins") == WORKERS
    leader = psutil.Process(
        next(record.servers[0].pid for record in running_stacks() if record.head_url.endswith(str(free_port)))
    )
    answers = ask_all_workers(url)
    assert set(answers) == {child.pid for child in leader.children()}
    assert leader.pid not in answers
    for answer in answers.values():
        assert answer | {"pid": 0} == {
            "pid": 0, "worker": True, "count": WORKERS, "module": "resources_servers.tiny.app", "limit": 300 // WORKERS,
            "entrypoint": "resources_servers/tiny/app.py", "instance": "tiny_a",
        }  # fmt: skip
    gym.started[-1].send_signal(signal.SIGINT)
    assert gym.started[-1].wait(10) == 0
    assert wait_until_gone(str(shared_tree)) == []


@pytest.mark.parametrize("victim", ["worker", "leader"])
def test_a_worker_that_dies_ends_the_stack_by_name(gym: Gym, shared_tree: Path, free_port: int, victim: str) -> None:
    start_shared(gym, free_port)
    (record,) = (record for record in running_stacks() if record.head_url.endswith(str(free_port)))
    leader = psutil.Process(record.servers[0].pid)
    os.kill(leader.pid if victim == "leader" else leader.children()[-1].pid, signal.SIGKILL)
    assert gym.started[-1].wait(10) == 1
    expected = r"worker \d of 3: ended by SIGKILL" if victim == "worker" else "ended by SIGKILL"
    assert re.search(rf"Process `tiny_a` finished unexpectedly! \({expected}", gym.output())
    assert wait_until_gone(str(shared_tree)) == []


def test_a_worker_that_cannot_start_says_why(gym: Gym, shared_tree: Path, free_port: int) -> None:
    app = shared_tree / "resources_servers" / "tiny" / "app.py"
    app.write_text(app.read_text().replace("    print(", "    raise RuntimeError('no luck')\n    print("))
    words = ("++tiny_a.resources_servers.tiny.num_workers=2",)
    result = gym.run("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}", *words)
    assert result.returncode == 1
    assert "Process `tiny_a` finished unexpectedly! (RuntimeError: no luck)" in result.stderr


def test_a_worker_without_an_application_says_so(gym: Gym, shared_tree: Path, free_port: int) -> None:
    app = shared_tree / "resources_servers" / "tiny" / "app.py"
    app.write_text(app.read_text().replace("    app = SharedServer", "    other = SharedServer"))
    words = ("++tiny_a.resources_servers.tiny.num_workers=2",)
    result = gym.run("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}", *words)
    assert result.returncode == 1
    assert "has made no `app` in a worker" in result.stderr


def test_a_server_with_sessions_is_refused(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    words = ("++tiny_b.resources_servers.tiny.num_workers=4",)
    result = gym.run("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}", *words)
    assert result.returncode == 1
    assert "server `tiny_b` cannot have 4 workers: each would keep sessions and other state of its own" in result.stderr
    assert "++tiny_b.resources_servers.tiny.num_workers=1" in result.stderr
    assert str(tiny_tree / "resources_servers" / "tiny" / "app.py") in result.stderr


@pytest.mark.parametrize(
    ("source", "allowed"),
    [
        ("elif_ = is_nemo_gym_fastapi_entrypoint(__file__)", True),
        ("import nemo_gym.server_utils as u\nif u.is_nemo_gym_fastapi_entrypoint(__file__): app = 1", True),
        ("from nemo_gym.server_utils import is_nemo_gym_fastapi_entrypoint", False),
        ("# is_nemo_gym_fastapi_entrypoint(__file__)", False),
        ("this is no Python", False),
        ("", False),
    ],
)
def test_which_entry_points_may_have_workers(tmp_path: Path, source: str, allowed: bool) -> None:
    (tmp_path / "app.py").write_text(source)
    instance = ServerInstance("a", "resources_servers", "tiny", "app.py", "127.0.0.1", None, 2, {})
    if allowed:
        require_worker_branch(instance, tmp_path)
    else:
        with pytest.raises(GymError, match="cannot have 2 workers"):
            require_worker_branch(instance, tmp_path)


@pytest.mark.parametrize(("processes", "limits"), [(1, (300, 40)), (4, (75, 10)), (1000, (1, 1))])
def test_workers_share_the_connection_limits(processes: int, limits: tuple[int, int]) -> None:
    config = {"global_aiohttp_connector_limit": 300, "global_aiohttp_connector_limit_per_host": 40}
    settings = client_settings(config, processes)
    assert (settings.connector_limit, settings.connector_limit_per_host) == limits
