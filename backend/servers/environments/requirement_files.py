"""What a server folder asks of its environment: its `requirements.txt` or `pyproject.toml`, and `overrides.txt`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.errors import GymError, Place
from backend.servers.environments.requirement_lines import (
    RequirementLine,
    RequirementLines,
    names_this_project,
    parse_requirement,
    read_requirements,
    read_text,
)
from backend.servers.folders import REQUIREMENT_FILES

REQUIREMENTS_FILE, PROJECT_FILE = REQUIREMENT_FILES
OVERRIDES_FILE = "overrides.txt"


@dataclass(frozen=True, slots=True)
class ServerRequirements:
    """The requirements of one server folder, without the one on this project."""

    folder: Path
    lines: tuple[RequirementLine, ...] = ()
    constraints: tuple[RequirementLine, ...] = ()
    overrides: tuple[RequirementLine, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    names_this_project: bool = False
    project: tuple[str, ...] = ()
    """Names under which the folder's own project is imported; empty without `pyproject.toml`."""
    project_unread: bool = False
    """Only a build of the project tells what it depends on."""
    requires_python: str = ""
    tool_settings: str = ""
    """The `[tool.uv]` table, which the installer obeys; for telling two projects apart."""

    @property
    def file(self) -> Path:
        """The file that declares them."""
        return self.folder / (PROJECT_FILE if self.project else REQUIREMENTS_FILE)


def server_requirements(folder: Path) -> ServerRequirements:
    """Read what `folder` declares. Raises `GymError` when it has both files or neither, or when one cannot be read."""
    requirements, project = folder / REQUIREMENTS_FILE, folder / PROJECT_FILE
    if requirements.is_file() == project.is_file():
        has = "both" if project.is_file() else "neither"
        raise GymError(
            f"a server folder has either {REQUIREMENTS_FILE} or {PROJECT_FILE}; this one has {has}",
            place=Place(str(folder)),
            hint="remove one of them" if project.is_file() else f"add a {REQUIREMENTS_FILE}; it may be empty",
        )
    overrides = folder / OVERRIDES_FILE
    overriding = read_requirements(overrides) if overrides.is_file() else RequirementLines()
    if project.is_file():
        return _from_project(folder, project, tuple(overriding.lines))
    found = read_requirements(requirements)
    return ServerRequirements(
        folder,
        lines=tuple(found.lines),
        constraints=(*found.constraints, *overriding.constraints),
        overrides=tuple(overriding.lines),
        options=(*found.options, *overriding.options),
        names_this_project=found.names_this_project,
    )


def _from_project(folder: Path, path: Path, overrides: tuple[RequirementLine, ...]) -> ServerRequirements:
    import tomllib

    text = read_text(path)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GymError(f"this is no valid TOML: {error}", place=Place(str(path))) from error
    project = _table(document.get("project"), "project", path)
    dependencies = project.get("dependencies", [])
    if not isinstance(dependencies, list) or not all(isinstance(item, str) for item in dependencies):
        raise GymError(
            "`project.dependencies` must be a list of requirements", place=Place(str(path), key="project.dependencies")
        )
    tool = _table(_table(document.get("tool"), "tool", path).get("uv"), "tool.uv", path)
    sources = _table(tool.get("sources"), "tool.uv.sources", path)
    lines = []
    for item in dependencies:
        place = Place(str(path), _line_of(item, text), key="project.dependencies")
        line = parse_requirement(_with_source(item, sources), place, folder)
        if line is not None:
            lines.append(line)
    name = str(project.get("name", folder.name)).replace("-", "_").replace(".", "_")
    below_src = {entry.name for entry in (folder / "src").glob("*") if entry.is_dir() and entry.name.isidentifier()}
    return ServerRequirements(
        folder,
        lines=tuple(lines),
        overrides=overrides,
        names_this_project=any(map(names_this_project, dependencies)),
        project=tuple(sorted({name} | below_src)),
        project_unread="project" not in document or "dependencies" in project.get("dynamic", []),
        requires_python=str(project.get("requires-python", "")),
        tool_settings=repr(sorted(tool.items())),
    )


def _table(value: Any, name: str, path: Path) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise GymError(f"`{name}` must be a table", place=Place(str(path), key=name))
    return value


def _with_source(item: str, sources: Mapping[str, Any]) -> str:
    """A dependency with the place that `[tool.uv.sources]` names for it; sources that only choose an index stay with the installer."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    try:
        requirement = Requirement(item)
    except InvalidRequirement:
        return item
    source = next(
        (value for name, value in sources.items() if canonicalize_name(name) == canonicalize_name(requirement.name)), None
    )
    if not isinstance(source, dict):
        return item
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    marker = f" ; {requirement.marker}" if requirement.marker else ""
    if "git" in source:
        revision = next((str(source[key]) for key in ("rev", "tag", "branch") if key in source), "")
        below = f"#subdirectory={source['subdirectory']}" if "subdirectory" in source else ""
        address = str(source["git"]).removeprefix("git+")
        return f"{requirement.name}{extras} @ git+{address}{'@' + revision if revision else ''}{below}{marker}"
    place = source.get("url") or source.get("path")
    return f"{requirement.name}{extras} @ {place}{marker}" if place else item


def _line_of(item: str, text: str) -> int | None:
    return next((number for number, line in enumerate(text.splitlines(), 1) if item in line), None)
