from __future__ import annotations

import sys
from pathlib import Path

import pytest

from backend.cli.library.setup_command import get_venv_path, run_command, setup_env_command
from backend.errors import GymError


@pytest.fixture
def server(tmp_path: Path) -> Path:
    folder = tmp_path / "with space" / "resources_servers" / "tiny"
    folder.mkdir(parents=True)
    (folder / "requirements.txt").write_text("-e nemo-gym[dev] @ ../../\n")
    return folder


def test_the_documented_place(server: Path, tmp_path: Path) -> None:
    config = {"uv_venv_dir": str(tmp_path / "venvs")}
    assert get_venv_path(server, config) == tmp_path / "venvs" / "resources_servers" / "tiny" / ".venv"


def test_a_command_runs_with_the_servers_python(server: Path, tmp_path: Path) -> None:
    config = {"uv_venv_dir": str(tmp_path / "venvs")}
    setup = setup_env_command(server, config, "tiny")
    program = "import os, sys; open('out', 'w').write('\\n'.join([sys.prefix, os.environ['PYTHONPATH'].split(os.pathsep)[0]]))"
    process = run_command(f'{setup} && python -c "{program}" && exit 3', server)
    assert process.wait(60) == 3
    prefix, first = (server / "out").read_text().splitlines()
    assert prefix == sys.prefix
    assert first == str(server)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(GymError, match="not there"):
        setup_env_command(tmp_path / "nothing", {})
