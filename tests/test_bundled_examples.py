"""The bundled examples, served and evaluated as a user would, by a model that plays them well, one that chats and one that cheats."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request

from tests.conftest import ROOT, Gym, unused_port
from tests.loopback import responses_answer, serving_in_thread
from tests.run_trees import read_rows
from tests.scripted_players import Player, chatterbox, cheat, expert

SERVERS = ROOT / "resources_servers"
EXAMPLES = sorted(path.name for path in SERVERS.glob("example_*"))
AGENTS = {name: f"{name}_simple_agent" for name in EXAMPLES} | {
    "example_multi_turn_gymnasium": "example_multi_turn_gymnasium_gymnasium_agent"
}
FULL_REWARD = dict.fromkeys(EXAMPLES, 1.0) | {"example_tool_call_multireward": 3.0}
REWARD_OF_CHAT = dict.fromkeys(EXAMPLES, 0.0) | {"example_single_tool_call": 1.0}


@dataclass
class Stack:
    """All examples behind one model endpoint, whose player can be changed."""

    gym: Gym
    head_port: int
    player: Player = expert

    def rows(self, example: str, player: Player) -> list[dict[str, Any]]:
        """The records of a run over the example's own rows."""
        self.player = player
        output = self.gym.cwd / player.__name__ / f"{example}.jsonl"
        result = self.gym.run(
            "eval", "run", "--no-serve", "--agent", AGENTS[example], "--output", str(output),
            "--input", str(SERVERS / example / "data" / "example.jsonl"), f"++head_server.port={self.head_port}",
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        assert read_rows(output.with_name(f"{example}_failures.jsonl")) == []
        return read_rows(output)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("examples")
    running = Stack(Gym(folder, {"GYM_TUI_HOME": str(folder / "home")}), unused_port())
    (folder / "all.yaml").write_text(json.dumps({"config_paths": [f"resources_servers/{n}/configs/{n}.yaml" for n in EXAMPLES]}))
    model = FastAPI()

    @model.post("/v1/responses")
    async def respond(request: Request) -> dict[str, Any]:
        return responses_answer(model="scripted", output=running.player(await request.json()))

    with serving_in_thread(model) as url:
        process = running.gym.start(
            "env", "start", "--config", "all.yaml", "--model-type", "openai_model", "--model-url", f"{url}/v1", "--model",
            "scripted", "--model-api-key", "dummy", f"++head_server.port={running.head_port}",
        )  # fmt: skip
        running.gym.wait_for("servers ready", timeout=60)
        yield running
        process.terminate()
        process.wait(20)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_who_plays_well_gets_the_full_reward(stack: Stack, example: str) -> None:
    rows = stack.rows(example, expert)
    assert [row["reward"] for row in rows] == [FULL_REWARD[example]] * 5
    (entry,) = json.loads((stack.gym.cwd / "expert" / f"{example}_aggregate_metrics.json").read_text())
    assert entry["agent_metrics"]["mean/reward"] == FULL_REWARD[example]
    if example == "example_tool_call_multireward":
        assert [entry["agent_metrics"][f"mean/{part}"] for part in ("correctness", "schema_valid", "format")] == [1.0] * 3


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_who_only_chats_gets_none(stack: Stack, example: str) -> None:
    assert [row["reward"] for row in stack.rows(example, chatterbox)] == [REWARD_OF_CHAT[example]] * 5


@pytest.mark.slow
def test_a_model_cannot_grade_itself(stack: Stack) -> None:
    rows = stack.rows("example_session_state_mgmt", cheat)
    assert [row["reward"] for row in rows] == [0.0] * 5
    for row in rows:
        (output,) = [item["output"] for item in row["response"]["output"] if item["type"] == "function_call_output"]
        assert json.loads(output) == {"error": "There is no tool named 'verify'"}


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_folder_holds_what_the_check_of_environments_asks_for(example: str) -> None:
    folder = SERVERS / example
    assert (folder / "README.md").is_file() and (folder / "requirements.txt").is_file() and (folder / "tests").is_dir()
    rows, rollouts = (read_rows(folder / "data" / name) for name in ("example.jsonl", "example_rollouts.jsonl"))
    assert len(rows) == len(rollouts) == 5
    for row, rollout in zip(rows, rollouts, strict=True):
        asked, told = (one["responses_create_params"]["input"] for one in (row, rollout))
        assert [(item["role"], item["content"]) for item in told] == [(item["role"], item["content"]) for item in asked]
        assert rollout["reward"] == FULL_REWARD[example]
    assert json.loads((folder / "data" / "example_metrics.json").read_text())["Number of examples"] == 5
    assert not list((folder / "data").glob("*conflict*"))


def test_data_holds_no_path_of_a_machine() -> None:
    for path in SERVERS.glob("example_*/data/*.json*"):
        assert str(Path.home()) not in path.read_text() and str(ROOT) not in path.read_text(), path
