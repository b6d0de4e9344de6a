"""A root with a few workloads and servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.backend.catalog.samples import AGENT, MODEL, QUIZ, TRIVIA, WALK, benchmark


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_files(root: str, files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path / root

    return write_files


@pytest.fixture
def root(write) -> Path:
    return write(
        "root",
        {
            "resources_servers/quiz/configs/quiz.yaml": QUIZ,
            "resources_servers/quiz/configs/hard.yaml": QUIZ,
            "resources_servers/only_flavors/configs/one.yaml": "",
            "responses_api_models/openai_model/configs/openai_model.yaml": MODEL,
            "responses_api_models/local/configs/Qwen/small.yaml": "",
            "responses_api_agents/simple_agent/configs/simple_agent.yaml": AGENT,
            "environments/walk/config.yaml": WALK,
            "environments/hermes_reasoning_gym/config.yaml": "",
            "benchmarks/trivia/config.yaml": TRIVIA,
            "benchmarks/trivia/prompts/default.yaml": "user: '{question}'\n",
            "benchmarks/tau2/configs/tau2.yaml": benchmark("tau2", "agent"),
            "benchmarks/tau2/configs/tau2_long.yaml": benchmark("tau2_long", "agent"),
            "benchmarks/lcb/v6/config.yaml": benchmark("lcb", "coding"),
            "benchmarks/suite/config.yaml": benchmark("suite", datasets=2),
            "benchmarks/plain/config.yaml": "a: 1\n",
        },
    )
