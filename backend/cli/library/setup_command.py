"""Environments of servers for programs that run things in them; importable as `nemo_gym.cli.setup_command`."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backend.errors import GymError, Place
from backend.io.roots import search_roots
from backend.servers.environments.environment import EnvironmentRequest, EnvironmentsPrepared, ServerEnvironment
from backend.servers.environments.preparation import prepare_environments, settings_from
from backend.servers.environments.store import documented_path

__all__ = ["get_venv_path", "run_command", "setup_env_command"]


def get_venv_path(dir_path: str | Path, global_config_dict: Mapping[str, Any]) -> Path:
    """Where the environment of the server folder `dir_path` is looked for; the environment need not be there."""
    folder = Path(dir_path).absolute()
    return documented_path(folder.parent.name, folder.name, folder, settings_from(global_config_dict, search_roots()))


def setup_env_command(dir_path: str | Path, global_config_dict: Mapping[str, Any], prefix: str = "") -> str:
    """Find or build the environment of a server folder; a shell command that makes its Python the one that `python` starts.

    `prefix` names whom it is for in messages. Raises `GymError` for requirements that cannot be met.
    """
    folder = Path(dir_path).absolute()
    if not folder.is_dir():
        raise GymError("the server's folder is not there", place=Place(str(folder)))
    request = EnvironmentRequest((prefix or folder.name,), folder.parent.name, folder.name, folder)
    environment = asyncio.run(_prepared(request, global_config_dict))
    if environment.folder is not None and (environment.folder / "bin" / "activate").exists():
        commands = [f"source {shlex.quote(str(environment.folder / 'bin' / 'activate'))}"]
    else:
        python = environment.python or Path(sys.executable)
        commands = [f'export PATH={shlex.quote(str(python.parent))}:"$PATH"']
    if environment.import_path:
        path = shlex.quote(os.pathsep.join(environment.import_path))
        commands.append(f'export PYTHONPATH={path}"${{PYTHONPATH:+:$PYTHONPATH}}"')
    return " && ".join(commands)


def run_command(command: str, working_dir_path: str | Path) -> subprocess.Popen[bytes]:
    """Start a shell command of the caller's in a server folder, which is also in front of its `PYTHONPATH`."""
    folder = Path(working_dir_path).absolute()
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.Popen(["/bin/bash", "-c", command], cwd=folder, env=environment)


async def _prepared(request: EnvironmentRequest, config: Mapping[str, Any]) -> ServerEnvironment:
    async for event in prepare_environments([request], settings_from(config, search_roots())):
        if isinstance(event, EnvironmentsPrepared):
            return event.environments[str(request.folder)]
    raise AssertionError("the last event tells all environments")
