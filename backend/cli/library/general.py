"""Versions and lists; importable as `nemo_gym.cli.general`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from backend.cli.library.commands import command_function

__all__ = ["VersionConfig", "list_benchmarks", "version"]

version = command_function("--version")
list_benchmarks = command_function("list", "benchmarks")


class VersionConfig(BaseModel):
    """Keys of `gym --version`."""

    model_config = ConfigDict(extra="ignore")

    json_format: bool = False
