"""Where libraries are, and how a running process takes on a virtual environment that is layered on its own libraries."""

from __future__ import annotations

import importlib
import os
import site
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

PATH_FILE = "zz_gym_tui.pth"
"""Puts this program's libraries behind those of an environment. Path files are read in alphabetical order; this one comes last."""


def own_site_folders() -> tuple[Path, ...]:
    """The folders with the libraries that this program imports, in their order."""
    return tuple(dict.fromkeys(Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))))


def site_folder_of(environment: Path) -> Path:
    """Where the libraries of a virtual environment of this Python are."""
    base = str(environment)
    return Path(sysconfig.get_path("purelib", "venv", vars={"base": base, "installed_base": base}))


def activated(variables: Mapping[str, str], python: str | Path) -> dict[str, str]:
    """The environment variables of a process in whose virtual environment `python` is, as its `activate` script sets them."""
    folder = Path(python).parent
    path = variables.get("PATH", "")
    changed = {name: value for name, value in variables.items() if name != "PYTHONHOME"}
    return {**changed, "VIRTUAL_ENV": str(folder.parent), "PATH": f"{folder}{os.pathsep}{path}" if path else str(folder)}


def take_on_environment(environment: Path) -> None:
    """Make this process one of `environment`, as if its interpreter had been started; nothing where it was.

    Only for layered environments: what has been imported already stays, and must be what the environment would import.
    """
    if Path(sys.prefix) == environment:
        return
    folder = site_folder_of(environment)
    before = list(sys.path)
    sys.path.append(str(folder))
    for path in sorted(folder.glob("*.pth")):
        if path.name != PATH_FILE:
            site.addpackage(str(folder), path.name, None)
    added = [entry for entry in sys.path if entry not in before]
    own = {str(entry) for entry in own_site_folders()} - {str(folder)}
    place = next((index for index, entry in enumerate(before) if entry in own), len(before))
    sys.path[:] = [*before[:place], *added, *before[place:]]
    sys.prefix = sys.exec_prefix = str(environment)
    sys.executable = str(environment / "bin" / "python")
    os.environ.update(activated(os.environ, sys.executable))
    importlib.invalidate_caches()
