from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from backend.errors import GymError
from backend.servers.environments.packages import ListedEnvironment, environments_of, installed_packages, list_text
from backend.servers.environments.preparation import prepare_environments
from tests.wheel_samples import offline, settings_for, write_server, write_wheel


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "home"))
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def versions(environments: list[ListedEnvironment]) -> dict[str, str]:
    return {package["name"]: package["version"] for package in installed_packages(environments, outdated=False)}


def test_a_server_without_needs_shares_ours(root: Path) -> None:
    found = environments_of(write_server(root, "tiny", "nemo-gym\n"), settings_for(root))
    assert [(environment.folder, environment.is_own) for environment in found] == [(Path(sys.prefix), True)]
    assert versions(found)["fastapi"] == metadata.version("fastapi")


async def test_a_layered_environment_lists_both(root: Path) -> None:
    write_wheel(root / "wheels", "tinypkg")
    request = write_server(root, "tiny", offline(root / "wheels", "tinypkg"))
    settings = settings_for(root)
    assert environments_of(request, settings) == []
    async for _ in prepare_environments([request], settings):
        pass
    found = environments_of(request, settings)
    assert [environment.folder for environment in found] == [request.folder / ".venv", Path(sys.prefix)]
    assert versions(found)["tinypkg"] == "1.0" and versions(found)["fastapi"] == metadata.version("fastapi")
    assert "tinypkg" in list_text(found[0], form="freeze", outdated=False)
    (request.folder / ".venv").unlink()
    assert environments_of(request, settings)[0].folder.parent == root.parent / "home" / "cache" / "venvs"


def test_a_prebuilt_environment_stands_for_itself(root: Path) -> None:
    request = write_server(root, "tiny", "nemo-gym\nno-such-package\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(request.folder / ".venv")], check=True)
    found = environments_of(request, settings_for(root / "elsewhere"))
    assert [environment.folder for environment in found] == [request.folder / ".venv"]
    assert versions(found) == {}


def test_an_installer_that_fails_is_quoted(root: Path) -> None:
    with pytest.raises(GymError, match="cannot be listed") as caught:
        list_text(ListedEnvironment(root, root / "bin" / "python", is_own=False), form=None, outdated=False)
    assert caught.value.details
