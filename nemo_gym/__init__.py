"""The names that environments import.

Each documented module `nemo_gym.X` *is* one module of `backend` (the same object, imported on first use), so that patching a name in
one is patching it in the other. Importing `nemo_gym` itself loads no server code. As existing environments rely on it, importing
also puts extra roots in front of `sys.path` and the working directory and the install root at its end, and points Hugging Face's
caches below the working directory unless they are set.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from backend.io.roots import EXTRA_ROOTS_VARIABLE, INSTALL_ROOT
from backend.package_info import __package_name__, __version__  # noqa: F401 - part of __all__

ROOT_DIR = INSTALL_ROOT / "nemo_gym"
PARENT_DIR = INSTALL_ROOT
WORKING_DIR = PARENT_DIR if (PARENT_DIR / "pyproject.toml").exists() else Path.cwd()
CACHE_DIR = WORKING_DIR / "cache"
RESULTS_DIR = WORKING_DIR / "results"

_MODULES = {
    "base_resources_server": "backend.servers.resources_server",
    "base_responses_api_agent": "backend.servers.agent_server",
    "base_responses_api_model": "backend.servers.model_server",
    "config_types": "backend.config.config_types",
    "global_config": "backend.config.global_config",
    "openai_utils": "backend.servers.openai_utils",
    "package_info": "backend.package_info",
    "path_utils": "backend.io.result_paths",
    "prompt": "backend.datasets.prompt",
    "responses_converter": "backend.responses.converter",
    "reward_profile": "backend.metrics.reward_profile",
    "rollout_correlation": "backend.servers.rollout_correlation",
    "server_utils": "backend.servers.server_utils",
}

_LAZY_NAMES = {
    "AggregateMetrics": "config_types",
    "AggregateMetricsRequest": "config_types",
    "BaseMultiRewardVerifyResponse": "base_resources_server",
    "BaseResourcesServerConfig": "base_resources_server",
    "BaseResponsesAPIAgentConfig": "base_responses_api_agent",
    "BaseResponsesAPIModelConfig": "base_responses_api_model",
    "BaseRunRequest": "base_resources_server",
    "BaseRunServerInstanceConfig": "config_types",
    "BaseSeedSessionRequest": "base_resources_server",
    "BaseSeedSessionResponse": "base_resources_server",
    "BaseServerConfig": "config_types",
    "BaseVerifyRequest": "base_resources_server",
    "BaseVerifyResponse": "base_resources_server",
    "Domain": "config_types",
    "ModelServerRef": "config_types",
    "NeMoGymAsyncOpenAI": "openai_utils",
    "NeMoGymChatCompletion": "openai_utils",
    "NeMoGymChatCompletionCreateParamsNonStreaming": "openai_utils",
    "NeMoGymResponse": "openai_utils",
    "NeMoGymResponseCreateParamsNonStreaming": "openai_utils",
    "ReverifyMode": "base_resources_server",
    "SESSION_ID_KEY": "server_utils",
    "ServerClient": "server_utils",
    "SimpleResourcesServer": "base_resources_server",
    "SimpleResponsesAPIAgent": "base_responses_api_agent",
    "SimpleResponsesAPIModel": "base_responses_api_model",
    "get_response_json": "server_utils",
    "raise_for_status": "server_utils",
}

__all__ = sorted(
    [*_LAZY_NAMES, "CACHE_DIR", "PARENT_DIR", "RESULTS_DIR", "ROOT_DIR", "WORKING_DIR", "__package_name__", "__version__"]
)


class _AliasFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers `import nemo_gym.X` with the backend module that X stands for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package != __name__ or name not in _MODULES:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(_MODULES[spec.name.rpartition(".")[2]])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just given the module the alias' spec; its own one belongs there.
        alias = module.__spec__
        if alias is not None and alias.loader_state is not None:
            module.__spec__ = alias.loader_state


def __getattr__(name: str) -> Any:
    if name in _LAZY_NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_LAZY_NAMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _arrange_path() -> None:
    extra = [root for root in os.environ.get(EXTRA_ROOTS_VARIABLE, "").split(os.pathsep) if root]
    last = [os.getcwd(), str(PARENT_DIR)]
    between = [entry for entry in sys.path if entry not in extra and entry not in last]
    sys.path[:] = list(dict.fromkeys([*extra, *between, *last]))


def _set_environment() -> None:
    os.environ.setdefault("HF_HOME", str(CACHE_DIR / "huggingface"))
    os.environ.setdefault("HF_DATASETS_CACHE", str(CACHE_DIR / "huggingface"))
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


if not any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
    sys.meta_path.insert(0, _AliasFinder())
_arrange_path()
_set_environment()
