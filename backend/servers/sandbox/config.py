"""Which provider a configuration asks for. Importable as `nemo_gym.sandbox.config`.

A named block of the configuration holds one provider and its settings, and may hold metadata for every sandbox:

    sandbox:
      default_metadata: {team: evals}
      docker: {create: {network: none}}
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from backend.errors import did_you_mean, name_some
from backend.servers.sandbox.providers.base import SandboxConfigError, SandboxSettingsError

METADATA = "default_metadata"


def resolve_provider_config(sandbox_provider: str | Mapping[str, Any], named_configs: Any = None) -> dict[str, Any]:
    """`{provider: settings}` of a block, given as itself or as its name in `named_configs`.

    Raises `SandboxConfigError` (a ValueError) when there is no such block, or it does not hold exactly one provider.
    """
    block = _block_of(sandbox_provider, named_configs)
    names = [name for name in block if name != METADATA]
    if len(names) != 1:
        found = name_some(names) if names else "none"
        raise SandboxConfigError(
            f"a sandbox provider block holds exactly one provider, and this one holds {found}",
            hint=f"write `<name>: {{docker: {{}}}}`; beside the provider only `{METADATA}` may stand",
        )
    return {names[0]: block[names[0]] or {}}


def resolve_provider_metadata(sandbox_provider: str | Mapping[str, Any], named_configs: Any = None) -> dict[str, Any]:
    """The block's `default_metadata`, empty where it has none. Raises as `resolve_provider_config` does where there is no block."""
    metadata = _block_of(sandbox_provider, named_configs).get(METADATA) or {}
    if not isinstance(metadata, Mapping):
        raise SandboxConfigError(f"`{METADATA}` of a sandbox provider block is a mapping, not {metadata!r}")
    return dict(metadata)


def _block_of(provider: str | Mapping[str, Any], global_config: Any) -> dict[str, Any]:
    if isinstance(provider, str):
        block = global_config.get(provider) if global_config is not None else None
        if block is None:
            blocks = list(global_config or ())
            raise SandboxConfigError(
                f"the configuration has no block `{provider}`, which `sandbox_provider` names",
                hint=did_you_mean(provider, map(str, blocks)) or f"add one: `{provider}: {{docker: {{}}}}`",
            )
        provider = block
    plain = _plain(provider)
    if not isinstance(plain, dict):
        raise SandboxSettingsError(f"a sandbox provider is a name or a mapping, not {provider!r}")
    return plain


def _plain(value: Any) -> Any:
    if "omegaconf" in sys.modules:
        from omegaconf import OmegaConf

        if OmegaConf.is_config(value):
            return OmegaConf.to_container(value, resolve=True)
    return dict(value) if isinstance(value, Mapping) else value
