"""The questions are sound, and the shipped rows are what `prepare` makes of them."""

from __future__ import annotations

import ast
import json
import operator
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.first_steps import prepare as module
from resources_servers.mcqa.app import MCQARunRequest
from resources_servers.mcqa.extraction import extract_answer, normalized

FOLDER = Path(__file__).parents[1]
ROWS = [json.loads(line) for line in module.OUTPUT.read_text("utf-8").splitlines()]
OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


def texts(row: dict[str, Any]) -> dict[str, str]:
    return {letter: text for option in row["options"] for letter, text in option.items()}


def value_of(node: ast.expr) -> Fraction:
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](value_of(node.left), value_of(node.right))
    assert isinstance(node, ast.Constant)
    return Fraction(node.value)


def test_the_shipped_rows_are_what_prepare_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = module.OUTPUT.read_bytes()
    modified = module.OUTPUT.stat().st_mtime_ns
    assert module.prepare() == module.OUTPUT
    assert (module.OUTPUT.read_bytes(), module.OUTPUT.stat().st_mtime_ns) == (shipped, modified)
    monkeypatch.setattr(module, "OUTPUT", tmp_path / "rows.jsonl")
    assert module.prepare().read_bytes() == shipped


def test_prepare_writes_where_the_configuration_reads() -> None:
    config = yaml.safe_load((FOLDER / "config.yaml").read_text("utf-8"))
    agent = config["first_steps_mcqa_simple_agent"]["responses_api_agents"]["simple_agent"]
    (dataset,) = agent["datasets"]
    root = FOLDER.parents[1]
    assert root / dataset["jsonl_fpath"] == module.OUTPUT
    assert root / dataset["prepare_script"] == Path(module.__file__)
    assert agent["resources_server"]["name"] in config
    for path in config["config_paths"]:
        assert set(yaml.safe_load((root / path).read_text("utf-8"))) == {"mcqa", "mcqa_simple_agent"}


def test_subjects_difficulties_and_letters_are_balanced() -> None:
    assert len(ROWS) == 72
    assert Counter(row["subject"] for row in ROWS) == {
        "arithmetic": 24, "geography": 12, "science": 12, "language": 12, "everyday": 12,
    }  # fmt: skip
    cells = Counter((row["subject"], row["difficulty"]) for row in ROWS)
    assert {difficulty for _, difficulty in cells} == {"easy", "medium", "hard"}
    assert set(cells.values()) == {4, 8}
    assert Counter(row["expected_answer"] for row in ROWS) == dict.fromkeys("ABCD", 18)


def test_no_question_twice() -> None:
    asked = [normalized(row["question"]) for row in ROWS] + [normalized(question) for question, _ in module.WORKED_EXAMPLES]
    assert len(set(asked)) == len(asked)
    assert len({row["uuid"] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row["question"] for row in ROWS])
def test_row(row: dict[str, Any]) -> None:
    request = MCQARunRequest.model_validate(row)
    options = texts(row)
    assert list(options) == list("ABCD") and all(text == text.strip() for text in options.values())
    assert len({normalized(text) for text in options.values()}) == 4
    assert not any(text.upper() in options for text in options.values()), "an option's text would be read as a letter"
    assert row["source"]
    for letter, text in options.items():
        assert extract_answer(f"Answer: {text}", request.options, "lenient_answer_colon") == letter
    right = options[row["expected_answer"]]
    assert (
        extract_answer(f"answer: {right.lower()}\n\nQuestion:", request.options, "lenient_answer_colon") == row["expected_answer"]
    )
    *examples, question = request.responses_create_params.input
    assert question.content == row["question"]
    assert len(examples) == 1 + 2 * len(module.WORKED_EXAMPLES)


@pytest.mark.parametrize("row", [row for row in ROWS if row["subject"] == "arithmetic"], ids=lambda row: row["expression"])
def test_arithmetic_is_right(row: dict[str, Any]) -> None:
    expected = value_of(ast.parse(row["expression"], mode="eval").body)
    assert [letter for letter, text in texts(row).items() if Fraction(text) == expected] == [row["expected_answer"]]


def test_only_arithmetic_has_an_expression() -> None:
    assert all((row["expression"] is not None) == (row["subject"] == "arithmetic") for row in ROWS)
