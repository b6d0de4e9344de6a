from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

from backend.cli.main import main
from tests.wheel_samples import offline, write_server, write_wheel


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "home"))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_shared_environment(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "packages", "--resources-server", "mcqa"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "Packages for resources_servers/mcqa",
        f"Environment: {sys.prefix} (shared with the gym command)",
        "-" * 72,
    ]
    assert any(line.split()[:2] == ["fastapi", metadata.version("fastapi")] for line in lines)


def test_json_has_no_heading(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "packages", "--resources-server", "mcqa", "--json"]) == 0
    packages = json.loads(capsys.readouterr().out)
    assert {"name": "fastapi", "version": metadata.version("fastapi")} in packages
    assert [package["name"] for package in packages] == sorted(package["name"] for package in packages)
    assert main(["env", "packages", "+entrypoint=responses_api_agents/simple_agent", "+format=json"]) == 0
    assert json.loads(capsys.readouterr().out) == packages


def test_an_environment_that_was_built_and_one_that_was_not(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_wheel(root / "wheels", "tinypkg")
    write_server(root, "tiny", offline(root / "wheels", "tinypkg"))
    assert main(["env", "packages", "--resources-server", "tiny"]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 3
    (root / "tiny.yaml").write_text("tiny: {resources_servers: {tiny: {entrypoint: app.py, domain: other}}}\n")
    assert main(["env", "prefetch", "--config", "tiny.yaml", "++uv_venv_dir=envs"]) == 0
    capsys.readouterr()
    assert main(["env", "packages", "--resources-server", "tiny", "++uv_venv_dir=envs"]) == 0
    shown = capsys.readouterr().out
    assert f"Environment: {root / 'envs' / 'resources_servers' / 'tiny' / '.venv'}\n" in shown and "tinypkg" in shown
    assert f"Environment: {sys.prefix} (shared" in shown


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "missing required configuration: entrypoint"),
        (["--resources-server", "mcqq"], 1, "Did you mean `mcqa`?"),
        (["+entrypoint=mcqa"], 2, "invalid configuration: entrypoint"),
        (["+entrypoint=resources_servers/../../etc"], 2, "invalid configuration: entrypoint"),
    ],
)
def test_mistakes(root: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str) -> None:
    assert main(["env", "packages", *words]) == code
    assert message in capsys.readouterr().err
