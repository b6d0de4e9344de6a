"""From a server instance to the folder of its implementation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from backend.errors import GymError, closest

if TYPE_CHECKING:
    # A server in an environment of its own imports this before it knows that what a configuration needs is there.
    from backend.config.resolution import ServerInstance

REQUIREMENT_FILES = ("requirements.txt", "pyproject.toml")
"""A folder with one of them is a server's."""


def server_folder(instance: ServerInstance, roots: Sequence[Path]) -> Path:
    """The first `<root>/<kind>/<implementation>` that declares its requirements; its entry point must exist."""
    folder = component_folder(instance.kind, instance.implementation, roots, f"server `{instance.name}`: ")
    entrypoint = folder / instance.entrypoint
    if not entrypoint.is_file():
        raise GymError(f"server `{instance.name}`: its entry point {entrypoint} does not exist")
    return folder


def component_folder(kind: str, implementation: str, roots: Sequence[Path], asking: str = "") -> Path:
    """The first `<root>/<kind>/<implementation>` that declares its requirements; the message about none begins with `asking`."""
    for root in roots:
        folder = root / kind / implementation
        if any((folder / name).is_file() for name in REQUIREMENT_FILES):
            return folder.resolve()
    known = sorted({path.name for root in roots for path in (root / kind).glob("*") if path.is_dir()})
    near = closest(implementation, known)
    raise GymError(
        f"{asking}there is no folder {kind}/{implementation} with a {' or a '.join(REQUIREMENT_FILES)}",
        hint=f"Did you mean `{near}`?" if near else None,
        details=("looked in:", *(f"  {root}" for root in roots)),
    )
