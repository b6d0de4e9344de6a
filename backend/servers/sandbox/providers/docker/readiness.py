"""Whether a new container takes commands yet, and which shell they are given to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from backend.servers.sandbox.providers.base import SandboxExecResult
from backend.servers.sandbox.providers.docker.settings import DockerProbeConfig

BASIC_SHELL = "sh"
BETTER_SHELL = "bash"
_SHORTEST_PAUSE_SECONDS = 0.2
_MOST_OF_THE_OUTPUT = 200

Run = Callable[[str, float], Awaitable[SandboxExecResult]]
"""Runs a command in the container, for so many seconds at most."""


async def failed_probe(run: Run, probe: DockerProbeConfig) -> SandboxExecResult | None:
    """Ask until the container is ready: None. When it does not become so in time, what the last attempt left."""
    if probe.command is None:
        return None
    deadline = None if probe.deadline_s is None else time.monotonic() + probe.deadline_s
    in_a_row = 0
    told: SandboxExecResult | None = None
    while True:
        left = probe.timeout_s if deadline is None else max(0.001, min(probe.timeout_s, deadline - time.monotonic()))
        result = await run(probe.command, left)
        in_a_row = in_a_row + 1 if _is_ready(result, probe) else 0
        if in_a_row >= probe.stable_count:
            return None
        # The attempt that the deadline cuts off says nothing; the one before it may have said why.
        told = result if told is None or result.error_type is None else told
        pause = probe.stable_delay_s if in_a_row else max(probe.stable_delay_s, _SHORTEST_PAUSE_SECONDS)
        if deadline is None:
            if not in_a_row:
                return told
        elif time.monotonic() + pause >= deadline:
            return told
        await asyncio.sleep(pause)


def what_it_left(failed: SandboxExecResult) -> list[str]:
    """Lines that say how an attempt failed."""
    if failed.error_type is not None:
        how = f"it ended with {failed.error_type}"
    else:
        how = f"exit code {failed.return_code}, printed {(failed.stdout or '')[:_MOST_OF_THE_OUTPUT]!r}"
    return [how, *(failed.stderr or "").splitlines()[-3:]]


async def best_shell(run: Run, timeout_s: float) -> str:
    """bash where the container has it, for commands such as `source`; else sh."""
    found = await run(f"command -v {BETTER_SHELL}", timeout_s)
    return BETTER_SHELL if found.return_code == 0 and found.error_type is None else BASIC_SHELL


def _is_ready(result: SandboxExecResult, probe: DockerProbeConfig) -> bool:
    if result.return_code != 0 or result.error_type is not None:
        return False
    return not probe.expected_stdout or probe.expected_stdout in (result.stdout or "")
