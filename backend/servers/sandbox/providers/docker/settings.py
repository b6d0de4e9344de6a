"""The settings of Docker sandboxes: what the blocks `create`, `exec` and `probe` of the provider `docker` may hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from backend.errors import did_you_mean
from backend.servers.sandbox.providers.base import SandboxConfigError, SandboxSettingsError

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class DockerCreateConfig:
    """How containers are made: the setting `create` of the provider `docker`."""

    keepalive_shell: str = "/bin/sh"
    keepalive_cmd: str = "while :; do sleep 86400; done"
    """What a container does until it is closed, unless the request has an entry point; with a time to live, that much sleep instead."""
    start_timeout_s: float | None = 600
    use_init: bool = True
    network: str | None = None
    read_only: bool = False
    cap_drop: Sequence[str] = ()
    security_opt: Sequence[str] = ()
    pids_limit: int | None = None
    extra_run_args: Sequence[str] = ()
    apply_resource_limits: bool = True
    publish_host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        for name in ("cap_drop", "security_opt", "extra_run_args"):
            _check_words(getattr(self, name), f"create.{name}")


@dataclass(frozen=True)
class DockerExecConfig:
    """How commands run: the setting `exec` of the provider `docker`."""

    default_timeout_s: float | None = 180
    """For commands that are given no time of their own; None lets them run on."""
    extra_exec_args: Sequence[str] = ()
    """Arguments of `docker exec`, before the container's name."""
    concurrency: int = 32
    """How many `docker` programs run at once. Those that clean up are not counted: they do not wait for what they end."""
    exec_shell: str | None = None
    """What commands are given to with `-c`; None takes bash where the image has it, else sh."""
    output_limit_bytes: int = 10_000_000

    def __post_init__(self) -> None:
        _check_words(self.extra_exec_args, "exec.extra_exec_args")
        _check_count(self.concurrency, "exec.concurrency")


@dataclass(frozen=True)
class DockerProbeConfig:
    """When a new container is ready: the setting `probe` of the provider `docker`."""

    command: str | None = "printf docker-sandbox-ready"
    """Has to end with 0; None takes a container that was started for ready."""
    expected_stdout: str | None = "docker-sandbox-ready"
    """What has to stand in the output: shells may greet before it. None takes any output."""
    timeout_s: float = 30
    deadline_s: float | None = None
    """For how long a container that is not ready is asked again; None gives up the first time."""
    stable_count: int = 1
    """How many times in a row the command has to succeed, `stable_delay_s` apart."""
    stable_delay_s: float = 0.0

    def __post_init__(self) -> None:
        _check_count(self.stable_count, "probe.stable_count")


def settings_of(kind: type[Settings], block: str, given: Settings | Mapping[str, Any] | None) -> Settings:
    """The settings of a `block`, given as such or as a mapping.

    Raises `SandboxSettingsError` (a ValueError and a TypeError) for another shape and for keys that the block does not have.
    """
    if isinstance(given, kind):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise SandboxSettingsError(f"`{block}` of Docker sandboxes is a mapping, not {given!r}")
    known = [entry.name for entry in fields(kind)]  # type: ignore[arg-type] # each of them is a dataclass
    for key in given or ():
        if key not in known:
            raise SandboxSettingsError(
                f"`{block}` of Docker sandboxes has no setting `{key}`",
                hint=did_you_mean(str(key), known) or f"there are {', '.join(known)}",
            )
    return kind(**(given or {}))


def _check_words(value: Any, name: str) -> None:
    # A text is a sequence of texts as well, which docker would be given letter by letter.
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(word, str) for word in value):
        raise SandboxSettingsError(f"`{name}` of Docker sandboxes is a list of texts, not {value!r}")


def _check_count(value: Any, name: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise SandboxSettingsError(f"`{name}` of Docker sandboxes is a whole number, not {value!r}")
    if value < 1:
        raise SandboxConfigError(f"`{name}` of Docker sandboxes is at least 1, not {value}")
