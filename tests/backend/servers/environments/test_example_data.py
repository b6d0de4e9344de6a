from __future__ import annotations

import json
from pathlib import Path

import pytest

from backend.servers.environments.example_data import example_data_problems


@pytest.fixture
def component(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    rows = "".join(json.dumps({"row": number}) + "\n" for number in range(5))
    (data / "example.jsonl").write_text(rows)
    (data / "example_rollouts.jsonl").write_text(rows)
    (data / "example_metrics.json").write_text('{"Number of examples": 5}')
    return tmp_path


def test_good_data(component: Path) -> None:
    assert example_data_problems(component) == []


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("example.jsonl", "{}\n" * 4, "example.jsonl must have exactly 5 rows; it has 4"),
        ("example.jsonl", None, "example.jsonl is missing"),
        ("example_rollouts.jsonl", "{}\n" * 6, "example_rollouts.jsonl must have exactly 5 rows; it has 6"),
        ("example_rollouts.jsonl", "{}\n{\n", "example_rollouts.jsonl:2"),
        ("example_metrics.json", '{"Number of examples": 6}', "must say `Number of examples`: 5; it says 6"),
        ("example_metrics.json", "[]", "it says None"),
        ("example_metrics.json", "{", "example_metrics.json cannot be read"),
        ("example_metrics.json", None, "example_metrics.json is missing"),
        ("example_metrics_conflict.json", "{}", "holds unsettled conflicts: example_metrics_conflict.json"),
    ],
)
def test_each_problem(component: Path, name: str, content: str | None, problem: str) -> None:
    path = component / "data" / name
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    problems = example_data_problems(component)
    assert len(problems) == 1 and problem in problems[0]


def test_no_data_at_all(tmp_path: Path) -> None:
    assert len(example_data_problems(tmp_path)) == 3
