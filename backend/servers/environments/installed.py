"""Which requirements the program's own environment satisfies."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from backend.errors import GymError
from backend.io.redact import MASK
from backend.servers.environments.requirement_lines import RequirementLine, names_this_project, without_credentials
from backend.servers.environments.site_folders import own_site_folders

DISTRIBUTION = "gym-tui"
_NOT_FOR_SERVERS = frozenset({"textual", "rich", "uv"})


def unsatisfied(lines: Iterable[RequirementLine]) -> list[RequirementLine]:
    """The requirements that would need an installation. Raises `GymError` with the line of one that cannot be understood."""
    return [line for line in lines if not _is_satisfied(line)]


def _is_satisfied(line: RequirementLine) -> bool:
    if line.is_source or line.editable:
        return False
    try:
        return _has(Requirement(line.text), {}, frozenset())
    except (InvalidRequirement, UndefinedEnvironmentName) as error:
        raise GymError(
            f"cannot read the requirement `{line.shown}`: {without_credentials(str(error), MASK)}", place=line.place
        ) from error


def _has(requirement: Requirement, environment: dict[str, str], asking: frozenset[str]) -> bool:
    """Whether it is installed, with what its extras need; `asking` are the extras on the way here, which may form circles."""
    if requirement.marker is not None and not requirement.marker.evaluate(environment or None):
        return True
    try:
        distribution = metadata.distribution(requirement.name)
    except metadata.PackageNotFoundError:
        return False
    if not requirement.specifier.contains(distribution.version, prereleases=True):
        return False
    if requirement.url and not _comes_from(distribution, requirement.url):
        return False
    for extra in requirement.extras:
        name = f"{canonicalize_name(requirement.name)}[{extra}]"
        if name in asking:
            continue
        needs = (Requirement(text) for text in distribution.requires or ())
        chosen = [need for need in needs if need.marker and "extra" in str(need.marker)]
        if not all(_has(need, {"extra": extra}, asking | {name}) for need in chosen):
            return False
    return True


def _comes_from(distribution: metadata.Distribution, url: str) -> bool:
    """Whether an installed distribution was installed from `url` (PEP 610). A local file may have changed since: never."""
    recorded = json.loads(distribution.read_text("direct_url.json") or "{}")
    if "vcs_info" not in recorded:
        return url.partition("#")[0] == recorded.get("url") and not url.startswith("file:")
    address, _, fragment = url.partition("#")
    address, at, revision = address.partition("+")[2].rpartition("@") if "@" in address.rpartition("/")[2] else (address, "", "")
    wanted = address if at else url.partition("#")[0].partition("+")[2]
    info: dict[str, Any] = recorded["vcs_info"]
    folder = fragment.partition("subdirectory=")[2].partition("&")[0]
    return (
        wanted == recorded.get("url")
        and folder == recorded.get("subdirectory", "")
        and (not revision or revision in (info.get("requested_revision"), info.get("commit_id")))
    )


@cache
def own_distributions() -> tuple[Path, ...]:
    """The metadata folders of all distributions here, the ones that are imported first where a name is there twice."""
    found: dict[str, Path] = {}
    for site in own_site_folders():
        try:
            entries = sorted(entry.name for entry in os.scandir(site) if entry.name.endswith(".dist-info"))
        except OSError:
            continue
        for entry in entries:
            found.setdefault(canonicalize_name(entry.partition("-")[0]), site / entry)
    return tuple(found.values())


def name_and_version(folder: Path) -> tuple[str, str]:
    """What the name of a metadata folder says."""
    name, _, version = folder.name.removesuffix(".dist-info").partition("-")
    return canonicalize_name(name), version


def needed_by_servers() -> list[str]:
    """What of this project's requirements a server process imports."""
    return [text for text in own_requirements() if Requirement(text).name not in _NOT_FOR_SERVERS]


def own_requirements(extras: Iterable[str] = ()) -> list[str]:
    """What this project's own distribution requires, with `extras`; nothing when it runs uninstalled."""
    try:
        texts = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []
    chosen = []
    for requirement in map(Requirement, texts):
        marker = requirement.marker
        if marker is None or marker.evaluate({"extra": ""}) or any(marker.evaluate({"extra": extra}) for extra in extras):
            requirement.marker = None
            if not names_this_project(str(requirement)):
                chosen.append(str(requirement))
    return chosen
