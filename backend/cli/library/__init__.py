"""The commands as functions, for programs that import them; importable as `nemo_gym.cli`.

Names that used to be here live in the modules of this package; asking for one here still works, with a DeprecationWarning.
"""

from __future__ import annotations

from typing import Any

from backend.io.moved_names import moved

_MOVED = {
    **dict.fromkeys(
        ("RunHelper", "RunConfig", "TestConfig", "TestAllConfig", "PipListConfig", "run", "test", "test_all", "dump_config"),
        "env",
    ),
    **dict.fromkeys(("status", "pip_list"), "env"),
    "e2e_rollout_collection": "eval",
    **dict.fromkeys(("VersionConfig", "version"), "general"),
}


def __getattr__(name: str) -> Any:
    if name == "GlobalConfigDictParserConfig":
        return moved("nemo_gym.cli", name, "nemo_gym.global_config", "backend.config.global_config")
    if name in _MOVED:
        return moved("nemo_gym.cli", name, f"nemo_gym.cli.{_MOVED[name]}", f"{__name__}.{_MOVED[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
