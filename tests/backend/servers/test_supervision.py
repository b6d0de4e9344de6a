"""What supervision must withstand: readers that go away, tools that outlive their server, odd folders, every kind of death."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import httpx
import psutil
import pytest

from backend.io.homes import state_home
from tests.conftest import COMMAND, Gym, processes_of, wait_until_gone

TOOL_SERVER = """
import subprocess
import sys

from nemo_gym.base_resources_server import BaseResourcesServerConfig, BaseVerifyRequest, BaseVerifyResponse, SimpleResourcesServer


class ToolServer(SimpleResourcesServer):
    config: BaseResourcesServerConfig

    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        print("verifying", flush=True)
        return BaseVerifyResponse(**body.model_dump(), reward=1.0)


if __name__ == "__main__":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    ToolServer.run_webserver()
"""
VERIFY = {
    "responses_create_params": {"input": "a"},
    "response": {
        "id": "r", "created_at": 1.0, "model": "m", "object": "response", "output": [], "parallel_tool_calls": True,
        "tool_choice": "auto", "tools": [],
    },
}  # fmt: skip


@pytest.fixture
def tool_tree(tiny_tree: Path) -> Path:
    (tiny_tree / "resources_servers" / "tiny" / "app.py").write_text(TOOL_SERVER)
    return tiny_tree


def instances(port: int) -> list[dict[str, object]]:
    return httpx.get(f"http://127.0.0.1:{port}/server_instances").json()  # type: ignore[no-any-return]


@pytest.mark.parametrize("victim", ["server", "command", "warm parent"])
def test_tools_die_with_their_server_whoever_is_killed(gym: Gym, tool_tree: Path, free_port: int, victim: str) -> None:
    for _ in range(3):
        gym.start("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}")
        gym.wait_for("All 3 / 3 servers ready!")
        assert sum("time.sleep(600)" in " ".join(process.cmdline()) for process in processes_of(str(tool_tree))) == 3
        command = psutil.Process(gym.started[-1].pid)
        targets = {
            "server": int(str(instances(free_port)[1]["pid"])),
            "command": command.pid,
            "warm parent": command.children()[0].pid,
        }
        os.kill(targets[victim], signal.SIGKILL)
        gym.started[-1].wait(10)
        assert wait_until_gone(str(tool_tree)) == []


def test_why_a_stack_has_ended_stands_in_its_events(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    gym.start("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}")
    gym.wait_for("All 3 / 3 servers ready!")
    (record,) = state_home("stacks").glob("*.json")
    events = Path(json.loads(record.read_text())["events"])
    os.kill(int(str(instances(free_port)[1]["pid"])), signal.SIGKILL)
    gym.started[-1].wait(10)
    (told,) = [event for event in map(json.loads, events.read_text().splitlines()) if event["type"] == "stack.ended"]
    assert "`tiny_b` finished unexpectedly! (ended by SIGKILL" in told["error"]


def test_servers_go_on_when_nobody_reads_their_output(tool_tree: Path, free_port: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    process = subprocess.Popen(
        [*COMMAND, "env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}"],
        cwd=tool_tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    while b"servers ready!" not in process.stdout.readline():
        continue
    process.stdout.close()
    time.sleep(0.3)
    url = instances(free_port)[0]["url"]
    for _ in range(20):
        assert httpx.post(f"{url}/verify", json=VERIFY).json()["reward"] == 1.0
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 0
    assert wait_until_gone(str(tool_tree)) == []


def test_servers_describe_their_endpoints(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    gym.start("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}")
    gym.wait_for("All 3 / 3 servers ready!")
    document = httpx.get(f"{instances(free_port)[0]['url']}/openapi.json").json()
    assert document["paths"].keys() == {"/seed_session", "/verify", "/aggregate_metrics", "/reverify_mode"}
    verify = document["paths"]["/verify"]["post"]
    assert verify["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/BaseVerifyRequest"}
    assert "reward" in document["components"]["schemas"]["BaseVerifyResponse"]["required"]
    assert httpx.get(f"{instances(free_port)[0]['url']}/docs").status_code == 200


def test_modules_in_the_working_directory_are_not_taken_for_ours(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    for name in ("backend", "yaml", "asyncio", "json"):
        (tiny_tree / name).mkdir()
        (tiny_tree / name / "__init__.py").write_text("raise RuntimeError('the working directory was imported')\n")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [COMMAND[0], "-P", *COMMAND[1:], "env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}"]
    with open(tiny_tree / "stdout", "w") as output:
        process = subprocess.Popen(command, cwd=tiny_tree, env=environment, stdout=output, stderr=output, start_new_session=True)
    gym.started.append(process)  # type: ignore[arg-type]
    (tiny_tree / "stderr").write_text("")
    assert "the working directory was imported" not in gym.wait_for("All 3 / 3 servers ready!")


def test_keys_of_any_kind_reach_the_servers(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    (tiny_tree / "table.yaml").write_text("table: {0: zero, true: yes, text: [1, 2.5, null]}\n")
    app = tiny_tree / "resources_servers" / "tiny" / "app.py"
    app.write_text(
        app.read_text().replace(
            'print("tiny is starting")',
            'from nemo_gym.global_config import get_global_config_dict\n    print("table", dict(get_global_config_dict()["table"]), flush=True)',
        )
    )
    gym.start("env", "start", "--config", "tiny.yaml", "--config", "table.yaml", f"++head_server.port={free_port}")
    output = gym.wait_for("All 3 / 3 servers ready!")
    assert "(tiny_a) table {0: 'zero', True: True, 'text': [1, 2.5, None]}" in output


def test_programs_that_a_server_starts_find_its_configuration(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    (tiny_tree / "table.yaml").write_text("policy_api_key: sk-abcdefghijkl\ntable: {0: zero}\nlong: " + "x" * 200_000 + "\n")
    app = tiny_tree / "resources_servers" / "tiny" / "app.py"
    tool = "from nemo_gym.global_config import get_global_config_dict as get; print('tool', get()['table'], get()['policy_api_key'][:5])"
    start_tool = f"import os, subprocess, sys; subprocess.run([sys.executable, '-c', {tool!r}])"
    start_tool += "; print('named', [name for name, value in os.environ.items() if 'sk-abc' in value], flush=True)"
    app.write_text(app.read_text().replace('print("tiny is starting")', start_tool))
    gym.start("env", "start", "--config", "tiny.yaml", "--config", "table.yaml", f"++head_server.port={free_port}")
    output = gym.wait_for("All 3 / 3 servers ready!")
    assert "(tiny_a) tool {0: 'zero'} sk-ab" in output
    assert "(tiny_a) named []" in output


def test_a_session_that_ignores_hangups_keeps_its_servers(tiny_tree: Path, free_port: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    process = subprocess.Popen(
        ["nohup", *COMMAND, "env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}"],
        cwd=tiny_tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    while b"servers ready!" not in process.stdout.readline():
        continue
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert len(instances(free_port)) == 3
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 143
    process.stdout.close()


def test_what_answers_on_the_head_port_may_be_something_else(gym: Gym) -> None:
    from tests.loopback import serving_in_thread

    async def answer(scope, receive, send):  # type: ignore[no-untyped-def]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps([1]).encode()})

    with serving_in_thread(answer) as url:
        result = gym.run("env", "status", f"++head_server.port={url.rpartition(':')[2]}")
    assert result.returncode == 0
    assert "is not a head server" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    script = f"cd {gone} && rmdir {gone} && exec {' '.join(COMMAND)} env status"
    result = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True)
    assert result.returncode == 1
    assert "Error: the working directory does not exist any more" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_background_job_of_a_script_can_be_interrupted(tiny_tree: Path, free_port: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    start = f"{' '.join(COMMAND)} env start --config tiny.yaml ++head_server.port={free_port}"
    script = f"{start} > stdout 2>&1 & until grep -q 'servers ready!' stdout; do sleep 0.05; done; kill -INT $!; wait $!"
    result = subprocess.run(["bash", "-c", script], cwd=tiny_tree, env=environment, timeout=40)
    assert result.returncode == 0
    assert wait_until_gone(str(tiny_tree)) == []
