"""A root with a few workloads and servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

QUIZ = """\
quiz_rs:
  resources_servers:
    quiz: {entrypoint: app.py, domain: knowledge, description: Questions with one answer, value: Know more}
quiz_simple_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: quiz_rs}
      datasets: [{name: quiz_example, type: example, jsonl_fpath: x.jsonl}]
"""
TRIVIA = """\
config_paths: [resources_servers/quiz/configs/quiz.yaml]
trivia_rs: {_inherit_from: quiz_rs}
trivia_agent:
  _inherit_from: quiz_simple_agent
  responses_api_agents:
    simple_agent:
      resources_server: {name: trivia_rs}
      datasets: [{name: trivia, type: benchmark, jsonl_fpath: t.jsonl, prepare_script: benchmarks/trivia/prepare.py}]
"""
DATASET = "{name: NAME, type: benchmark, jsonl_fpath: t.jsonl, prepare_script: p.py}"


def benchmark(name: str, domain: str = "math", datasets: int = 1) -> str:
    entries = ", ".join([DATASET.replace("NAME", name)] * datasets)
    return (
        f"{name}: {{resources_servers: {{{name}: {{entrypoint: app.py, domain: {domain}, description: About {name},"
        f" datasets: [{entries}]}}}}}}\n"
    )


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
            "responses_api_models/openai_model/configs/openai_model.yaml": "",
            "responses_api_models/local/configs/Qwen/small.yaml": "",
            "responses_api_agents/simple_agent/configs/simple_agent.yaml": "",
            "environments/walk/config.yaml": "",
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
