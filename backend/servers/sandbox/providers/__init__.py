"""The runtimes that sandboxes can have. Importable as `nemo_gym.sandbox.providers`."""

from backend.servers.sandbox.providers.base import SandboxProvider
from backend.servers.sandbox.providers.registry import create_provider, get_provider_class, list_providers, register_provider

__all__ = ["SandboxProvider", "create_provider", "get_provider_class", "list_providers", "register_provider"]
