"""The preparation step of a serving run, on real files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.datasets.preparation import (
    DatasetDeclaration,
    DatasetDeclarationError,
    DatasetFileError,
    EmptyDatasetError,
    all_declared_datasets,
    declared_datasets,
    prepare_split,
)
from backend.datasets.prompt import PromptConflictError, PromptFieldError
from backend.errors import GymError
from backend.io.jsonl import JsonlError
from backend.io.result_paths import ResultPaths


def entry(name: str, kind: str, **fields: Any) -> dict[str, Any]:
    extra = {"benchmark": {"prepare_script": f"benchmarks/{name}/prepare.py"}, "example": {}}.get(kind, {"license": "MIT"})
    return {"name": name, "type": kind, "jsonl_fpath": f"data/{name}.jsonl", **extra, **fields}


TREE: dict[str, Any] = {
    "policy_model": {"responses_api_models": {"m": {"entrypoint": "app.py"}}},
    "limit": 3,
    "rs": {
        "resources_servers": {
            "toy": {"entrypoint": "app.py", "datasets": [entry("t", "train"), entry("e", "example"), entry("v", "validation")]}
        }
    },
    "agent": {
        "responses_api_agents": {
            "simple": {"entrypoint": "app.py", "datasets": [entry("b", "benchmark", num_repeats=2, prompt_config="p.yaml")]}
        }
    },
    "second": {"resources_servers": {"toy": {"entrypoint": "app.py", "datasets": [entry("t2", "train", unknown=1)]}}},
}


def test_declarations_come_in_the_order_of_the_configuration() -> None:
    found = [(declaration.instance, declaration.name, declaration.type) for declaration in all_declared_datasets(TREE)]
    assert found == [
        ("rs", "t", "train"),
        ("rs", "e", "example"),
        ("rs", "v", "validation"),
        ("agent", "b", "benchmark"),
        ("second", "t2", "train"),
    ]
    assert declared_datasets(TREE, "benchmark") == [
        DatasetDeclaration("agent", "b", "benchmark", "data/b.jsonl", 2, "p.yaml", "benchmarks/b/prepare.py")
    ]
    assert [declaration.name for declaration in declared_datasets(TREE, "train")] == ["t", "t2"]


def test_an_undeclared_split_names_those_there_are() -> None:
    tree = {"rs": TREE["rs"]}
    with pytest.raises(DatasetDeclarationError, match="train, validation, example") as caught:
        declared_datasets(tree, "benchmark")
    assert caught.value.hint == "choose --split train or --split validation"
    with pytest.raises(GymError, match="nor any other"):
        declared_datasets({"policy_model": TREE["policy_model"]}, "train")


@pytest.mark.parametrize(
    ("datasets", "kind", "named"),
    [
        ([entry("x", "train")], "responses_api_models", "model server, such as 'one'"),
        ([{"name": "x", "type": "train", "jsonl_fpath": "f"}], "resources_servers", "license is missing"),
        ([entry("x", "train", num_repeats=0)], "resources_servers", "num_repeats"),
        (["x"], "resources_servers", "must be a mapping"),
        ([entry("x", "benchmark", prepare_script=None)], "resources_servers", "prepare_script is missing"),
    ],
)
def test_malformed_declarations(datasets: list[Any], kind: str, named: str) -> None:
    with pytest.raises(DatasetDeclarationError, match=named) as caught:
        list(all_declared_datasets({"one": {kind: {"impl": {"datasets": datasets}}}}))
    assert str(caught.value.place) == f"one.{kind}.impl.datasets[0]"


class Workshop:
    """A root with data files, and an output elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.root, self.paths = folder / "root", ResultPaths(folder / "out" / "rollouts.jsonl")
        (self.root / "data").mkdir(parents=True)

    def write(self, name: str, text: str) -> Path:
        file = self.root / name
        file.write_text(text, "utf-8")
        return file

    def prepare(self, *declarations: DatasetDeclaration, split: str = "train") -> Any:
        return prepare_split(declarations, split, self.paths, [self.paths.folder, self.root])

    @property
    def prepared(self) -> Path:
        return self.paths.folder / "rollouts" / "preprocessed_datasets" / "train.jsonl"


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def train(name: str, **fields: Any) -> DatasetDeclaration:
    return DatasetDeclaration("toy_rs", name, "train", f"data/{name}.jsonl", **fields)


def test_the_documented_row(workshop: Workshop) -> None:
    workshop.write("data/t.jsonl", '{"responses_create_params": {"input": "2+2?"}, "expected_answer": "4"}\n')
    prepared = workshop.prepare(train("t"))
    assert prepared.path.read_text("ascii") == (
        '{"responses_create_params": {"input": "2+2?"}, "expected_answer": "4", "task_source": "toy_rs"}\n'
    )
    assert (prepared.path, prepared.rows, prepared.warnings) == (workshop.prepared, 1, ())
    assert sorted(path.name for path in (workshop.root / "data").iterdir()) == ["t.jsonl"]


