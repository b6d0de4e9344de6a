"""What can be wrong with a configuration.

    ConfigError
    ├── ConfigPathNotFoundError          an entry of `config_paths` is no file (also a FileNotFoundError)
    ├── ConfigSyntaxError                a file is not YAML, or not a mapping
    ├── ConfigMergeError                 two layers cannot be merged
    ├── OverrideError                    a `key=value` token cannot be applied
    ├── MalformedConfigPathsError        and the following: each also a ValueError
    ├── NoServerInstancesError
    ├── ConfigMissingValuesError         values left at `???`
    ├── ConfigInterpolationError         `${…}` that cannot be resolved
    ├── ServerRefNotFoundError
    ├── InheritPathNotFoundError
    ├── AlmostServerError                a block that looks like a server and is not one
    ├── AgentCompositionError
    ├── UnsupportedAgentPairingError
    ├── UnsupportedAgentOverrideError
    └── RegistryError, ManifestError, EnvironmentValidationError, EnvironmentOnboardingError,
        EnvironmentPublicationError, ScaffoldError

Kept apart from `config_types`, which needs pydantic: what only lists or selects configurations imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

from backend.errors import GymError


class ConfigError(GymError):
    """A configuration cannot be used as it is.

    `nearest` is the right name that a wrong one comes closest to. `fix` can be copied: an override or flag for the command line, or a
    line for the file. `parts` tell the same problem key by key where it concerns several, each with its own place and fix.
    """

    def __init__(
        self,
        message: str,
        *,
        nearest: str | None = None,
        fix: str | None = None,
        parts: Iterable[ConfigError] = (),
        hint: str | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(message, hint=hint or (f"Did you mean `{nearest}`?" if nearest else None), **fields)
        self.nearest = nearest
        self.fix = fix
        self.parts = tuple(parts)

    def masked(self, mask: Callable[[str], str]) -> Self:
        self.fix = mask(self.fix) if self.fix else None
        return super().masked(mask)

    def __str__(self) -> str:
        return f"{super().__str__()}\nfix: {self.fix}" if self.fix else super().__str__()


class ConfigPathNotFoundError(ConfigError, FileNotFoundError):
    """An entry of `config_paths` is in none of the search roots."""


class ConfigSyntaxError(ConfigError, ValueError):
    """A configuration file is not YAML of the accepted dialect; `place` has file, line and column."""


class ConfigMergeError(ConfigError, ValueError):
    """Two layers give one key values that cannot be merged (a mapping and a list)."""


class OverrideError(ConfigError, ValueError):
    """A `key=value` token is malformed or cannot be applied."""


class MalformedConfigPathsError(ConfigError, ValueError):
    """`config_paths` is not a list of paths."""


class NoServerInstancesError(ConfigError, ValueError):
    """The configuration names no server where at least one is needed."""


class ConfigMissingValuesError(ConfigError, ValueError):
    """Values are still `???`."""


class ConfigInterpolationError(ConfigError, ValueError):
    """An interpolation names a key or environment variable that is not set, or cannot be evaluated."""


class ServerRefNotFoundError(ConfigError, ValueError):
    """A server refers to another that is not defined."""


class InheritPathNotFoundError(ConfigError, ValueError):
    """A directive's source does not exist, or directives depend on each other in a circle."""


class AlmostServerError(ConfigError, ValueError):
    """A block has a server type and an entrypoint, but is not a valid server."""


class AgentCompositionError(ConfigError, ValueError):
    """An agent configuration cannot be put in the place of the loaded agents."""


class UnsupportedAgentPairingError(ConfigError, ValueError):
    """A resources server does not allow the agent that would use it."""


class UnsupportedAgentOverrideError(ConfigError, ValueError):
    """An override names an agent that composition does not create."""


class RegistryError(ConfigError):
    """The catalogue of workloads is inconsistent."""


class ManifestError(ConfigError):
    """A manifest is malformed or disagrees with its configuration."""


class EnvironmentValidationError(ConfigError):
    """A workload fails its static checks."""


class EnvironmentOnboardingError(ConfigError):
    """A workload fails its verifier fixture."""


class EnvironmentPublicationError(ConfigError):
    """A workload cannot be published."""


class ScaffoldError(ConfigError):
    """A new component cannot be created."""
