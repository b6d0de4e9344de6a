"""The typed pieces of a configuration that servers and environments use; existing code imports it as `nemo_gym.config_types`."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, Field

from backend.config.errors import (
    AgentCompositionError,
    AlmostServerError,
    ConfigError,
    ConfigInterpolationError,
    ConfigMergeError,
    ConfigMissingValuesError,
    ConfigPathNotFoundError,
    ConfigSyntaxError,
    EnvironmentOnboardingError,
    EnvironmentPublicationError,
    EnvironmentValidationError,
    InheritPathNotFoundError,
    MalformedConfigPathsError,
    ManifestError,
    NoServerInstancesError,
    OverrideError,
    RegistryError,
    ScaffoldError,
    ServerRefNotFoundError,
    UnsupportedAgentOverrideError,
    UnsupportedAgentPairingError,
)
from backend.config.schema import DOMAINS

__all__ = [
    "ROLLOUT_PATH_PREFIX",
    "TOKEN_CAPTURE_PATH_SEGMENT",
    "AgentCompositionError",
    "AgentServerRef",
    "AggregateMetrics",
    "AggregateMetricsRequest",
    "AlmostServerError",
    "BaseRunServerConfig",
    "BaseRunServerInstanceConfig",
    "BaseServerConfig",
    "ConfigError",
    "ConfigInterpolationError",
    "ConfigMergeError",
    "ConfigMissingValuesError",
    "ConfigPathNotFoundError",
    "ConfigSyntaxError",
    "Domain",
    "EnvironmentOnboardingError",
    "EnvironmentPublicationError",
    "EnvironmentValidationError",
    "InheritPathNotFoundError",
    "MalformedConfigPathsError",
    "ManifestError",
    "ModelServerRef",
    "NoServerInstancesError",
    "OverrideError",
    "RegistryError",
    "ResourcesServerRef",
    "ScaffoldError",
    "ServerRefNotFoundError",
    "UnsupportedAgentOverrideError",
    "UnsupportedAgentPairingError",
]

ROLLOUT_PATH_PREFIX = "ng-rollout"
"""First segment of `/ng-rollout/<rollout id>/…`, the prefix that ties a request to a rollout."""
TOKEN_CAPTURE_PATH_SEGMENT = "training-token-capture"
"""Segment after the rollout id that asks a model server to record token ids."""


class Domain(StrEnum):
    """What an environment is about."""

    MATH = "math"
    CODING = "coding"
    AGENT = "agent"
    KNOWLEDGE = "knowledge"
    INSTRUCTION_FOLLOWING = "instruction_following"
    LONG_CONTEXT = "long_context"
    SAFETY = "safety"
    GAMES = "games"
    TRANSLATION = "translation"
    E2E = "e2e"
    RLHF = "rlhf"
    OTHER = "other"


assert tuple(Domain) == DOMAINS, "one list of domains"


class ModelServerRef(BaseModel):
    """Names a model server instance."""

    type: Literal["responses_api_models"]
    name: str


class ResourcesServerRef(BaseModel):
    """Names a resources server instance."""

    type: Literal["resources_servers"]
    name: str


class AgentServerRef(BaseModel):
    """Names an agent instance."""

    type: Literal["responses_api_agents"]
    name: str


class BaseServerConfig(BaseModel):
    """Where a server listens; `num_workers` above 1 means several processes behind one port."""

    host: str
    port: int
    num_workers: int | None = None


class BaseRunServerConfig(BaseServerConfig):
    """What is needed to start a server: its file within the implementation's folder."""

    entrypoint: str
    domain: Domain | None = None


class BaseRunServerInstanceConfig(BaseRunServerConfig):
    """The configuration that a running server gets: its block and the name of its instance."""

    name: str


class AggregateMetricsRequest(BaseModel):
    """The verify responses of one agent's rollouts, for its resources server to aggregate."""

    verify_responses: list[dict[str, Any]]


class AggregateMetrics(BaseModel):
    """Metrics of one agent's rollouts, per task, per repeat and in total."""

    group_level_metrics: list[dict[str, Any]] = Field(default_factory=list)
    agent_metrics: dict[str, Any] = Field(default_factory=dict)
    key_metrics: dict[str, Any] = Field(default_factory=dict)
    perf_summary: dict[str, Any] | None = None
    repeat_level_metrics: list[dict[str, Any]] = Field(default_factory=list)


def __getattr__(name: str) -> Any:
    """Existing tests take OmegaConf from here; it is imported for those who ask only."""
    if name == "OmegaConf":
        from omegaconf import OmegaConf

        return OmegaConf
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