def test_repeats_order_and_reserved_keys(workshop: Workshop) -> None:
    workshop.write("data/a.jsonl", '\ufeff{"task_source": "x", "n": "é"}\n\n{"agent_ref": {"name": "z"}, "n": 2}')
    workshop.write("data/b.jsonl", '{"n": 3}\n')
    prepared = workshop.prepare(train("a", num_repeats=2), train("b"))
    rows = [json.loads(line) for line in prepared.path.read_text("ascii").splitlines()]
    expected = [{"n": "é"}, {"n": "é"}, {"n": 2}, {"n": 2}, {"n": 3}]
    assert rows == [{**row, "task_source": "toy_rs"} for row in expected]
    assert [list(row) for row in rows] == [["n", "task_source"]] * 5
    assert prepared.rows == 5
    assert [prepared.repeats(limit) for limit in (None, 1, 2, 3, 4, 5, 9)] == [2, 0, 1, 1, 2, 2, 2]
    assert len(prepared.warnings) == 1 and "1 row(s)" in prepared.warnings[0] and "a.jsonl" in prepared.warnings[0]


def benchmark(**fields: Any) -> DatasetDeclaration:
    return DatasetDeclaration("agent", "b", "benchmark", "data/b.jsonl", prepare_script="benchmarks/b/prepare.py", **fields)


def test_a_benchmark_gets_its_prompt(workshop: Workshop) -> None:
    workshop.write("p.yaml", 'user: "{q}!"\n')
    workshop.write("data/b.jsonl", '{"q": "a", "responses_create_params": {"temperature": 0}}\n')
    row = json.loads(workshop.prepare(benchmark(prompt_config="p.yaml")).path.read_text())
    assert row["responses_create_params"] == {"temperature": 0, "input": [{"role": "user", "content": "a!"}]}


@pytest.mark.parametrize(
    ("text", "error", "named"),
    [
        ('{"q": "a"}\n{"q": }\n', JsonlError, r"b\.jsonl:2:7"),
        ('{"q": "a"}\n[1]\n', JsonlError, r"b\.jsonl:2:1"),
        ('{"q": "a"}\n\n{"z": 1}\n', PromptFieldError, r"b\.jsonl:3: .*'q'"),
        ('{"q": "a"}\n{"responses_create_params": {"input": "x"}}\n', PromptConflictError, r"Violating rows: \[1\]"),
        ("\n\n", EmptyDatasetError, "has no rows"),
    ],
)
def test_rows_that_cannot_be_prepared_leave_the_earlier_file(
    text: str, error: type[Exception], named: str, workshop: Workshop
) -> None:
    workshop.prepared.parent.mkdir(parents=True)
    workshop.prepared.write_text("earlier\n")
    workshop.write("p.yaml", 'user: "{q}"\n')
    workshop.write("data/b.jsonl", text)
    with pytest.raises(error, match=named):
        workshop.prepare(benchmark(prompt_config="p.yaml"))
    assert workshop.prepared.read_text() == "earlier\n"
    assert [path.name for path in workshop.prepared.parent.iterdir()] == ["train.jsonl"]


def test_a_missing_benchmark_file_says_how_to_make_it(workshop: Workshop) -> None:
    with pytest.raises(DatasetFileError, match="'b' of 'agent' is not there") as caught:
        workshop.prepare(benchmark())
    assert caught.value.hint == "`prepare()` of benchmarks/b/prepare.py makes it"
    with pytest.raises(FileNotFoundError):
        workshop.prepare(train("none"))
    assert not workshop.prepared.exists()


NUMBERS = st.integers(-(2**63), 2**64 - 1)  # integers beyond 64 bits are read as floats
ROWS = st.lists(
    st.dictionaries(st.sampled_from(["q", "agent_ref", "task_source", "n"]), st.none() | NUMBERS | st.text(max_size=5)),
    min_size=1,
    max_size=5,
)


@given(rows=ROWS, repeats=st.integers(1, 3))
def test_every_row_is_kept(rows: list[dict[str, Any]], repeats: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("prepare"))
    workshop.write("data/t.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    prepared = workshop.prepare(train("t", num_repeats=repeats))
    lines = [json.loads(line) for line in prepared.path.read_text("ascii").splitlines()]
    kept = [{key: value for key, value in row.items() if key not in ("agent_ref", "task_source")} for row in rows]
    assert lines == [{**row, "task_source": "toy_rs"} for row in kept for _ in range(repeats)]
    assert prepared.rows == len(lines)
