"""Events of servers as lines. Several of these lines are read by programs; their form is fixed."""

from __future__ import annotations

import pprint
from typing import Any

from backend.cli.console import say, warn
from backend.events import Event, Notice
from backend.servers.environments.environment import EnvironmentPreparing, EnvironmentReady
from backend.servers.server_events import (
    ModelEndpointState,
    StackProgress,
    StackReady,
    StackStarting,
)

_RULE = "#" * 100
_SHOWN_KEYS = ("config_path", "dir_path", "entrypoint", "host", "name", "pid", "port", "process_name", "server_type", "url")


def render_server_event(event: Event, *, with_instances: bool = True) -> None:
    """Print one event of a stack; `with_instances` shows where each server runs once all are ready."""
    if isinstance(event, Notice):
        if event.level == "warning":
            warn(event.text)
        else:
            say(event.text)
    elif isinstance(event, StackStarting):
        say("Waiting for head server to spin up")
        say("Waiting for servers to spin up")
    elif isinstance(event, StackProgress):
        say("Checking for HTTP server statuses.")
        say(f"{event.ready} / {event.total} servers ready. Waiting for servers to spin up: {list(event.waiting)}")
        for line in event.details:
            say(f"  {line}")
    elif isinstance(event, StackReady):
        count = len(event.instances)
        say(f"All {count} / {count} servers ready! Polling every 60s")
        if with_instances:
            _render_instances(event.instances)
    elif isinstance(event, ModelEndpointState):
        _render_endpoint(event)
    elif isinstance(event, EnvironmentPreparing):
        say(f"Building an environment for {', '.join(event.servers)}: {', '.join(event.missing)} not installed here")
    elif isinstance(event, EnvironmentReady) and event.origin == "built":
        say(f"The environment for {', '.join(event.servers)} is built ({event.seconds:.1f} s): {event.folder}")


def _render_instances(instances: tuple[dict[str, Any], ...]) -> None:
    say(_RULE)
    say("#")
    say("# Server Instances")
    say("#")
    say(_RULE)
    say()
    for number, instance in enumerate(instances, 1):
        say(f"[{number}] {instance['process_name']} ({instance['server_type']}/{instance['name']})")
        say(pprint.pformat({key: instance[key] for key in _SHOWN_KEYS}, sort_dicts=False))
    say(_RULE)


def _render_endpoint(event: ModelEndpointState) -> None:
    if event.state == "answering":
        say(f"Model endpoint {event.url} (from {event.key}) answers.")
    elif event.state == "unreachable":
        warn(f"model endpoint {event.url} (from {event.key}) does not answer yet: {event.reason}; waiting for it")
    else:
        warn(f"model endpoint {event.url} (from {event.key}): unknown host ({event.reason}); not waiting for it")
