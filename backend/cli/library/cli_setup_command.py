"""The old place of `nemo_gym.cli.setup_command`; importable as `nemo_gym.cli_setup_command`."""

from __future__ import annotations

from typing import Any

from backend.io.moved_names import moved


def __getattr__(name: str) -> Any:
    if name in ("run_command", "setup_env_command"):
        return moved("nemo_gym.cli_setup_command", name, "nemo_gym.cli.setup_command", "backend.cli.library.setup_command")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
