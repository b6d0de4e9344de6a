"""What an installed copy holds, and that names and versions agree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from backend.package_info import GYM_TUI_VERSION
from tests.run_trees import make_run_tree, read_rows

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

NEEDED = [
    "resources_servers/mcqa/app.py",
    "resources_servers/mcqa/configs/mcqa.yaml",
    "resources_servers/mcqa/data/example.jsonl",
    "resources_servers/mcqa/requirements.txt",
    "responses_api_agents/simple_agent/configs/simple_agent.yaml",
    "responses_api_models/llama_cpp_model/configs/llama_cpp_model.yaml",
    "responses_api_models/inference_provider/configs/inference_provider.yaml",
    "responses_api_models/openai_model/configs/openai_model.yaml",
    "benchmarks/first_steps/config.yaml",
    "benchmarks/first_steps/data/first_steps_benchmark.jsonl",
    "backend/cli/main.py",
    "nemo_gym/py.typed",
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("gym_tui-*.whl")
    return built


def test_versions_agree() -> None:
    assert PROJECT["version"] == GYM_TUI_VERSION
    assert PROJECT["name"] == "gym-tui"
    assert PROJECT["requires-python"] == ">=3.11"
    assert PROJECT["scripts"]["gym"] == PROJECT["scripts"]["ng"]


def test_constraints_are_names_and_versions_only() -> None:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        name, equals, version = line.partition("==")
        assert equals, line
        assert name.replace("-", "").replace("_", "").replace(".", "").isalnum(), line
        assert version[0].isdigit(), line


@pytest.mark.slow
def test_a_wheel_holds_the_components_and_nothing_of_the_tests(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert [name for name in NEEDED if name not in names] == []
    assert [name for name in names if "/tests/" in name or name.startswith(("tests/", "snapshots/"))] == []


@pytest.mark.slow
def test_an_installed_copy_lists_and_validates_from_any_folder(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "with a blank" / "site"
    zipfile.ZipFile(wheel).extractall(installed)
    code = f"import sys; sys.path.insert(0, {str(installed)!r}); from backend.cli.main import main; sys.exit(main(sys.argv[1:]))"

    def gym(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert '"name": "first_steps"' in gym("list", "benchmarks", "--json").stdout
    result = gym("env", "validate", "--benchmark", "first_steps", "--model-type", "llama_cpp_model", "--strict")
    assert (result.returncode, result.stdout) == (0, "✓ Config is valid.\n"), result.stderr


@pytest.mark.slow
def test_an_installed_copy_runs_servers_in_folders_with_blanks(wheel: Path, tmp_path: Path) -> None:
    installed, work = tmp_path / "with a blank" / "site", tmp_path / "my work ü"
    zipfile.ZipFile(wheel).extractall(installed)
    work.mkdir()
    make_run_tree(work, [{}])
    run = ("eval", "run", "--config", "scripted.yaml", "--output", "my results/r.jsonl", "--split", "validation")
    environment = {**os.environ, "PYTHONPATH": str(installed), "GYM_TUI_HOME": str(tmp_path / "a home")}

    def gym(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "backend.cli", *words]
        return subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=60)

    assert json.loads(gym("--version", "--json").stdout)["installation_path"] == str(installed)
    result = gym(*run)
    assert result.returncode == 0, result.stderr
    (rollout,) = read_rows(work / "my results" / "r.jsonl")
    assert rollout["reward"] == 1.0
    record = json.loads((work / "my results" / "r_run" / "run.json").read_text())
    assert record["cwd"] == str(work)
