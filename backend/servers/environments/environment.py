"""The vocabulary of server environments."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from backend.events import Event


@dataclass(frozen=True, slots=True)
class ServerEnvironment:
    """Where a server's Python comes from. `python` None: this program's own interpreter, forked from the warm parent."""

    origin: str
    """`shared` (the program's own), `prebuilt` (found at the documented path), `stored` (from the store), `built` (made just now)."""
    python: Path | None = None
    folder: Path | None = None
    """The virtual environment."""


@dataclass(frozen=True, slots=True)
class EnvironmentRequest:
    """The environment of one server folder; `names` are the instances that run there."""

    names: tuple[str, ...]
    kind: str
    implementation: str
    folder: Path


@dataclass(frozen=True, slots=True)
class EnvironmentSettings:
    """What the configuration says about environments (the keys of the same names, defaults filled in)."""

    uv_venv_dir: Path
    uv_cache_dir: Path | None = None
    skip_venv_if_present: bool = False
    python_version: str = ""
    pip_install_verbose: bool = False
    uv_pip_set_python: bool = False
    extra: dict[str, object] = field(default_factory=dict)


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
