from __future__ import annotations

from pathlib import Path

import pytest

from backend.catalog.kinds import KINDS
from backend.catalog.selectors import select
from backend.errors import ExitCode, UsageError


@pytest.mark.parametrize(
    ("selector", "name", "path"),
    [
        ("benchmark", "trivia", "benchmarks/trivia/config.yaml"),
        ("benchmark", "trivia/config", "benchmarks/trivia/config.yaml"),
        ("benchmark", "lcb/v6", "benchmarks/lcb/v6/config.yaml"),
        ("benchmark", "lcb/v6/config", "benchmarks/lcb/v6/config.yaml"),
        ("benchmark", "tau2/configs/tau2", "benchmarks/tau2/configs/tau2.yaml"),
        ("benchmark", "suite", "benchmarks/suite/config.yaml"),
        ("environment", "walk", "environments/walk/config.yaml"),
        ("resources-server", "quiz", "resources_servers/quiz/configs/quiz.yaml"),
        ("resources-server", "quiz/hard", "resources_servers/quiz/configs/hard.yaml"),
        ("model-type", "openai_model", "responses_api_models/openai_model/configs/openai_model.yaml"),
        ("model-type", "local/Qwen/small", "responses_api_models/local/configs/Qwen/small.yaml"),
        ("agent-type", "simple_agent", "responses_api_agents/simple_agent/configs/simple_agent.yaml"),
    ],
)
def test_names(root: Path, selector: str, name: str, path: str) -> None:
    selection = select(selector, name, [root])
    assert (selection.path, selection.warnings) == ((root / path).resolve(), ())


def test_the_first_root_wins_and_the_others_are_named(root: Path, write) -> None:
    own = write("own", {"environments/walk/config.yaml": ""})
    selection = select("environment", "walk", [own, root])
    assert selection.path == (own / "environments/walk/config.yaml").resolve()
    assert selection.warnings == (
        f"--environment walk: using {selection.path}, ignoring {(root / 'environments/walk/config.yaml').resolve()}",
    )
    assert select("environment", "walk", [root, root]).warnings == ()


def test_names_out_of_use(root: Path) -> None:
    selection = select("environment", "reasoning_gym_hermes", [root])
    assert selection.path == (root / "environments/hermes_reasoning_gym/config.yaml").resolve()
    assert selection.warnings == ("--environment reasoning_gym_hermes is deprecated, use hermes_reasoning_gym",)


@pytest.mark.parametrize(
    ("selector", "name", "implied", "hint"),
    [
        ("benchmark", "trivla", "benchmarks/trivla/config.yaml", "Did you mean `trivia`?"),
        ("benchmark", "tau2", "benchmarks/tau2/config.yaml", "Did you mean `tau2/configs/tau2`?"),
        ("benchmark", "zzzz", "benchmarks/zzzz/config.yaml", None),
        ("benchmark", "lcb/v7", "benchmarks/lcb/v7.yaml", "Did you mean `lcb/v6`?"),
        ("environment", "wallk", "environments/wallk/config.yaml", "Did you mean `walk`?"),
        ("resources-server", "quizz", "resources_servers/quizz/configs/quizz.yaml", "Did you mean `quiz`?"),
        ("resources-server", "quiz/hart", "resources_servers/quiz/configs/hart.yaml", "Did you mean `quiz/hard`?"),
        (
            "resources-server",
            "only_flavors",
            "resources_servers/only_flavors/configs/only_flavors.yaml",
            "only_flavors has: only_flavors/one",
        ),
        ("model-type", "", "responses_api_models//configs/.yaml", None),
        ("agent-type", "../x", "responses_api_agents/../configs/x.yaml", None),
    ],
)
def test_unknown_names(root: Path, selector: str, name: str, implied: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        select(selector, name, [root])
    error = caught.value
    assert error.exit_code == ExitCode.USAGE
    kind = next(kind for kind in KINDS.values() if kind.flag == f"--{selector}")
    assert error.message == f"argument --{selector}: no configuration {name!r} ({implied})"
    assert error.hint == hint
    assert error.details == ("searched:", f"  {root / kind.parent}")
