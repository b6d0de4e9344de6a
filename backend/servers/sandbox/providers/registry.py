"""Providers by name. The implementations are imported when one is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from backend.errors import did_you_mean, name_some
from backend.servers.sandbox.providers.base import SandboxConfigError, SandboxProvider, SandboxSettingsError

_BUILT_IN = {
    "local": ("backend.servers.sandbox.providers.local", "LocalProvider"),
    "docker": ("backend.servers.sandbox.providers.docker", "DockerProvider"),
    "apptainer": ("backend.servers.sandbox.providers.apptainer", "ApptainerProvider"),
}
_ELSEWHERE = ("daytona", "e2b", "ecs_fargate", "enroot", "opensandbox", "openshell")
_registered: dict[str, type[Any]] = {}


def register_provider(name: str, provider_class: type[Any], *, override: bool = False) -> None:
    """Make `provider_class` the provider `name`. Raises `SandboxConfigError` (a ValueError) when there is one, unless `override`."""
    if name in list_providers() and not override:
        raise SandboxConfigError(f"there is a sandbox provider `{name}` already", hint="pass override=True to replace it")
    _registered[name] = provider_class


def list_providers() -> list[str]:
    """The names that `get_provider_class` knows, sorted."""
    return sorted({*_BUILT_IN, *_registered})


def get_provider_class(name: str) -> type[Any]:
    """The class of the provider `name`. Raises `SandboxConfigError` (a ValueError) for other names."""
    if name in _registered:
        return _registered[name]
    if name in _BUILT_IN:
        module, attribute = _BUILT_IN[name]
        provider_class: type[Any] = getattr(importlib.import_module(module), attribute)
        return provider_class
    raise SandboxConfigError(
        f"the sandbox provider `{name}` is not part of this program" if name in _ELSEWHERE else f"no sandbox provider `{name}`",
        hint=did_you_mean(name, list_providers())
        or f"there are {', '.join(list_providers())}; others are added by `nemo_gym.sandbox.register_provider`",
    )


def create_provider(config: Mapping[str, Any]) -> SandboxProvider:
    """The provider that `{name: settings}` describes.

    Raises `SandboxConfigError` (a ValueError) for other shapes and unknown names, `SandboxSettingsError` (also a TypeError) for settings
    that the provider does not take.
    """
    if not isinstance(config, Mapping) or len(config) != 1:
        found = name_some(list(config)) if isinstance(config, Mapping) else repr(config)
        raise SandboxConfigError(
            f"a sandbox provider is given as a mapping of one name to its settings, not as {found or 'nothing'}"
        )
    ((name, settings),) = config.items()
    provider_class = get_provider_class(str(name))
    if settings is not None and not isinstance(settings, Mapping):
        raise SandboxSettingsError(f"the settings of the sandbox provider `{name}` are a mapping, not {settings!r}")
    try:
        provider: SandboxProvider = provider_class(**(settings or {}))
    except TypeError as error:
        raise SandboxSettingsError(f"the settings of the sandbox provider `{name}` do not fit: {error}") from error
    return provider
