"""`gym list <kind>` through the real command line."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.backend.catalog.samples import MANIFEST, QUIZ, TRIVIA, WALK, benchmark
from tests.conftest import COMMAND, ROOT, Gym
from tests.terminal import terminal

WORKLOAD_KEYS = [
    "name", "kind", "status", "domain", "description", "version", "integration_profile", "modality", "licensing", "lifecycle",
]  # fmt: skip
FILES = {
    "resources_servers/quiz/configs/quiz.yaml": QUIZ,
    "benchmarks/trivia/config.yaml": TRIVIA,
    "benchmarks/trivia/manifest.yaml": MANIFEST,
    "benchmarks/sums/config.yaml": benchmark("sums"),
    "environments/walk/config.yaml": WALK,
    "responses_api_agents/own_agent/app.py": "",
}


@pytest.fixture
def tree(gym: Gym) -> Path:
    root = gym.cwd / "own"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def listed(gym: Gym, tree: Path):
    def run(*words: str):
        result = gym.run("list", *words, "--json", "--search-dir", "own")
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return run


def test_environments_are_all_workloads(listed) -> None:
    found = listed("environments")
    names = [entry["name"] for entry in found]
    assert names == sorted(names, key=str.casefold)
    assert {"first_steps", "resources_servers/mcqa"} <= set(names)
    own = [entry for entry in found if entry["name"] in ("resources_servers/quiz", "sums", "trivia", "walk")]
    assert [(entry["kind"], entry["name"]) for entry in own] == [
        ("environment", "resources_servers/quiz"),
        ("benchmark", "sums"),
        ("benchmark", "trivia"),
        ("environment", "walk"),
    ]
    assert all(list(entry) == WORKLOAD_KEYS for entry in found)
    assert own[2] == {
        "name": "trivia",
        "kind": "benchmark",
        "status": "experimental",
        "domain": "games",
        "description": "Trivia, curated",
        "version": "0.1.0",
        "integration_profile": "custom-gym-verifier",
        "modality": "text",
        "licensing": "unknown",
        "lifecycle": "active",
    }
    assert [entry for entry in found if entry["kind"] == "benchmark"] == listed("benchmarks")


def test_json_of_the_other_kinds(listed) -> None:
    assert listed("agents")[0] == {
        "name": "own_agent",
        "pattern": "A (composable)",
        "self_contained": False,
        "variants": [],
        "description": None,
    }
    assert {"name": "openai_model", "model": "openai_model", "model_group": "openai_model"} in listed("models")
    assert listed("resources-servers")[0] == {
        "name": "quiz",
        "domain": "knowledge",
        "description": "Questions with one answer",
    }


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--domain", "games"], ["trivia", "walk"]),
        (["--domain", "games", "--kind", "environment"], ["walk"]),
        (["--status", "experimental"], ["trivia"]),
        (["--modality", "text"], ["trivia"]),
        (["--licensing", "unknown"], ["trivia"]),
        (["--licensing", "MIT"], []),
        (["--lifecycle", "active"], ["trivia"]),
        (["+domain=games", "++catalog_kind=environment"], ["walk"]),
        (["+query='trivia'"], ["trivia"]),
        (["+query=wal", "--domain", "games"], ["walk"]),
    ],
)
def test_filters(listed, words: list[str], names: list[str]) -> None:
    assert [entry["name"] for entry in listed("environments", *words)] == names


def test_what_a_filter_leaves_out_is_told(gym: Gym, tree: Path) -> None:
    result = gym.run("list", "environments", "--licensing", "MIT", "--search-dir", "own")
    lacking = int(result.stderr.split()[1])  # all but one; how many depends on what is bundled
    assert result.stderr == f"warning: {lacking} entries do not say their licensing and are left out\n"
    assert result.stdout == f"Environments and benchmarks: 0 (manifests: 1 of {lacking + 1})\n"


def test_a_table_in_a_pipe_is_plain_and_whole(gym: Gym, tree: Path) -> None:
    lines = gym.run("list", "environments", "--kind", "benchmark", "--search-dir", "own").stdout.splitlines()
    assert lines[0] == "Benchmarks: 3 (manifests: 1 of 3)"
    assert lines[1].split() == ["Name", "Kind", "Status", "Lifecycle", "Domain", "Description"]
    assert lines[2].endswith("graded by the text of the right option")
    assert lines[4] == "trivia       benchmark  experimental  active     games      Trivia, curated"


@pytest.mark.parametrize("columns", [100, 60, 40])
def test_a_table_fits_the_terminal(gym: Gym, tree: Path, columns: int) -> None:
    command = [*COMMAND, "list", "environments", "--search-dir", "own"]
    with terminal(command, gym.cwd, size=(24, columns)) as screen:
        assert screen.end() == 0
        _, *lines = screen.text().replace("\r", "").splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[0].startswith("Name ")
    assert any(line.startswith("walk ") for line in lines)


@pytest.mark.parametrize(
    ("kind", "name", "type_", "details", "usage"),
    [
        ("benchmarks", "sums", "benchmark", ["config", "status", "resources servers", "datasets"], "--benchmark sums"),
        (
            "environments",
            "resources_servers/quiz",
            "environment",
            ["config", "status", "resources servers", "agent", "datasets"],
            "--resources-server quiz",
        ),
        ("agents", "simple_agent", "agent", ["path", "composition", "variants"], None),
        ("models", "openai_model", "model", ["config"], "--resources-server example_single_tool_call --model-type openai_model"),
        ("resources-servers", "mcqa", "resources server", ["config"], "--resources-server mcqa"),
    ],
)
def test_inspecting(listed, kind: str, name: str, type_: str, details: list[str], usage: str | None) -> None:
    found = listed(kind, name)
    assert list(found) == ["name", "type", "domain", "description", "details", "usage_example"]
    assert (found["name"], found["type"], list(found["details"])) == (name, type_, details)
    assert all(isinstance(value, str) for value in found["details"].values())
    assert found["usage_example"] is None if usage is None else f"gym env start {usage}" in found["usage_example"]


def test_inspecting_for_people(gym: Gym, tree: Path) -> None:
    result = gym.run("list", "environments", "walk", "--search-dir", "own")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "The walk environment (domain: games)",
        "",
        "Walks",
        "",
        f"config: {tree}/environments/walk/config.yaml",
        "status: no-manifest",
        "resources servers: walk",
        "agent: gym_agent",
        "datasets: walk",
        "",
        "Needs:",
        "data environments/walk/data/train.jsonl: the data set walk is not there",
        "model policy_model: choose one with --model-type",
        "",
        "Usage:",
        "gym env start --environment walk --model-type llama_cpp_model",
    ]


def test_the_value_follows_the_description(listed) -> None:
    assert listed("resources-servers", "quiz")["description"] == "Questions with one answer\nValue: Know more"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["benchmarks", "trivai"], "Error: Unknown benchmark 'trivai'.\nhint: Did you mean `trivia`?\n"),
        (
            ["benchmarks", "walk"],
            "Error: Unknown benchmark 'walk'.\nhint: it is an environment: see `gym list environments walk`\n",
        ),
        (["environments", "--kind", "environment", "sums"], "hint: it is a benchmark: see `gym list benchmarks sums`\n"),
        (["models", "openai_modle"], "hint: Did you mean `openai_model`?\n"),
    ],
)
def test_unknown_names(gym: Gym, tree: Path, words: list[str], message: str) -> None:
    result = gym.run("list", *words, "--search-dir", "own")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.endswith(message)


def test_a_broken_component_hides_no_other(gym: Gym, tree: Path) -> None:
    path = tree / "benchmarks/sums/config.yaml"
    path.write_text("sums: {type: benchmark\nx: [")
    result = gym.run("list", "benchmarks", "--search-dir", "own")
    assert result.returncode == 0
    assert result.stderr.startswith(f"warning: benchmark 'sums' is broken: {path}:2:")
    assert [line.split()[:3] for line in result.stdout.splitlines()[2:]] == [
        ["first_steps", "benchmark", "no-manifest"],
        ["sums", "benchmark", "broken"],
        ["trivia", "benchmark", "experimental"],
    ]
    listed = json.loads(gym.run("list", "benchmarks", "--search-dir", "own", "--json").stdout)
    assert {entry["name"]: (entry["status"], entry["domain"]) for entry in listed}["sums"] == ("no-manifest", None)
    shown = gym.run("list", "benchmarks", "sums", "--search-dir", "own")
    assert shown.returncode == 0
    assert f"broken: {path}:2:" in shown.stdout


def test_shadowing_is_told(gym: Gym, tree: Path) -> None:
    own = gym.cwd / "benchmarks/trivia/config.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(benchmark("mine", "safety"))
    result = gym.run("list", "benchmarks", "--search-dir", "own", "--json")
    assert "the first in the order of the search folders is shown: trivia" in result.stderr
    details = json.loads(gym.run("list", "benchmarks", "trivia", "--search-dir", "own", "--json").stdout)["details"]
    assert details["hides"] == str(own)


def test_remarks(gym: Gym, tree: Path) -> None:
    result = gym.run("list", "models", "+querry=x", "hydra.run.dir='x'", "--search-dir", "nowhere")
    assert result.returncode == 0
    assert result.stderr.splitlines() == [
        "warning: the key `querry` means nothing to this command and is ignored; Did you mean `query`?",
        "warning: search folder 'nowhere' does not exist",
    ]
    assert gym.run("list", "benchmarks", "trivia/config", "--search-dir", "own").stderr == (
        "warning: 'trivia/config' is listed as 'trivia'\n"
    )


def test_names_cannot_drive_the_terminal(gym: Gym, tree: Path) -> None:
    path = tree / "benchmarks/esc\x1b[2J/config.yaml"
    path.parent.mkdir()
    path.write_text(benchmark("x").replace("About x", '"\\e[31mred"'))
    assert "\x1b" not in gym.run("list", "benchmarks", "--search-dir", "own").stdout
    assert "\x1b" not in gym.run("list", "benchmarks", "esc\x1b[2J", "--search-dir", "own").stdout


def test_no_outputs_folder_is_made(gym: Gym, tree: Path) -> None:
    gym.run("list", "benchmarks", "--search-dir", "own")
    assert os.listdir(gym.cwd) == ["own"]


def test_commands_that_run_at_once(gym: Gym, tree: Path) -> None:
    commands = [["benchmarks"], ["environments"], ["models"], ["resources-servers"], ["benchmarks", "sums"]]
    running = [
        subprocess.Popen(
            [*COMMAND, "list", *words, "--json", "--search-dir", "own"],
            cwd=gym.cwd,
            env={**os.environ, **gym.environment, "PYTHONPATH": str(ROOT), "GYM_TUI_HOME": str(gym.cwd / "home")},
            stdout=subprocess.PIPE,
        )
        for words in commands
    ]
    together = [json.loads(process.communicate()[0]) for process in running]
    alone = [json.loads(gym.run("list", *words, "--json", "--search-dir", "own").stdout) for words in commands]
    assert together == alone
    assert [process.returncode for process in running] == [0] * len(commands)
