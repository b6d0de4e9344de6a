"""The operation behind `gym env packages`: what is installed in the environment of a server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.errors import GymError
from backend.servers.environments.environment import EnvironmentRequest, EnvironmentSettings
from backend.servers.environments.installer import address_redactor, find_uv
from backend.servers.environments.needs import environment_needs
from backend.servers.environments.store import documented_path, is_environment, is_stored, read_facts, stored_environment


@dataclass(frozen=True, slots=True)
class ListedEnvironment:
    """One environment that a server imports from."""

    folder: Path
    python: Path
    is_own: bool
    """It is this program's own."""


def environments_of(request: EnvironmentRequest, settings: EnvironmentSettings) -> list[ListedEnvironment]:
    """The environments that a server imports from, the first one first; empty when it needs one that has not been built."""
    own = ListedEnvironment(Path(sys.prefix), Path(sys.executable), is_own=True)
    found: Path | None = None
    for place in (documented_path(request.kind, request.implementation, request.folder, settings), request.folder / ".venv"):
        if is_environment(place):
            found = place
            break
    if found is None:
        needs = environment_needs(request, settings)
        if not needs.missing:
            return [own]
        found = stored_environment(needs.digest, settings)
        if found is None:
            return []
    first = ListedEnvironment(found, found / "bin" / "python", is_own=False)
    layered = is_stored(found) and bool(read_facts(found).get("layered"))
    return [first, own] if layered else [first]


def installed_packages(environments: Sequence[ListedEnvironment], *, outdated: bool) -> list[dict[str, Any]]:
    """Name and version of every distribution, by name, as the installer tells them; with `outdated` only those with newer versions.

    Of a name that several environments have, the first one's counts. Raises `GymError` when the installer fails.
    """
    found: dict[str, dict[str, Any]] = {}
    for environment in environments:
        for package in json.loads(list_text(environment, form="json", outdated=outdated) or "[]"):
            found.setdefault(package["name"], package)
    return [found[name] for name in sorted(found)]


def list_text(environment: ListedEnvironment, *, form: str | None, outdated: bool) -> str:
    """What the installer prints about one environment. Raises `GymError` with the installer's own words when it fails."""
    command = [find_uv(), "pip", "list", "--python", str(environment.python), "--quiet"]
    command += ["--format", form] if form else []
    command += ["--outdated"] if outdated else []
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        redactor = address_redactor(())
        raise GymError(
            f"the packages of {environment.folder} cannot be listed",
            details=[redactor.text(line) for line in done.stderr.splitlines() if line],
        )
    return done.stdout
