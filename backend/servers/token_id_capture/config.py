"""The `token_id_capture` block of a configuration."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from backend.config.global_config import TOKEN_ID_CAPTURE_BLOCK
from backend.errors import GymError
from backend.servers.token_id_capture.context import installed_lineage_store, installed_token_sink, installed_token_source
from backend.servers.token_id_capture.lineage import FileLineageStore, LineageStore
from backend.servers.token_id_capture.store import TokenCaptureStore, TokenSink, TokenSource


class TokenIdCaptureSettings(BaseModel):
    """The block itself; other keys are refused."""

    model_config = ConfigDict(extra="forbid")

    enabled: bool = False
    all_agents: bool = False
    """Also agents that do not set `token_id_capture: true`."""
    dir: Path | None = None
    """Absolute; by default the folder of model-call capture."""
    sink: str | None = None
    """`module:Class` of a sink in place of the folder."""
    sink_kwargs: dict[str, Any] = Field(default_factory=dict)
    lineage_store: str | None = None
    """`module:Class`; a sink of one's own needs one."""
    lineage_store_kwargs: dict[str, Any] = Field(default_factory=dict)
    rebuild_response: bool = True
    """Whether the collector puts the tokens into the rollouts' records; otherwise the records of the calls are left for others."""
    allow_unresolved_continuations: bool = False
    delta_records: bool = False
    max_mask_fraction: float | None = Field(default=None, ge=0, le=1)
    """The share of masked rollouts, 0-1, above which a collection ends."""
    mask_fraction_min_samples: int = Field(default=50, ge=0)
    """From how many rollouts on that share counts."""


class TokenIdCaptureConfig(BaseModel):
    """What a configuration says about token capture."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=())

    token_id_capture: TokenIdCaptureSettings = Field(default_factory=TokenIdCaptureSettings)
    model_call_capture_dir: Path | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> TokenIdCaptureConfig:
        block = self.token_id_capture
        if not block.enabled:
            return self
        if block.sink is None and (self.resolved_dir() is None or not self.resolved_dir().is_absolute()):  # type: ignore[union-attr]
            raise ValueError(
                "token_id_capture needs `dir` (or model_call_capture_dir): an absolute path, the same for all servers"
            )
        if block.sink and not block.lineage_store and not block.allow_unresolved_continuations:
            raise ValueError("token_id_capture.sink needs a lineage_store, or allow_unresolved_continuations: true")
        return self

    @classmethod
    def from_global_config(cls, config: Any) -> TokenIdCaptureConfig:
        """The two keys of a configuration. Raises ValueError for settings that do not fit together."""
        folder = config.get("model_call_capture_dir")
        return cls(
            token_id_capture=TokenIdCaptureSettings(**_plain(config.get(TOKEN_ID_CAPTURE_BLOCK) or {})),
            model_call_capture_dir=Path(folder) if isinstance(folder, str) and folder else None,
        )

    def resolved_dir(self) -> Path | None:
        """The folder of records."""
        return self.token_id_capture.dir or self.model_call_capture_dir

    def build_sink(self) -> TokenSink | None:
        """The sink: the one put in place by this program, the configured class, or the folder; None when capture is off."""
        block, folder = self.token_id_capture, self.resolved_dir()
        if not block.enabled:
            return None
        if installed_token_sink() is not None:
            return installed_token_sink()
        if block.sink:
            made: TokenSink = _made("sink", block.sink, block.sink_kwargs)
            return made
        return TokenCaptureStore(folder) if folder else None

    def build_source(self) -> TokenSource | None:
        """Where records are taken from: the source put in place by this program, the sink where it is a source as well, or the folder.

        None when capture is off, or when somebody else has to take the records.
        """
        block, folder = self.token_id_capture, self.resolved_dir()
        if not block.enabled:
            return None
        if installed_token_source() is not None:
            return installed_token_source()
        if installed_token_sink() is not None:
            sink = installed_token_sink()
            return sink if isinstance(sink, TokenSource) else None
        if block.sink:
            target = _target("sink", block.sink)
            made = _constructed("sink", block.sink, target, block.sink_kwargs) if _is_source(target) else None
            return made if made is None or isinstance(made, TokenSource) else None
        return TokenCaptureStore(folder) if folder else None

    def build_lineage_store(self) -> LineageStore | None:
        """The lineage store that belongs to the sink; None when continuations stay unresolved."""
        block, folder = self.token_id_capture, self.resolved_dir()
        if not block.enabled:
            return None
        if installed_lineage_store() is not None:
            return installed_lineage_store()
        if block.lineage_store:
            made: LineageStore = _made("lineage_store", block.lineage_store, block.lineage_store_kwargs)
            return made
        return FileLineageStore(folder) if folder and not block.sink else None


def make_token_store(global_config_dict: Any) -> TokenCaptureStore | None:
    """The folder store of a configuration; None when capture is off or goes elsewhere."""
    config = TokenIdCaptureConfig.from_global_config(global_config_dict)
    folder = config.resolved_dir()
    if not config.token_id_capture.enabled or config.token_id_capture.sink or folder is None:
        return None
    return TokenCaptureStore(folder)


def token_id_capture_dirs_from_config(global_config_dict: Any) -> list[Path]:
    """The folders of a configuration in which token records are found."""
    store = make_token_store(global_config_dict)
    return [store.root] if store else []


def checked_config(config: Any) -> TokenIdCaptureConfig:
    """What a configuration says about token capture. Raises `GymError` for settings that cannot be used or do not fit together."""
    try:
        return TokenIdCaptureConfig.from_global_config(config)
    except ValidationError as error:
        found = [(".".join(map(str, item["loc"])), item["msg"].removeprefix("Value error, ")) for item in error.errors()]
        reasons = "; ".join(f"{key}: {reason}" if key else reason for key, reason in found)
        raise GymError(f"token_id_capture cannot be used as it is configured: {reasons}") from None


def require_shared_lineage(store: LineageStore | None, workers: int) -> None:
    """Raises `GymError` where several workers would each see only some of a rollout's calls."""
    if store is not None and workers > 1 and not store.is_process_shared():
        raise GymError(
            f"token_id_capture.lineage_store sees the calls of one process only, and this server has {workers} workers",
            hint="set num_workers to 1, or use a lineage store that all workers share",
        )


def _made(setting: str, path: str, arguments: dict[str, Any]) -> Any:
    return _constructed(setting, path, _target(setting, path), arguments)


def _target(setting: str, path: str) -> Any:
    import nemo_gym  # noqa: F401 - puts the roots and the command's folder onto sys.path, where a class of the user's is looked for

    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise GymError(
            f"token_id_capture.{setting} {path!r} cannot be loaded: {error}",
            hint="write module.path:Class; the module must be importable in the servers and in the command",
        ) from error


def _constructed(setting: str, path: str, target: Any, arguments: dict[str, Any]) -> Any:
    try:
        return target(**arguments)
    except (TypeError, ValueError, OSError) as error:
        raise GymError(f"token_id_capture.{setting} {path!r} cannot be made of {setting}_kwargs: {error}") from error


def _is_source(target: Any) -> bool:
    return all(callable(getattr(target, name, None)) for name in ("freeze", "drop"))


def _plain(block: Any) -> dict[str, Any]:
    if hasattr(block, "_metadata"):  # OmegaConf's
        from omegaconf import OmegaConf

        return OmegaConf.to_container(block, resolve=True)  # type: ignore[return-value]
    return dict(block)
