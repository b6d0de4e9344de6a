"""Sandboxes: places apart in which commands of agents and verifiers run; one interface over several runtimes.

Importable as `nemo_gym.sandbox`. `AsyncSandbox` is for servers, `Sandbox` for synchronous code.
"""

from backend.servers.sandbox.api import AsyncSandbox
from backend.servers.sandbox.config import resolve_provider_config, resolve_provider_metadata
from backend.servers.sandbox.providers.base import (
    SandboxCreateError,
    SandboxCreateVerificationError,
    SandboxEndpoint,
    SandboxError,
    SandboxExecResult,
    SandboxHandle,
    SandboxProvider,
    SandboxPtyError,
    SandboxPtySession,
    SandboxResources,
    SandboxSpec,
    SandboxStatus,
)
from backend.servers.sandbox.providers.registry import create_provider, get_provider_class, list_providers, register_provider
from backend.servers.sandbox.sync_api import Sandbox
from backend.servers.sandbox.utils import rewrite_image

__all__ = [
    "AsyncSandbox",
    "Sandbox",
    "SandboxCreateError",
    "SandboxCreateVerificationError",
    "SandboxEndpoint",
    "SandboxError",
    "SandboxExecResult",
    "SandboxHandle",
    "SandboxProvider",
    "SandboxPtyError",
    "SandboxPtySession",
    "SandboxResources",
    "SandboxSpec",
    "SandboxStatus",
    "create_provider",
    "get_provider_class",
    "list_providers",
    "register_provider",
    "resolve_provider_config",
    "resolve_provider_metadata",
    "rewrite_image",
]
