"""Sandboxes that are containers of the local Docker daemon. Importable as `nemo_gym.sandbox.providers.docker`."""

from backend.servers.sandbox.providers.docker.provider import DockerCreateConfig, DockerExecConfig, DockerProvider

__all__ = ["DockerCreateConfig", "DockerExecConfig", "DockerProvider"]
