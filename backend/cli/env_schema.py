"""`gym env schema`: the JSON Schema of a component's task data."""

from __future__ import annotations

import json

from backend.cli.console import say, warn
from backend.cli.parser import Parsed
from backend.cli.request_building import roots_of
from backend.config.nodes import child
from backend.config.overrides import build_layer
from backend.config.schema import RESOURCES
from backend.config.task_schema import task_schema
from backend.errors import ExitCode, UsageError


def run(parsed: Parsed) -> int:
    """Print the schema; 1 where the component has none."""
    say(json.dumps(task_schema(_entrypoint(parsed), roots_of(parsed, warn)), indent=2))
    return ExitCode.OK


def _entrypoint(parsed: Parsed) -> str:
    name = parsed.given("resources_server")
    if name is not None:
        return f"{RESOURCES}/{name}"
    given = child(build_layer((), parsed.overrides).root, "entrypoint")
    if given is None or not isinstance(given.value, str):
        raise UsageError(
            "missing required configuration: entrypoint",
            hint="name the server: --resources-server NAME, or +entrypoint=responses_api_agents/NAME",
        )
    return given.value
