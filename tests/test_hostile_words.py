"""What models, tools, data and servers say, in every command and screen: it never drives the terminal that shows it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from backend.io.jsonl import read_jsonl
from tests.conftest import Gym
from tests.run_trees import SCRIPTED_AGENT, SCRIPTED_VERIFIER, make_run_tree
from tests.terminal import GYM, terminal

pytestmark = pytest.mark.slow

HOSTILE = "\x1b]52;c;ZXZpbA==\x07\x1b]0;EVIL\x07\x1b[2J\rover\u202edlrow\u200f\u2066x\x9b31m\x85 [red]m[/] \x00\x08\x0b"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
SAID = f"""
import json, sys
HOSTILE = {HOSTILE!r}
print(HOSTILE)
print(HOSTILE, file=sys.stderr)
"""


@pytest.fixture
def hostile(gym: Gym) -> Gym:
    """A tree in which the model, a tool, the verifier, the servers' logs and the rows all say `HOSTILE`."""
    rows: list[dict[str, Any]] = [
        {"note": HOSTILE, "responses_create_params": {"input": HOSTILE}},
        {"act": "break"},
        {"act": "judge"},
    ]
    make_run_tree(gym.cwd, rows)
    call = '{"type": "function_call", "call_id": "c" + HOSTILE, "name": HOSTILE, "arguments": json.dumps({HOSTILE: HOSTILE})}'
    output = '{"type": "function_call_output", "call_id": "c" + HOSTILE, "output": HOSTILE}'
    agent = SCRIPTED_AGENT.replace('"an answer"', "HOSTILE").replace("output=[message]", f"output=[{call}, {output}, message]")
    agent = agent.replace('"the agent broke"', '"the agent broke " + HOSTILE').replace('"TimeoutError: slow"', "HOSTILE")
    verifier = SCRIPTED_VERIFIER.replace("reward=body.expected_reward)", "reward=body.expected_reward, **{HOSTILE: HOSTILE})")
    verifier = verifier.replace("-> BaseVerifyResponse", "-> Judged").replace("return BaseVerifyResponse", "return Judged")
    verdict = 'class Judged(BaseVerifyResponse):\n    model_config = ConfigDict(extra="allow")\n\n\nclass Verifier('
    for kind, source in (
        ("responses_api_agents", agent),
        ("resources_servers", verifier.replace("class Verifier(", verdict, 1)),
    ):
        (gym.cwd / kind / "scripted" / "app.py").write_text(SAID + source)
    (gym.cwd / "resources_servers" / "scripted" / "README.md").write_text(f"# {HOSTILE}\n\n{HOSTILE}\n")
    return gym


def test_no_command_passes_it_on(hostile: Gym, free_port: int) -> None:
    commands = [
        ("eval", "run", "--config", "scripted.yaml", "--output", "out/r.jsonl", "--split", "validation"),
        ("list", "runs"),
        ("list", "resources-servers", "scripted"),
        ("env", "resolve", "--config", "scripted.yaml", f"++note='{HOSTILE.replace(chr(0), '')}'"),
        ("env", "status"),
        ("eval", "run", "--config", f"{HOSTILE.replace(chr(0), '')}.yaml", "--output", "out/r.jsonl"),
        ("list", HOSTILE.replace(chr(0), "")),
    ]
    hostile.start("env", "start", "--config", "scripted.yaml", f"++head_server.port={free_port}")
    hostile.wait_for("servers ready!")
    for words in commands:
        result = hostile.run(*words)
        assert not UNSAFE.findall(result.stdout + result.stderr), words
    assert hostile.run("env", "stop", "--all").returncode == 0
    rollout = next(read_jsonl(hostile.cwd / "out" / "r.jsonl")).value
    assert rollout[HOSTILE] == rollout["response"]["output"][1]["output"] == HOSTILE
    shown = hostile.output()
    assert "(agent) ␛]52;c;ZXZpbA==␇" in shown
    assert not UNSAFE.findall(shown)


def test_a_run_on_a_terminal_and_every_screen_of_the_workbench(hostile: Gym) -> None:
    run = (*GYM, "eval", "run", "--config", "scripted.yaml", "--output", "out/r.jsonl", "--split", "validation")
    with terminal(run, hostile.cwd) as screen:
        assert screen.end(60) == 0
        assert_only_ours(screen.output)
    with terminal((*GYM, "tui", "out/r.jsonl"), hostile.cwd) as screen:
        for keys, text in (
            ("7", "out/r"), ("1", "scripted"), ("2", "Config"), ("3", "Servers"), ("4", "agent_run_error"), ("l", "␛"), ("5", "␛"),
        ):  # fmt: skip
            screen.send(keys)
            screen.wait_for(text)
            screen.read(0.5)
        screen.send("\x1b[B\r")
        screen.read(1)
        assert_only_ours(screen.output)
        screen.send("q")


def assert_only_ours(output: bytes) -> None:
    """Nothing of `HOSTILE` is a control sequence, nor text that is hidden or turned round."""
    text = output.decode("utf-8", "replace")
    for piece in (
        "\x1b]52;",
        "\x1b]0;EVIL",
        "\x1b[2J\rover",
        "\x9b",
        "\x85",
        "\u202e",
        "\u200f",
        "\u2066",
        "\x00",
        "\x08",
        "\x0b",
    ):
        assert piece not in text, repr(piece)
