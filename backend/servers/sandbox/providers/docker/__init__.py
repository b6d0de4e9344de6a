"""Sandboxes that are containers of the local Docker daemon. Importable as `nemo_gym.sandbox.providers.docker`."""

from backend.servers.sandbox.providers.docker.provider import DockerCreateError, DockerCreateVerificationError, DockerProvider
from backend.servers.sandbox.providers.docker.settings import DockerCreateConfig, DockerExecConfig, DockerProbeConfig

__all__ = [
    "DockerCreateConfig",
    "DockerCreateError",
    "DockerCreateVerificationError",
    "DockerExecConfig",
    "DockerProbeConfig",
    "DockerProvider",
]
