"""`gym eval run`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from backend.cli.console import warn
from backend.cli.interrupts import let_interrupts_kill
from backend.cli.launch import drop_unused, warm_parent_link
from backend.cli.parser import Parsed
from backend.cli.request_building import config_request, export_search_dirs
from backend.config.request import ConfigRequest
from backend.errors import ExitCode, UsageError
from backend.io.text import printable

if TYPE_CHECKING:
    from backend.cli.render_run import RunRenderer
    from backend.servers.warm_parent_link import WarmParentLink


def run(parsed: Parsed) -> int:
    """Evaluate; 0 when the run went through, also with single failures; 4 when it was told to stop by `gym eval control`."""
    serve = "no_serve" not in parsed.values
    if not serve and "agent_type" in parsed.values:
        raise UsageError("--agent-type changes which servers are started; it does not go with --no-serve")
    let_interrupts_kill()  # until the operation listens for them itself
    request = config_request(parsed, warn)
    export_search_dirs(request)
    if not serve:
        drop_unused()
    link = warm_parent_link() if serve else None  # imports on the other core while this process does
    try:
        return _run(parsed, request, link)
    finally:
        if link is not None:
            link.close()


def _run(parsed: Parsed, request: ConfigRequest, link: WarmParentLink | None) -> int:
    from backend.cli.render_run import RunRenderer
    from backend.cli.running import run_operation
    from backend.rollouts.evaluate import EvaluationRequest, evaluate

    events = parsed.values.get("events")
    evaluation = EvaluationRequest(
        config=request,
        observe="observe" in parsed.values,
        events_file=Path(events) if events else None,
        command=("gym", *parsed.words),
        on_output=lambda server, line: _show_troubles(renderer, server, line),
    )
    renderer = RunRenderer()
    try:
        code = run_operation(lambda: evaluate(evaluation, link), renderer.render, stop=evaluation.control.stop)
    finally:
        renderer.close()
    if renderer.output is not None:
        print(f"stopped at once: the rollouts that are finished are in {renderer.output}", file=sys.stderr)
        print(f"go on with: {renderer.resume_command}", file=sys.stderr, flush=True)
    return ExitCode.STOPPED_BY_RULE if code is ExitCode.OK and evaluation.control.stopped else code


def _show_troubles(renderer: RunRenderer, server: str, line: str) -> None:
    """Servers' lines go to their logs; what endpoints refuse, and waiting for them, is also said at once, or it would look like a hang."""
    if "_retry url=" in line or "[model_refusal url=" in line:
        renderer.close()
        print(f"({server}) {printable(line)}", file=sys.stderr, flush=True)
