"""`gym env start`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backend.cli.console import say, warn
from backend.cli.interrupts import let_interrupts_kill
from backend.cli.launch import warm_parent_link
from backend.cli.parser import Parsed
from backend.cli.request_building import config_request, export_search_dirs
from backend.config.request import ConfigRequest
from backend.errors import ExitCode
from backend.events import Event
from backend.io.event_log import EventLog

if TYPE_CHECKING:
    from backend.servers.warm_parent_link import WarmParentLink


def run(parsed: Parsed) -> int:
    """Start the servers and watch them until a signal; 0 after Ctrl-C."""
    let_interrupts_kill()  # until the operation listens for them itself
    request = config_request(parsed, warn)
    export_search_dirs(request)
    link = warm_parent_link()  # imports on the other core while this process does
    try:
        return _run(parsed, request, link)
    finally:
        link.close()


def _run(parsed: Parsed, request: ConfigRequest, link: WarmParentLink) -> int:
    from backend.cli.running import run_operation
    from backend.servers.start import StartRequest, start_environment

    log = EventLog(Path(parsed.values["events"])) if "events" in parsed.values else None

    from backend.cli.render_servers import render_server_event
    from backend.servers.server_events import StackStarting

    started = False

    def render(event: Event) -> None:
        nonlocal started
        started = started or isinstance(event, StackStarting)
        if log is not None:
            log.append(event)
        render_server_event(event)

    def show_output(server: str, line: str) -> None:
        say(f"({server}) {line}")

    start = StartRequest(request, on_output=show_output, command=("gym", *parsed.words))
    try:
        return run_operation(lambda: start_environment(start, link), render, interrupted_code=ExitCode.OK)
    finally:
        if log is not None:
            log.close()
        if started:
            say("NeMo Gym finished!")
