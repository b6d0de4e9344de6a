from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import pytest

from backend.catalog import scan
from backend.catalog.details import inspect_component
from backend.catalog.kinds import KINDS, WORKLOADS
from backend.errors import GymError
from tests.backend.catalog.samples import MANIFEST


def facts(kind: str, name: str, *roots: Path) -> dict[str, str]:
    return dict(inspect_component([kind], name, roots).facts)


def test_a_benchmark(root: Path) -> None:
    details = inspect_component(["benchmark"], "trivia", [root])
    assert list(details.facts) == [
        ("config", str(root / "benchmarks/trivia/config.yaml")),
        ("status", "no-manifest"),
        ("agent", "simple_agent"),
        ("datasets", "trivia"),
    ]
    assert details.inherited == (("resources servers", "quiz"),)
    assert details.usage_example == "gym env start --benchmark trivia --model-type vllm_model"


def test_datasets_of_resources_servers_and_of_included_files(root: Path, write) -> None:
    server = "rs: {resources_servers: {quiz: {entrypoint: app.py, domain: math, datasets: [{name: own, type: benchmark}]}}}\n"
    write("root", {"benchmarks/sums/config.yaml": f"config_paths: [resources_servers/quiz/configs/quiz.yaml]\n{server}"})
    details = inspect_component(["benchmark"], "sums", [root])
    assert list(details.facts)[2:] == [("resources servers", "quiz"), ("datasets", "own")]
    assert details.inherited == (("agents", "simple_agent"), ("datasets", "quiz_example, own"))


def test_the_manifest(root: Path) -> None:
    (root / "benchmarks/trivia/manifest.yaml").write_text(MANIFEST)
    assert list(facts("benchmark", "trivia", root))[1:8] == [
        "status", "manifest", "version", "profile", "modality", "licensing", "lifecycle",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "expected", "usage"),
    [
        (
            "agent",
            "simple_agent",
            {"path": "responses_api_agents/simple_agent", "composition": "composable (A)", "variants": "simple_agent"},
            None,
        ),
        (
            "model",
            "openai_model",
            {"config": "responses_api_models/openai_model/configs/openai_model.yaml"},
            "gym env start --resources-server example_single_tool_call --model-type openai_model",
        ),
        (
            "resources-server",
            "quiz/hard",
            {"config": "resources_servers/quiz/configs/hard.yaml"},
            "gym env start --resources-server quiz/hard --model-type vllm_model",
        ),
    ],
)
def test_other_kinds(root: Path, kind: str, name: str, expected: dict[str, str], usage: str | None) -> None:
    details = inspect_component([kind], name, [root])
    assert {key: value.removeprefix(f"{root}/") for key, value in details.facts} == expected
    assert details.usage_example == usage


def test_examples_name_what_is_there(root: Path, write) -> None:
    write("root", {"responses_api_models/llama_cpp_model/app.py": "", "resources_servers/mcqa/app.py": ""})
    assert inspect_component(["benchmark"], "trivia", [root]).usage_example == (
        "gym env start --benchmark trivia --model-type llama_cpp_model"
    )
    assert inspect_component(["model"], "openai_model", [root]).usage_example == (
        "gym env start --resources-server mcqa --model-type openai_model"
    )


def test_needs(root: Path, write) -> None:
    details = inspect_component(["benchmark"], "trivia", [root])
    assert [(need.kind, need.name, need.command) for need in details.needs] == [
        ("data", "t.jsonl", ("gym", "eval", "prepare", "--benchmark", "trivia")),
    ]
    write("root", {"t.jsonl": ""})
    assert inspect_component(["benchmark"], "trivia", [root]).needs == ()


def test_needs_of_an_environment(root: Path, write) -> None:
    text = (root / "environments/walk/config.yaml").read_text()
    more = "{name: e, type: example, jsonl_fpath: e.jsonl, prompt_config: prompts/p.yaml}"
    write("root", {"environments/walk/config.yaml": text.replace("train.jsonl}]", f"train.jsonl}}, {more}]")})
    missing = inspect_component(["environment"], "walk", [root])
    assert [(need.kind, need.name) for need in missing.needs] == [
        ("data", "environments/walk/data/train.jsonl"),
        ("data", "e.jsonl"),
        ("prompt", "prompts/p.yaml"),
        ("model", "policy_model"),
    ]
    assert missing.needs[0].command is None
    write("root", {"e.jsonl": ""})
    train = inspect_component(["environment"], "walk", [root]).needs[0]
    assert train.message == "the data set walk is not there; only runs of the split train need it"


def test_values_that_the_user_has_set_are_no_needs(root: Path, write) -> None:
    (need,) = inspect_component(["model"], "openai_model", [root]).needs
    assert (need.kind, need.name, need.message) == (
        "value",
        "policy_base_url",
        "is not set; --model-url or env.yaml gives it",
    )
    write("root", {"env.yaml": "policy_base_url: http://localhost\n"})
    assert inspect_component(["model"], "openai_model", [root]).needs == ()
    write("root", {"env.yaml": "a: [\n"})
    assert len(inspect_component(["model"], "openai_model", [root]).needs) == 1


def test_what_is_hidden_and_what_is_broken_is_told(root: Path, write) -> None:
    own = write("own", {"environments/walk/config.yaml": "a: ["})
    found = facts("environment", "walk", own, root)
    assert found["hides"] == str(root / "environments/walk/config.yaml")
    assert found["broken"].startswith(f"{own / 'environments/walk/config.yaml'}:2:1: malformed YAML")


@pytest.mark.parametrize(
    ("kinds", "name", "message", "hint"),
    [
        (["benchmark"], "trivla", "Unknown benchmark 'trivla'.", "Did you mean `trivia`?"),
        (["benchmark"], "suite", "Unknown benchmark 'suite'.", "see `gym list benchmarks`"),
        (["benchmark"], "walk", "Unknown benchmark 'walk'.", "it is an environment: see `gym list environments walk`"),
        (["environment", "benchmark"], "trivai", "Unknown environment 'trivai'.", "Did you mean `trivia`?"),
        (["resources-server"], "quizz", "Unknown resources server 'quizz'.", "Did you mean `quiz`?"),
        (["model"], "zzz", "Unknown model 'zzz'.", "see `gym list models`"),
        (["benchmark"], "tau2", "Unknown benchmark 'tau2'.", "Did you mean `tau2/configs/tau2`?"),
        (["agent"], "", "Unknown agent ''.", "see `gym list agents`"),
    ],
)
def test_unknown_names(root: Path, kinds: list[str], name: str, message: str, hint: str) -> None:
    with pytest.raises(GymError) as caught:
        inspect_component(kinds, name, [root])
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_name_of_two_kinds(root: Path, write) -> None:
    write("root", {"environments/trivia/config.yaml": ""})
    with pytest.raises(GymError, match=r"'trivia' is ambiguous: an environment .* and a benchmark"):
        inspect_component(["environment", "benchmark"], "trivia", [root])
    assert inspect_component(["environment"], "trivia", [root]).entry.kind == "environment"


def test_only_its_own_files_are_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def noting(path: str, mode: str) -> IO[Any]:
        read.append(path)
        return open(path, mode)

    monkeypatch.setattr(scan, "open", noting, raising=False)
    inspect_component(list(WORKLOADS), "trivia", [root])
    assert sorted(Path(path).name for path in read) == ["config.yaml", "quiz.yaml"]
    assert set(KINDS) >= set(WORKLOADS)
