"""A server with an environment of its own, started by the real command."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import psutil

from backend.servers.stacks import running_stacks
from tests.conftest import TINY_SERVER, Gym
from tests.wheel_samples import offline, write_server, write_wheel

APP = TINY_SERVER.replace("class TinyServer", "import tinypkg\n\n\nclass TinyServer").replace(
    "    async def verify",
    """    def setup_webserver(self):
        import os, subprocess, sys

        app = super().setup_webserver()
        tool = subprocess.run(["python", "-c", "import tinypkg, sys; print(sys.prefix)"], capture_output=True, text=True)

        @app.get("/where")
        def where() -> dict:
            return {"package": tinypkg.__file__, "prefix": sys.prefix, "tool": tool.stdout.strip(), "cwd": os.getcwd()}

        return app

    async def verify""",
)


def test_it_is_built_once_serves_and_stops(gym: Gym, free_port: int) -> None:
    home = gym.cwd / "home"
    gym.environment["GYM_TUI_HOME"] = str(home)
    write_wheel(gym.cwd / "wheels", "tinypkg")
    folder = write_server(gym.cwd, "tiny", offline(gym.cwd / "wheels", "tinypkg"), APP).folder
    write_server(gym.cwd, "plain", "nemo-gym\n", TINY_SERVER)
    blocks = {"mine": "tiny", "ours": "plain"}
    (gym.cwd / "all.yaml").write_text(
        "".join(
            f"{name}: {{resources_servers: {{{one}: {{entrypoint: app.py, domain: other}}}}}}\n" for name, one in blocks.items()
        )
    )
    for attempt in range(2):
        process = gym.start("env", "start", "--config", "all.yaml", f"++head_server.port={free_port}")
        output = gym.wait_for("All 2 / 2 servers ready!", timeout=60)
        assert ("(mine)  + tinypkg==1.0" in output) == (attempt == 0)
        with urllib.request.urlopen(f"http://127.0.0.1:{free_port}/server_instances", timeout=5) as answer:
            servers = {server["process_name"]: server["url"] for server in json.load(answer)}
        with urllib.request.urlopen(f"{servers['mine']}/where", timeout=5) as answer:
            where = json.load(answer)
        environment = (folder / ".venv").resolve()
        assert environment.parent == home / "cache" / "venvs"
        assert where["prefix"] == where["tool"] == str(environment)
        assert Path(where["package"]).is_relative_to(environment) and where["cwd"] == str(folder)
        workers = [child for child in psutil.Process(process.pid).children(recursive=True) if child.name() == "mine"]
        assert len(workers) == 1 and "backend.servers.warm_parent" in " ".join(workers[0].cmdline())  # forked, not begun anew
        process.terminate()
        process.wait(timeout=20)
    assert running_stacks() == ()
