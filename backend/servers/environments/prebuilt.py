"""Environments that somebody built before, at the documented place."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from backend.errors import GymError, Place, name_some
from backend.servers.environments.environment import EnvironmentSettings, ServerEnvironment
from backend.servers.environments.site_folders import own_site_folders
from backend.servers.environments.store import is_stored, own_packages, stored

_VERSION = re.compile(r"^version(?:_info)?\s*=\s*(\d+)\.(\d+)", re.MULTILINE)


def prebuilt_environment(path: Path, settings: EnvironmentSettings) -> ServerEnvironment:
    """The environment at a documented place, which `is_environment`, taken as it is.

    One that this program did not build is shown where `backend` and `nemo_gym` are; libraries that it lacks come from this program's
    environment when both are of the same Python. Raises `GymError` when they are not and it lacks some.
    """
    python = path / "bin" / "python"
    if is_stored(path):
        return stored(path.resolve())
    shown = (str(own_packages(settings)),)
    if _python_of(path) == sys.version_info[:2]:
        return ServerEnvironment("prebuilt", python, path, shown, tuple(map(str, own_site_folders())))
    lacking = _lacking(path)
    if lacking:
        raise GymError(
            f"the environment {path} lacks what a server needs: {name_some(lacking)}",
            hint=f"install them with: uv pip install --python {python} {' '.join(lacking)}; or leave skip_venv_if_present unset",
            place=Place(str(path)),
        )
    return ServerEnvironment("prebuilt", python, path, shown)


def _python_of(path: Path) -> tuple[int, ...]:
    try:
        found = _VERSION.search((path / "pyvenv.cfg").read_text(encoding="utf-8"))
    except OSError:
        found = None
    return tuple(map(int, found.groups())) if found else ()


def _lacking(path: Path) -> list[str]:
    """Names of the libraries that a server process imports and that `path` does not have."""
    from backend.servers.environments.installed import needed_by_servers

    there = {canonicalize_name(folder.name.partition("-")[0]) for folder in path.glob("lib/python*/site-packages/*.dist-info")}
    wanted = [Requirement(text).name for text in needed_by_servers()]
    return [name for name in wanted if canonicalize_name(name) not in there]
