"""`gym env stop`."""

from __future__ import annotations

from backend.cli.console import say
from backend.cli.parser import Parsed
from backend.errors import ExitCode, UsageError
from backend.servers.stopping import choose_stacks, stop_stacks


def run(parsed: Parsed) -> int:
    """Stop one stack or all of them, and wait until they are gone; 1 when no such stack runs."""
    every = "all" in parsed.values
    if every and parsed.name:
        raise UsageError("--all stops every stack; it does not go with a name")
    stacks = choose_stacks(parsed.name, every=every)
    if not stacks:
        say("No stack is running.")
    for stopped in stop_stacks(stacks):
        how = "killed, because it did not end by itself" if stopped.killed else "stopped"
        say(
            f"{stopped.name} ({stopped.id}, process {stopped.pid}): {how} after {stopped.seconds:.1f} s: {', '.join(stopped.servers)}"
        )
    return ExitCode.OK
