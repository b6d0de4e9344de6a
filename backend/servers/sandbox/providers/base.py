"""What a runtime for sandboxes offers, and the types that requests and answers have. Importable as `nemo_gym.sandbox.providers.base`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from backend.errors import GymError, did_you_mean

RUNTIME_RETURN_CODE = 125
"""Stands for the exit code of a command that has none; `error_type` then says what happened."""
TIMEOUT = "timeout"
RUNTIME_ERROR = "sandbox"


class SandboxError(GymError, RuntimeError):
    """A sandbox, not the command in it, cannot do what was asked."""


class SandboxConfigError(GymError, ValueError):
    """A request or a provider's settings make no sense."""


class SandboxCreateError(SandboxError):
    """A sandbox could not be made."""


class SandboxCreateVerificationError(SandboxCreateError):
    """A sandbox was made, but does not run commands."""


class SandboxPtyError(SandboxError):
    """There is no interactive terminal."""


@dataclass(frozen=True)
class SandboxResources:
    """What a sandbox may use; None leaves it to the runtime."""

    cpu: float | None = None
    memory_mib: int | None = None
    disk_gib: int | None = None
    gpu: int | None = None

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any] | None) -> Self:
        """The resources that a configuration names. Raises `SandboxConfigError` (a ValueError) for other keys."""
        known = [item.name for item in fields(cls)]
        for key in values or ():
            if key not in known:
                raise SandboxConfigError(
                    f"`{key}` is no resource of a sandbox", hint=did_you_mean(key, known) or f"there are {', '.join(known)}"
                )
        return cls(**dict(values or {}))


@dataclass(frozen=True)
class SandboxSpec:
    """A request for one sandbox. `ttl_s` is its longest life, `files` maps paths in it to their text, `ports` are served from it."""

    image: str | None = None
    ttl_s: float | None = None
    ready_timeout_s: float | None = None
    workdir: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    resources: SandboxResources = field(default_factory=SandboxResources)
    entrypoint: Sequence[str] | None = None
    ports: tuple[int, ...] = ()
    provider_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.resources, SandboxResources):
            object.__setattr__(self, "resources", SandboxResources.from_mapping(self.resources))
        object.__setattr__(self, "ports", tuple(self.ports or ()))


@dataclass(frozen=True)
class SandboxExecResult:
    """What a command left. Where it was cut off, `error_type` is `timeout` or `sandbox`, and the code is 125."""

    stdout: str | None
    stderr: str | None
    return_code: int
    error_type: str | None = None


@dataclass(frozen=True)
class SandboxHandle:
    """A sandbox that was made; `raw` is its provider's own."""

    sandbox_id: str
    provider_name: str
    raw: Any = None


class SandboxStatus(Enum):
    """Where in its life a sandbox is."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"
    ERROR = "error"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class SandboxEndpoint:
    """How a port of a sandbox is reached: an origin, and headers to send."""

    endpoint: str
    headers: dict[str, str] = field(default_factory=dict)


@runtime_checkable
class SandboxProvider(Protocol):
    """A runtime. Its constructor takes the settings of its configuration block.

    May also have `endpoint(handle, port)`, `connect(descriptor)` and `create_pty(handle, **options)`.
    """

    name: str

    async def create(self, spec: SandboxSpec) -> SandboxHandle:
        """A sandbox ready to run commands; raises `SandboxCreateError`."""

    async def exec(
        self,
        handle: SandboxHandle,
        command: str,
        *,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_s: float | None = None,
        user: str | int | None = None,
    ) -> SandboxExecResult:
        """Run a shell command to its end."""

    async def upload_file(self, handle: SandboxHandle, source_path: Path, target_path: str) -> None:
        """Copy one file in."""

    async def download_file(self, handle: SandboxHandle, source_path: str, target_path: Path) -> None:
        """Copy one file out."""

    async def status(self, handle: SandboxHandle) -> SandboxStatus:
        """Where in its life it is."""

    async def close(self, handle: SandboxHandle) -> None:
        """End the sandbox and all in it; harmless when it has ended."""

    async def aclose(self) -> None:
        """Give back what the provider itself holds."""


class SandboxPtySession(Protocol):
    """An interactive terminal in a sandbox."""

    async def close(self) -> None:
        """End it."""
