"""`gym env prefetch`."""

from __future__ import annotations

from dataclasses import replace

from backend.cli.console import print_error, say, warn
from backend.cli.parser import Parsed
from backend.cli.render_servers import render_server_event
from backend.cli.request_building import config_request, export_search_dirs
from backend.cli.running import run_operation
from backend.errors import GymError
from backend.events import Event
from backend.servers.environments.environment import EnvironmentOutput, EnvironmentReady
from backend.servers.environments.installer import installer_code
from backend.servers.environments.prefetch import PrefetchEnded, PrefetchStarted, prefetch_environments


def run(parsed: Parsed) -> int:
    """Prepare the environments one by one; the code of the installer at the first that fails."""
    request = replace(config_request(parsed, warn), stand_in_model=True)
    export_search_dirs(request)
    try:
        return run_operation(lambda: prefetch_environments(request), _render)
    except GymError as error:
        code = installer_code(error)
        if code is None:
            raise
        print_error(error, as_json=parsed.json)
        return code


def _render(event: Event) -> None:
    if isinstance(event, PrefetchStarted):
        say(f"[{event.number}/{event.total}] {event.folder} ({', '.join(event.servers)})")
    elif isinstance(event, EnvironmentOutput):
        say(f"({event.server}) {event.line}")
    elif isinstance(event, PrefetchEnded):
        say(f"Prefetch complete: environments of {event.folders} server folder{'' if event.folders == 1 else 's'} ready.")
    elif isinstance(event, EnvironmentReady) and event.origin != "built":
        say(f"there already: {event.folder}" if event.folder else "nothing to build: everything is installed here")
    else:
        render_server_event(event)
