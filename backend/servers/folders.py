"""From a server instance to the folder of its implementation, and to what that folder asks of the environment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from backend.config.resolution import ServerInstance
from backend.errors import GymError, Place, closest

REQUIREMENT_FILES = ("requirements.txt", "pyproject.toml")
_OWN_DISTRIBUTIONS = frozenset({"nemo-gym", "gym-tui"})
_OWN_SOURCE = re.compile(r"^\s*(-e|--editable)\b.*\.\./\.\.")


def server_folder(instance: ServerInstance, roots: Sequence[Path]) -> Path:
    """The first `<root>/<kind>/<implementation>` that declares its requirements; its entry point must exist."""
    for root in roots:
        folder = root / instance.kind / instance.implementation
        if any((folder / name).is_file() for name in REQUIREMENT_FILES):
            entrypoint = folder / instance.entrypoint
            if not entrypoint.is_file():
                raise GymError(f"server `{instance.name}`: its entry point {entrypoint} does not exist")
            return folder.resolve()
    known = sorted({path.name for root in roots for path in (root / instance.kind).glob("*") if path.is_dir()})
    near = closest(instance.implementation, known)
    raise GymError(
        f"server `{instance.name}`: there is no folder {instance.kind}/{instance.implementation} with a requirements.txt",
        hint=f"Did you mean `{near}`?" if near else None,
        details=("looked in:", *(f"  {root}" for root in roots)),
    )


def missing_requirements(folder: Path) -> list[str]:
    """The requirements of a server folder that this environment does not satisfy, as written in its requirements.txt."""
    path = folder / "requirements.txt"
    if not path.is_file():
        return []
    return [line for line in _requirement_lines(path) if not _is_satisfied(line, path)]


def _requirement_lines(path: Path) -> list[str]:
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.split(" #")[0].strip()
        if text and not text.startswith("#") and not _OWN_SOURCE.match(text):
            lines.append(text)
    return lines


def _is_satisfied(line: str, path: Path) -> bool:
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    if line.startswith("-"):
        return False
    try:
        requirement = Requirement(line)
    except InvalidRequirement as error:
        raise GymError(f"cannot read the requirement `{line}`: {error}", place=Place(str(path))) from error
    if canonicalize_name(requirement.name) in _OWN_DISTRIBUTIONS:
        return True
    if requirement.marker is not None and not requirement.marker.evaluate():
        return True
    try:
        installed = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return False
    return requirement.url is None and requirement.specifier.contains(installed, prereleases=True)
