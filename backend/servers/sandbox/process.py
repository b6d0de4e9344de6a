"""One program of this machine, run to its end: for runtimes that are reached through a command line."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from signal import SIGKILL

from backend.servers.sandbox.output import LimitedOutput

_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program left: its exit code, or None when its time was up, and what was kept of its output."""

    code: int | None
    stdout: str
    stderr: str


async def run_program(
    argv: Sequence[str], *, env: Mapping[str, str] | None = None, timeout_s: float | None = None, output_limit: int = 1_000_000
) -> Finished:
    """Run `argv` without a shell and with nothing to read; it is killed after `timeout_s` and when the caller is cancelled.

    Raises OSError when there is no such program.
    """
    process = await asyncio.create_subprocess_exec(
        *argv, env=env, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    out, err = LimitedOutput(output_limit), LimitedOutput(output_limit)
    code: int | None = None
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await asyncio.gather(_keep(process.stdout, out), _keep(process.stderr, err))
                code = await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(SIGKILL)
            await process.wait()
    return Finished(code, out.text(), err.text())


async def _keep(stream: asyncio.StreamReader, into: LimitedOutput) -> None:
    while data := await stream.read(_PIECE):
        into.add(data)
