"""The vocabulary of server environments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from backend.events import Event


@dataclass(frozen=True, slots=True)
class ServerEnvironment:
    """Where a server's Python comes from. `python` None: this program's own interpreter, forked from the warm parent."""

    origin: str
    """`shared` (the program's own), `prebuilt` (found at the documented path), `stored` (from the store), `built` (made just now)."""
    python: Path | None = None
    folder: Path | None = None
    """The virtual environment."""
    import_path: tuple[str, ...] = ()
    """Goes in front of the server's `PYTHONPATH`: where an environment that knows nothing of this program finds `backend` and `nemo_gym`."""
    fallback_path: tuple[str, ...] = ()
    """Goes to the end of the server's `sys.path`: this program's own libraries, for a prebuilt environment of the same Python."""
    layered: bool = False
    """Its libraries come on top of this program's, in the same versions: a process forked from the warm parent can take it on."""


@dataclass(frozen=True, slots=True)
class EnvironmentRequest:
    """The environment of one server folder; `names` are the instances that run there."""

    names: tuple[str, ...]
    kind: str
    implementation: str
    folder: Path
    entrypoint: str = "app.py"
    also: tuple[str, ...] = ()
    """Requirements beyond those of the folder, for instance what its tests need."""


@dataclass(frozen=True, slots=True)
class EnvironmentSettings:
    """What the configuration says about environments: the keys of the same names, and the roots in which components are looked for.

    `uv_pip_set_python` is not among them: the installer is always told the interpreter.
    """

    uv_venv_dir: Path
    uv_cache_dir: Path | None = None
    skip_venv_if_present: bool = False
    pip_install_verbose: bool = False
    roots: tuple[Path, ...] = ()
    pins: tuple[str, ...] = ()
    """Constraints that hold in every environment, for instance the version of a cluster's Ray."""


@dataclass(frozen=True, slots=True)
class EnvironmentPreparing(Event):
    """An environment is being built, because the program's own lacks `missing`."""

    type: ClassVar[str] = "environment.preparing"
    servers: tuple[str, ...]
    folder: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EnvironmentOutput(Event):
    """A line of the installer; `server` is the first instance that needs the environment."""

    type: ClassVar[str] = "environment.output"
    server: str
    line: str


@dataclass(frozen=True, slots=True)
class EnvironmentReady(Event):
    """The environment of `servers` is known; `folder` is empty for the program's own."""

    type: ClassVar[str] = "environment.ready"
    servers: tuple[str, ...]
    origin: str
    folder: str
    seconds: float


@dataclass(frozen=True, slots=True)
class EnvironmentsPrepared(Event):
    """All environments are there: by server folder, as `EnvironmentRequest.folder` names it."""

    type: ClassVar[str] = "environments.prepared"
    environments: Mapping[str, ServerEnvironment]

    def as_fields(self) -> dict[str, Any]:
        return {"environments": {folder: str(environment.folder or "") for folder, environment in self.environments.items()}}
