"""`gym search` through the real command line."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Gym


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["steps"], ["first_steps", "resources_servers/example_multi_step"]),
        (["FIRST_STEPZ"], ["first_steps"]),
        (["environments", "mcqa"], ["resources_servers/mcqa"]),
        (["environments", "steps"], ["resources_servers/example_multi_step"]),
        (["benchmarks", "steps"], ["first_steps"]),
        (["models", "llama"], ["llama_cpp_model"]),
        (["agents", "simple"], ["simple_agent"]),
        (["resources-servers", "letter"], ["mcqa"]),
        (["models"], []),
        (["a=b"], []),
        (["+x"], []),
        (["no such thing"], []),
    ],
)
def test_search(gym: Gym, words: list[str], names: list[str]) -> None:
    for order in ([*words, "--json"], ["--json", *words], [words[0], "--json", *words[1:]]):
        result = gym.run("search", *order)
        assert (result.returncode, result.stderr) == (0, "")
        assert [entry["name"] for entry in json.loads(result.stdout)] == names


def test_keys_are_those_of_the_listings(gym: Gym) -> None:
    for type_ in ("benchmarks", "environments", "agents", "models", "resources-servers"):
        for entry in json.loads(gym.run("search", type_, "m", "--json").stdout):
            assert entry in json.loads(gym.run("list", type_, "--json").stdout)


def test_a_table(gym: Gym) -> None:
    assert gym.run("search", "models", "llama").stdout.splitlines() == [
        "Models: 1, matching 'llama'",
        "Model            Model group",
        "llama_cpp_model  llama_cpp_model",
    ]
    workloads = len(json.loads(gym.run("list", "environments", "--json").stdout))
    nothing = f"Environments and benchmarks: 0 (manifests: 0 of {workloads}), matching 'zzz'\n"
    assert gym.run("search", "zzz").stdout == nothing


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "what to search for is missing"),
        (["modles", "x"], "there is no type 'modles' (choose from benchmarks, environments, agents, models, resources-servers)"),
        (["models", "x", "y"], "unexpected word: y"),
        (["x", "--jsn"], "Did you mean `--json`?"),
    ],
)
def test_mistakes(gym: Gym, words: list[str], message: str) -> None:
    result = gym.run("search", *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
