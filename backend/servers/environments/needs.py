"""What the environment of one server folder must have, what of that is missing here, and the name of the set."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.errors import Place
from backend.io.roots import INSTALL_ROOT
from backend.servers.environments.environment import EnvironmentRequest, EnvironmentSettings
from backend.servers.environments.imports import imports_any, undeclared_imports
from backend.servers.environments.requirement_files import ServerRequirements, server_requirements
from backend.servers.environments.requirement_lines import RequirementLine, parse_requirement, without_credentials
from backend.servers.environments.site_folders import own_site_folders

FORMAT = 1
"""Grows when environments are laid out in another way, so that old ones are not taken for new ones."""

_STAMPED_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
_UNSTAMPED = frozenset({"__pycache__", "build", "dist"})


@dataclass(frozen=True, slots=True)
class EnvironmentNeeds:
    """The requirements of a folder, and how they stand to this environment."""

    requirements: ServerRequirements
    lines: tuple[RequirementLine, ...] = ()
    """All that is to be installed, where anything is missing."""
    missing: tuple[str, ...] = ()
    """For people; empty when this environment has everything."""
    digest: str = ""
    """Equal for equal sets on equal ground; empty when nothing is missing."""

    @classmethod
    def nothing(cls, folder: Path) -> EnvironmentNeeds:
        """Nothing at all."""
        return cls(ServerRequirements(folder))


def environment_needs(request: EnvironmentRequest, settings: EnvironmentSettings) -> EnvironmentNeeds:
    """Read and judge what `request.folder` asks for. Raises `GymError` for requirements that cannot be read.

    NeMo Gym brings libraries along that components import without declaring them; those that the code really imports count.
    """
    requirements = server_requirements(request.folder)
    place = Place(str(request.folder))
    also = [line for text in request.also if (line := parse_requirement(text, place, request.folder))]
    files = [request.folder / request.entrypoint]
    if request.also:
        files.extend(sorted((request.folder / "tests").rglob("*.py")))
    undeclared = sorted(undeclared_imports(files, request.folder, settings.roots))
    declared = [*requirements.lines, *also]
    project = _project_line(requirements, files, settings)
    if not (declared or undeclared or project):
        return EnvironmentNeeds(requirements)
    from backend.servers.environments.installed import unsatisfied

    missing = [line.shown for line in unsatisfied(declared)]
    missing += [line.shown for line in project]
    missing += undeclared
    if not missing:
        return EnvironmentNeeds(requirements)
    lines = (*declared, *project, *_versions_of(undeclared, place))
    return EnvironmentNeeds(requirements, lines, tuple(missing), _digest(requirements, lines, settings))


def _project_line(
    requirements: ServerRequirements, files: list[Path], settings: EnvironmentSettings
) -> tuple[RequirementLine, ...]:
    """The folder's own project, where its code is imported by the project's name or only a build tells its dependencies."""
    folder = requirements.folder
    needed = requirements.project_unread or imports_any(requirements.project, files, folder, settings.roots)
    if not (requirements.project and needed):
        return ()
    return (RequirementLine(str(folder), Place(str(folder / "pyproject.toml")), is_source=True, path=folder, editable=True),)


def _versions_of(modules: list[str], place: Place) -> list[RequirementLine]:
    """The requirements on undeclared libraries, with the versions that this project's extras name."""
    if not modules:
        return []
    from packaging.requirements import Requirement

    from backend.servers.environments.installed import own_requirements

    known = {Requirement(text).name: text for text in own_requirements(("compat", "ray", "trackers"))}
    return [RequirementLine(known.get(module, module), place) for module in modules]


def _digest(requirements: ServerRequirements, lines: Iterable[RequirementLine], settings: EnvironmentSettings) -> str:
    from backend.servers.environments.installed import own_distributions

    overrides = requirements.overrides
    everything: dict[str, Any] = {
        "format": FORMAT,
        # Without users and passwords: a new token does not make another set.
        "lines": sorted(without_credentials(line.for_installer()) for line in lines),
        "constraints": sorted(without_credentials(line.for_installer()) for line in requirements.constraints),
        "overrides": sorted(without_credentials(line.for_installer()) for line in overrides),
        "options": [(name, without_credentials(value)) for name, value in requirements.options],
        "pins": sorted(settings.pins),
        "tool": requirements.tool_settings,
        "files": sorted(_stamp(line) for line in (*lines, *overrides) if line.path is not None),
        "prerelease": allows_prereleases(),
        "python": [sys.version, os.path.realpath(sys.executable)],
        "here": [str(INSTALL_ROOT), *map(str, own_site_folders()), *(path.name for path in own_distributions())],
    }
    return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()[:16]


def allows_prereleases() -> bool:
    """Whether `NEMO_GYM_ALLOW_PRERELEASE` asks for pre-releases."""
    return os.environ.get("NEMO_GYM_ALLOW_PRERELEASE", "").lower() == "true"


def _stamp(line: RequirementLine) -> tuple[str, int, int]:
    """A local source with the size and time of what it is made of; of an editable one, of the files that declare its dependencies."""
    path = line.path
    assert path is not None
    if path.is_file():
        files = [path]
    elif line.editable:
        files = [path / name for name in _STAMPED_PROJECT_FILES]
    else:
        files = list(_source_files(path))
    stamps = [file.stat() for file in files if file.is_file()]
    return str(path), sum(stamp.st_size for stamp in stamps), max((stamp.st_mtime_ns for stamp in stamps), default=0)


def _source_files(path: Path) -> Iterator[Path]:
    for folder, below, names in os.walk(path):
        below[:] = [name for name in below if not name.startswith(".") and name not in _UNSTAMPED]
        yield from (Path(folder, name) for name in names)
