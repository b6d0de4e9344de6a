"""What users of sandboxes call. Importable as `nemo_gym.sandbox.api`."""

from backend.servers.sandbox.async_api import AsyncSandbox
from backend.servers.sandbox.sync_api import Sandbox
from backend.servers.sandbox.terminals import SandboxPty

__all__ = ["AsyncSandbox", "Sandbox", "SandboxPty"]
