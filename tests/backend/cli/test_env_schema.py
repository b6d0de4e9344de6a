from __future__ import annotations

import json
from pathlib import Path

import pytest

from backend.cli.commands import COMMANDS
from backend.cli.main import main

MODULE = "from pydantic import BaseModel\n\n\nclass TaskData(BaseModel):\n    answer: str\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("resources_servers", "responses_api_agents"):
        (tmp_path / kind / "shaped").mkdir(parents=True)
        (tmp_path / kind / "shaped" / "task_data.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [["--resources-server", "shaped"], ["+entrypoint=resources_servers/shaped"], ["+entrypoint=responses_api_agents/shaped"]],
)
def test_the_schema_with_two_spaces_of_indentation(tree: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(["env", "schema", *words]) == 0
    out = capsys.readouterr().out
    assert json.loads(out)["required"] == ["answer"]
    assert out.startswith('{\n  "')


def test_a_search_dir(tree: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert main(["env", "schema", "--resources-server", "shaped"]) == 1
    assert main(["env", "schema", "--resources-server", "shaped", "--search-dir", str(tree)]) == 0


def test_without_a_server(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "schema"]) == 2
    assert "missing required configuration: entrypoint" in capsys.readouterr().err


def test_the_example_of_its_help_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (command,) = [each for each in COMMANDS if each.path == ("env", "schema")]
    assert main(command.example.split()[1:]) == 0
    assert json.loads(capsys.readouterr().out)["type"] == "object"
