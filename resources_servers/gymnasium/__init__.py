"""Environments in the manner of Gymnasium: they are reset once and stepped with each answer of the model."""

from resources_servers.gymnasium.base import (
    EnvResetRequest,
    EnvResetResponse,
    EnvStepRequest,
    EnvStepResponse,
    GymnasiumServer,
    extract_text,
    tool_output,
)

__all__ = [
    "EnvResetRequest",
    "EnvResetResponse",
    "EnvStepRequest",
    "EnvStepResponse",
    "GymnasiumServer",
    "extract_text",
    "tool_output",
]
