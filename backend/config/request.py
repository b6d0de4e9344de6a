"""What somebody wants resolved: files, values from flags, overrides, places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class FlagValue:
    """A value that a flag gives to a key. It is taken as it is, so that `1.10`, `a,b` and `123456` stay strings."""

    key: str
    """Dotted, for instance `responses_create_params.temperature`."""
    value: Any
    flag: str
    """As typed, for instance `--temperature`."""


@dataclass(frozen=True, slots=True)
class ConfigRequest:
    """All that decides a configuration, besides the files themselves and the environment."""

    config_paths: tuple[str, ...] = ()
    """From `--config` and the name selectors in merge order; absolute, or relative to one of the roots."""
    flag_values: tuple[FlagValue, ...] = ()
    overrides: tuple[str, ...] = ()
    """`key=value` words as typed. `+config_paths=[…]` adds to `config_paths`, other forms of that key replace it."""
    search_dirs: tuple[str, ...] = ()
    cwd: Path | None = None
    stand_in_model: bool = False
    """Put a stand-in where no model is configured, for commands that need none."""
    initial: Mapping[str, Any] | None = None
    """A mapping that ranks above env.yaml and below flags and overrides."""
    env_file: Path | None = None
    """Read this instead of the first env.yaml of the roots."""
    read_env_file: bool = True
    check_components: bool = True
    """Whether servers whose implementation folder is in none of the roots are reported."""
    handed_down: bool = True
    """Whether a configuration in the environment (`NEMO_GYM_CONFIG_DICT`) takes the place of all this, where there is one. Requests
    that leave env.yaml alone ask for certain files and do without it."""
    validate_only: bool = False
    """Nothing is going to be started, so that a missing implementation is only a remark unless the check is strict."""
