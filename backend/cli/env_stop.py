"""`gym env stop`."""

from __future__ import annotations

from typing import Any

from backend.cli.console import print_json, say
from backend.cli.parser import Parsed
from backend.errors import ExitCode, UsageError
from backend.servers.stopping import StackStopped, choose_stacks, stop_stacks


def run(parsed: Parsed) -> int:
    """Stop one stack or all of them, and wait until they are gone; 1 when no such stack runs.

    As JSON, one object per stack with the fields of `StackStopped`; `[]` when there was none.
    """
    every = "all" in parsed.values
    if every and parsed.name:
        raise UsageError("--all stops every stack; it does not go with a name")
    stacks = choose_stacks(parsed.name, every=every)
    if not stacks and not parsed.json:
        say("No stack is running.")
    ended: list[dict[str, Any]] = []
    try:
        for stopped in stop_stacks(stacks):
            ended.append(stopped.as_fields())
            if not parsed.json:
                say(_line(stopped))
    finally:  # also when another stack does not end
        if parsed.json:
            print_json(ended)
    return ExitCode.OK


def _line(stopped: StackStopped) -> str:
    how = "killed, because it did not end by itself" if stopped.killed else "stopped"
    return (
        f"{stopped.name} ({stopped.id}, process {stopped.pid}): {how} after {stopped.seconds:.1f} s: {', '.join(stopped.servers)}"
    )
