"""The component that `--resources-server` or the key `entrypoint` names, and the settings of environments that go with it."""

from __future__ import annotations

from pathlib import Path

from backend.cli.parser import Parsed
from backend.cli.request_building import export_search_dirs
from backend.config.request import ConfigRequest
from backend.config.resolution import ResolvedConfig, resolve_config
from backend.config.schema import RESOURCES, SERVER_TYPES
from backend.errors import UsageError, did_you_mean
from backend.servers.environments.environment import EnvironmentRequest
from backend.servers.folders import component_folder


def settings_config(parsed: Parsed) -> ResolvedConfig:
    """The configuration that env.yaml and overrides make, for a command that selects no configuration files."""
    folders = tuple(str(Path(folder).absolute()) for folder in parsed.given("search_dir", ()))
    request = ConfigRequest(overrides=parsed.overrides, search_dirs=folders)
    export_search_dirs(request)
    return resolve_config(request)


def chosen_component(parsed: Parsed, config: ResolvedConfig) -> EnvironmentRequest | None:
    """The environment of the component that was named; None when none was. Raises `GymError` when it does not exist."""
    name = parsed.given("resources_server")
    given = f"{RESOURCES}/{name}" if name is not None else config.get("entrypoint")
    if given is None:
        return None
    kind, _, implementation = str(given).strip("/").partition("/")
    if kind not in SERVER_TYPES or not implementation or "/" in implementation or implementation in (".", ".."):
        raise UsageError(
            f"invalid configuration: entrypoint (`{given}` is not a folder in {', '.join(SERVER_TYPES)})",
            hint=did_you_mean(kind, SERVER_TYPES) or "for example +entrypoint=responses_api_agents/simple_agent",
        )
    folder = component_folder(kind, implementation, config.roots)
    return EnvironmentRequest((f"{kind}/{implementation}",), kind, implementation, folder)
