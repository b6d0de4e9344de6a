"""What a runtime for sandboxes offers, and the types that requests and answers have. Importable as `nemo_gym.sandbox.providers.base`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


class SandboxSettingsError(SandboxConfigError, TypeError):
    """A request or a provider's settings are not of the shape they must have."""


class SandboxCreateError(SandboxError):
    """A sandbox could not be made."""


class SandboxCreateVerificationError(SandboxCreateError):
    """A sandbox was made, but does not run commands."""


class SandboxPtyError(SandboxError):
    """An interactive terminal cannot do what was asked."""


class SandboxPtyUnsupportedError(SandboxPtyError, NotImplementedError):
    """The provider has no interactive terminals, or not of this kind."""


@dataclass(frozen=True)
class SandboxResources:
    """What a sandbox may use; None leaves it to the runtime."""

    cpu: float | None = None
    memory_mib: int | None = None
    disk_gib: int | None = None
    gpu: int | None = None
    gpu_type: str | None = None
    """Which GPU, such as `H100`, for runtimes that can choose."""

    @classmethod
    def from_mapping(cls, resources: Mapping[str, Any] | None) -> Self:
        """The resources that a configuration names; numbers may be text. Raises `SandboxConfigError` (a ValueError) for what is none."""
        known = [item.name for item in fields(cls)]
        values: dict[str, Any] = {}
        for key, value in (resources or {}).items():
            if key not in known:
                raise SandboxConfigError(
                    f"`{key}` is no resource of a sandbox", hint=did_you_mean(key, known) or f"there are {', '.join(known)}"
                )
            kind: type[Any] = {"cpu": float, "gpu_type": str}.get(key, int)
            try:
                values[key] = None if value is None else kind(value)
            except (TypeError, ValueError):
                raise SandboxConfigError(f"a sandbox's `{key}` is a number, not {value!r}") from None
        return cls(**values)


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
    provider_options: dict[str, Any] = field(default_factory=dict)
    ports: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.resources, SandboxResources):
            object.__setattr__(self, "resources", SandboxResources.from_mapping(self.resources))
        object.__setattr__(self, "ports", _tcp_ports(self.ports))


def _tcp_ports(ports: Iterable[Any] | None) -> tuple[int, ...]:
    numbers: list[int] = []
    for port in ports or ():
        number = int(port)
        if not 0 < number < 1 << 16:
            raise SandboxConfigError(f"a sandbox's port lies between 1 and 65535: {number}")
        if number in numbers:
            raise SandboxConfigError(f"a sandbox's port is named once: {number}")
        numbers.append(number)
    return tuple(numbers)


@dataclass(frozen=True)
class SandboxExecResult:
    """What a command left. Where it was cut off, `error_type` is `timeout` or `sandbox`, and the code is 125."""

    stdout: str | None
    stderr: str | None
    return_code: int
    error_type: str | None = None


ExecResult = SandboxExecResult


@dataclass
class SandboxHandle:
    """A sandbox that was made; `raw` is its provider's own, which may replace it."""

    sandbox_id: str
    provider_name: str
    raw: Any = None


class SandboxStatus(str, Enum):  # noqa: UP042 - a StrEnum is formatted as its value, and this is formatted as its name
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


@dataclass(frozen=True)
class SandboxPtySpec:
    """A request for one interactive terminal: of `command`, or of a shell that is typed to.

    Without `pty` the command gets pipes: its standard error is read for itself, and `resize` means nothing.
    """

    command: str | None = None
    cwd: str | None = None
    env: dict[str, str] | None = None
    rows: int = 24
    cols: int = 80
    user: str | int | None = None
    pty: bool = True


@runtime_checkable
class SandboxProvider(Protocol):
    """A runtime. Its constructor takes the settings of its configuration block.

    What else it may offer is in `SupportsSandboxEndpoint`, `ConnectableProvider`, `SupportsSandboxPty` and `SupportsSandboxPtyAttach`.
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


@runtime_checkable
class SupportsSandboxEndpoint(Protocol):
    """A provider whose sandboxes are reached at their ports."""

    async def endpoint(self, handle: SandboxHandle, port: int) -> SandboxEndpoint:
        """How a port of the sandbox is reached from here."""


@runtime_checkable
class ConnectableProvider(Protocol):
    """A provider whose sandboxes can be used from another process than the one that made them."""

    async def serialize_handle(self, handle: SandboxHandle, *, scope: str | None = None) -> dict[str, Any]:
        """What `connect` needs, as JSON. `scope` says for whom it is, where the provider makes a difference."""

    async def connect(self, descriptor: Mapping[str, Any]) -> SandboxHandle:
        """The sandbox that a descriptor names."""


@runtime_checkable
class SandboxPtySession(Protocol):
    """An interactive terminal in a sandbox, and the command in it."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    async def read(self, *, timeout_s: float | None = None) -> bytes:
        """What has come from the command, at least one byte; empty at the end, and when nothing came within `timeout_s`."""

    async def read_stderr(self, *, timeout_s: float | None = None) -> bytes:
        """The same of its standard error, which on a terminal is part of `read`."""

    async def write(self, data: bytes) -> None:
        """Type."""

    async def resize(self, rows: int, cols: int) -> None:
        """Give the terminal another size."""

    async def send_signal(self, signal: str) -> None:
        """Send a signal, such as `SIGINT`, to what runs in the foreground."""

    async def wait_exit(self, *, timeout_s: float | None = None) -> int:
        """The command's exit code, once it has ended. Raises TimeoutError."""

    async def run_detached(self, command: str, *, poll_interval_s: float = 15.0) -> tuple[bytes, int | None]:
        """Run a long command in the terminal's shell so that it survives a lost connection; its output and its exit code, if known."""

    async def close(self) -> None:
        """End it and what runs in it; harmless when it has ended."""


@runtime_checkable
class SupportsSandboxPty(Protocol):
    """A provider with interactive terminals."""

    async def create_pty(self, handle: SandboxHandle, spec: SandboxPtySpec) -> SandboxPtySession:
        """A new terminal; raises `SandboxPtyError`."""


@runtime_checkable
class SupportsSandboxPtyAttach(Protocol):
    """A provider whose terminals can be taken up again."""

    async def attach_pty(
        self, handle: SandboxHandle, session_id: str, *, takeover: bool = True, since: int | None = None
    ) -> SandboxPtySession:
        """The terminal of that id; `takeover` ends other connections to it, `since` is the byte of its output to go on from."""
