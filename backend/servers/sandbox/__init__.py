"""Sandboxes: places apart in which commands of agents and verifiers run; one interface over several runtimes.

Importable as `nemo_gym.sandbox`. `AsyncSandbox` is for servers, `Sandbox` for synchronous code.
"""

from backend.servers.sandbox.api import AsyncSandbox, Sandbox, SandboxPty
from backend.servers.sandbox.config import resolve_provider_config, resolve_provider_metadata
from backend.servers.sandbox.providers.base import (
    ConnectableProvider,
    ExecResult,
    SandboxCreateError,
    SandboxCreateVerificationError,
    SandboxEndpoint,
    SandboxError,
    SandboxExecResult,
    SandboxHandle,
    SandboxProvider,
    SandboxPtyError,
    SandboxPtySession,
    SandboxPtySpec,
    SandboxPtyUnsupportedError,
    SandboxResources,
    SandboxSpec,
    SandboxStatus,
    SupportsSandboxEndpoint,
    SupportsSandboxPty,
    SupportsSandboxPtyAttach,
)
from backend.servers.sandbox.providers.registry import create_provider, get_provider_class, list_providers, register_provider
from backend.servers.sandbox.utils import rewrite_image

__all__ = [
    "AsyncSandbox",
    "ConnectableProvider",
    "ExecResult",
    "Sandbox",
    "SandboxCreateError",
    "SandboxCreateVerificationError",
    "SandboxEndpoint",
    "SandboxError",
    "SandboxExecResult",
    "SandboxHandle",
    "SandboxProvider",
    "SandboxPty",
    "SandboxPtyError",
    "SandboxPtySession",
    "SandboxPtySpec",
    "SandboxPtyUnsupportedError",
    "SandboxResources",
    "SandboxSpec",
    "SandboxStatus",
    "SupportsSandboxEndpoint",
    "SupportsSandboxPty",
    "SupportsSandboxPtyAttach",
    "create_provider",
    "get_provider_class",
    "list_providers",
    "register_provider",
    "resolve_provider_config",
    "resolve_provider_metadata",
    "rewrite_image",
]
