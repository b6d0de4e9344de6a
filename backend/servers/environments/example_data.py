"""Checks the example data that a resources server ships: five tasks, their metrics, and five rollouts."""

from __future__ import annotations

from pathlib import Path

from backend.errors import GymError
from backend.io.json_codec import loads
from backend.io.jsonl import read_jsonl

EXPECTED_ROWS = 5
_COUNT_KEY = "Number of examples"


def example_data_problems(folder: Path) -> list[str]:
    """What is wrong with `<folder>/data`, one sentence each; empty when all is well."""
    data = folder / "data"
    problems = [_rows_problem(data / "example.jsonl"), _metrics_problem(data / "example_metrics.json")]
    conflicts = sorted(path.name for path in data.glob("*conflict*"))
    if conflicts:
        problems.append(f"{data} holds unsettled conflicts: {', '.join(conflicts)}")
    problems.append(_rows_problem(data / "example_rollouts.jsonl"))
    return [problem for problem in problems if problem]


def _rows_problem(path: Path) -> str:
    if not path.is_file():
        return f"{path} is missing"
    try:
        count = sum(1 for _ in read_jsonl(path))
    except GymError as error:
        return str(error)
    return "" if count == EXPECTED_ROWS else f"{path} must have exactly {EXPECTED_ROWS} rows; it has {count}"


def _metrics_problem(path: Path) -> str:
    if not path.is_file():
        return f"{path} is missing"
    try:
        metrics = loads(path.read_bytes())
    except (OSError, ValueError) as error:
        return f"{path} cannot be read: {error}"
    count = metrics.get(_COUNT_KEY) if isinstance(metrics, dict) else None
    return "" if count == EXPECTED_ROWS else f"{path} must say `{_COUNT_KEY}`: {EXPECTED_ROWS}; it says {count!r}"
