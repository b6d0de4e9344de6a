"""From a sandbox request to the arguments of `docker run`. What variables hold does not stand there, where `ps` would show it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from backend.errors import did_you_mean
from backend.servers.sandbox.providers.base import SandboxConfigError, SandboxResources, SandboxSpec
from backend.servers.sandbox.providers.docker.settings import DockerCreateConfig

LABEL = "nemo-gym.sandbox"
_OPTIONS = ("volumes", "run_args")
_READ_BY_DOCKER = re.compile(r"PATH|HOME|TMPDIR|(DOCKER|LD|XDG|BUILDKIT|OTEL|SSL)_.*|(https?|no|all|ftp)_proxy", re.IGNORECASE)
_ATTRIBUTION = ("NEMO_GYM_TEAM", "NEMO_GYM_USER", "NEMO_GYM_WORKLOAD", "NEMO_GYM_RUN_ID")


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Arguments after `docker`, and the variables that `docker` itself must be given."""

    arguments: list[str]
    env: dict[str, str] = field(default_factory=dict)


def run_command(sandbox_id: str, spec: SandboxSpec, config: DockerCreateConfig) -> RunCommand:
    """`run --detach …` for one sandbox. Raises `SandboxConfigError` (a ValueError) for a request that makes no sense."""
    image = (spec.image or "").removeprefix("docker://")
    if not image or image.startswith("-"):
        raise SandboxConfigError(f"a Docker sandbox needs an image, not {spec.image!r}", hint="set `image` in the sandbox's spec")
    arguments = ["run", "--detach", "--rm", "--name", sandbox_id, "--label", f"{LABEL}={sandbox_id}"]
    arguments += _labels(spec.metadata)
    if config.use_init and spec.entrypoint is None:
        arguments.append("--init")
    if config.network:
        arguments += ["--network", config.network]
    if config.read_only:
        arguments.append("--read-only")
    arguments += [word for capability in config.cap_drop for word in ("--cap-drop", capability)]
    arguments += [word for option in config.security_opt for word in ("--security-opt", option)]
    if config.pids_limit is not None:
        arguments += ["--pids-limit", str(config.pids_limit)]
    if config.apply_resource_limits:
        arguments += _limits(spec.resources)
    if spec.workdir:
        arguments += ["--workdir", spec.workdir]
    words, passed = variables(spec.env)
    arguments += words
    arguments += [word for port in spec.ports for word in ("--publish", f"{config.publish_host}::{int(port)}")]
    arguments += [*config.extra_run_args, *_provider_options(spec.provider_options)]
    arguments += _main_program(image, spec, config)
    return RunCommand(arguments, passed)


def variables(env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The arguments that set `env` in a container, and the variables that `docker` has to be given for that.

    `--env NAME` takes the value from docker's own environment; only what docker itself would heed stands in the arguments with its value.
    """
    words: list[str] = []
    passed: dict[str, str] = {}
    for name, value in env.items():
        if not name or "=" in name or "\0" in name:
            raise SandboxConfigError(f"{name!r} is no name of an environment variable")
        if _READ_BY_DOCKER.fullmatch(name):
            words += ["--env", f"{name}={value}"]
        else:
            words += ["--env", name]
            passed[name] = str(value)
    return words, passed


def _main_program(image: str, spec: SandboxSpec, config: DockerCreateConfig) -> list[str]:
    if spec.entrypoint:
        first, *rest = spec.entrypoint
        return ["--entrypoint", first, image, *rest]
    keep = config.keepalive_cmd if spec.ttl_s is None else f"sleep {max(1, round(spec.ttl_s))}"
    return ["--entrypoint", config.keepalive_shell, image, "-c", keep]


def _limits(resources: SandboxResources) -> list[str]:
    limits = []
    if resources.cpu is not None:
        limits += ["--cpus", f"{resources.cpu:g}"]
    if resources.memory_mib is not None:
        limits += ["--memory", f"{int(resources.memory_mib)}m"]
    if resources.gpu:
        limits += ["--gpus", str(int(resources.gpu))]
    return limits


def _labels(metadata: Mapping[str, Any]) -> list[str]:
    known = {
        f"nemo-gym.{name.removeprefix('NEMO_GYM_').lower()}": os.environ[name] for name in _ATTRIBUTION if os.environ.get(name)
    }
    known |= {f"nemo-gym.metadata.{key}": str(value) for key, value in metadata.items()}
    return [word for key, value in known.items() for word in ("--label", f"{key}={value}")]


def _provider_options(options: Mapping[str, Any]) -> list[str]:
    for key in options:
        if key not in _OPTIONS:
            raise SandboxConfigError(
                f"`{key}` is no option of Docker sandboxes",
                hint=did_you_mean(key, _OPTIONS) or f"`provider_options` may have {' and '.join(_OPTIONS)}",
            )
    volumes, more = (_words(options.get(key), key) for key in _OPTIONS)
    return [*(word for volume in volumes for word in ("--volume", volume)), *more]


def _words(value: Any, key: str) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return list(value)
    raise SandboxConfigError(f"`provider_options.{key}` is a list of texts, not {value!r}")
