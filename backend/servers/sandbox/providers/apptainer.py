"""The name of a provider that agents import and this program does not have. Importable as `nemo_gym.sandbox.providers.apptainer`."""

from __future__ import annotations

from typing import Any

from backend.servers.sandbox.providers.base import SandboxCreateError


class ApptainerProvider:
    """Refuses to be made, so that an agent that could use it can at least be imported and run with another provider."""

    name = "apptainer"

    def __init__(self, **settings: Any) -> None:
        raise SandboxCreateError(
            "the sandbox provider `apptainer` is not part of this program",
            hint="use `docker` or `local`, or add a class of your own with `nemo_gym.sandbox.register_provider`",
        )
