"""The names that environments import.

Each documented module `nemo_gym.X` *is* one module of `backend` (the same object, imported on first use), so that patching a name in
one is patching it in the other; where X stands for a package, `nemo_gym.X.Y` is that package's module Y. Importing `nemo_gym`
itself loads no server code. As existing environments rely on it, importing also puts extra roots in front of `sys.path` and the
working directory and the install root at its end, and points Hugging Face's caches below the working directory unless they are set.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from backend.io.roots import EXTRA_ROOTS_VARIABLE, INSTALL_ROOT, resolve_path, search_roots
from backend.package_info import __package_name__, __version__  # noqa: F401 - part of __all__

_COMPONENT_KINDS = ("resources_servers", "responses_api_agents", "responses_api_models")


def _parent_dir(working_dir: Path) -> Path:
    """The root below which components look for files by `PARENT_DIR / "<kind>/<name>/…"`.

    Where the work goes on inside a component's folder, that is the root of that component, which need not be ours.
    """
    inside = (folder for folder in (working_dir, *working_dir.parents) if folder.parent.name in _COMPONENT_KINDS)
    component = next(inside, None)
    return component.parent.parent if component else INSTALL_ROOT


ROOT_DIR = INSTALL_ROOT / "nemo_gym"
PARENT_DIR = _parent_dir(Path.cwd())
WORKING_DIR = INSTALL_ROOT if (INSTALL_ROOT / "pyproject.toml").exists() else Path.cwd()
CACHE_DIR = WORKING_DIR / "cache"
RESULTS_DIR = WORKING_DIR / "results"

_MODULES = {
    "base_resources_server": "backend.servers.resources_server",
    "base_responses_api_agent": "backend.servers.agent_server",
    "base_responses_api_model": "backend.servers.model_server",
    "benchmarks": "backend.datasets.benchmarks",
    "cli": "backend.cli.library",
    "cli_setup_command": "backend.cli.library.cli_setup_command",
    "config_types": "backend.config.config_types",
    "decorators": "backend.servers.decorators",
    "global_config": "backend.config.global_config",
    "judge": "backend.servers.judge",
    "mcp_auto_exposure": "backend.servers.mcp_auto_exposure",
    "openai_utils": "backend.servers.openai_utils",
    "package_info": "backend.package_info",
    "path_utils": "backend.io.result_paths",
    "profiling": "backend.servers.profiling",
    "prompt": "backend.datasets.prompt",
    "responses_converter": "backend.responses.converter",
    "responses_streaming": "backend.responses.streaming",
    "reward_profile": "backend.metrics.reward_profile",
    "rollout_collection": "backend.rollouts.rollout_collection",
    "rollout_correlation": "backend.servers.rollout_correlation",
    "rollout_observability": "backend.servers.rollout_observability",
    "sandbox": "backend.servers.sandbox",
    "server_metadata": "backend.catalog.server_metadata",
    "server_status": "backend.servers.server_status",
    "server_utils": "backend.servers.server_utils",
    "skills": "backend.datasets.skills",
    "token_id_capture": "backend.servers.token_id_capture",
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


class _AliasFinder:
    """Finder and loader in one; answers `import nemo_gym.X` with the backend module that X stands for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if _target(fullname) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)  # type: ignore[arg-type] # the classes to inherit from take 10 ms to import

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        target = _target(spec.name)
        assert target is not None, "find_spec gives specs for known names only"
        module = importlib.import_module(target)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just given the module the alias' spec; its own one belongs there.
        alias = module.__spec__
        if alias is not None and alias.loader_state is not None:
            module.__spec__ = alias.loader_state


def _target(fullname: str) -> str | None:
    """The backend module that `nemo_gym.X[.Y…]` stands for; None when there is none of that name."""
    package, _, rest = fullname.partition(".")
    if package != __name__:
        return None
    name = rest
    while name not in _MODULES:
        name, _, _ = name.rpartition(".")
        if not name:
            return None
    target = _MODULES[name] + rest.removeprefix(name)
    # Only modules that are there: asking for any other one has to end in the documented error for `fullname`, not for its target.
    return target if name == rest or importlib.util.find_spec(target) is not None else None


def __getattr__(name: str) -> Any:
    if name in _LAZY_NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_LAZY_NAMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def component_search_roots() -> list[Path]:
    """The folders in which components, configurations and data are looked for, in order."""
    return list(search_roots())


def _resolve_under_cwd_or_install(path: str | Path) -> Path:
    """Where a relative path of a component or a data file is read from."""
    return resolve_path(path, search_roots())


def arrange_path() -> None:
    """Put the roots onto `sys.path`; again, when the environment names others since."""
    extra = [root for root in os.environ.get(EXTRA_ROOTS_VARIABLE, "").split(os.pathsep) if root]
    last = [os.getcwd(), str(INSTALL_ROOT)]
    between = [entry for entry in sys.path if entry not in extra and entry not in last]
    sys.path[:] = list(dict.fromkeys([*extra, *between, *last]))


def _set_environment() -> None:
    os.environ.setdefault("HF_HOME", str(CACHE_DIR / "huggingface"))
    os.environ.setdefault("HF_DATASETS_CACHE", str(CACHE_DIR / "huggingface"))
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


if not any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
    sys.meta_path.insert(0, _AliasFinder())
arrange_path()
_set_environment()
