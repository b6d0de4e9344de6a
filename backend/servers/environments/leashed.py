"""Starts programs that never outlive this command, and what they started neither (see `leash`)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from backend.servers.environments import leash

_LONGEST_LINE = 1 << 20


@asynccontextmanager
async def leashed(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], keep_open: Sequence[int] = (), **streams: Any
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `command`, its program by absolute path, without a shell; leaving the block ends it with everything it started.

    `keep_open`: descriptors that it inherits. `streams`: `stdout` and `stderr` as for `asyncio.create_subprocess_exec`. The process
    passes SIGINT and SIGTERM on to the program, and has its exit code.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", leash.__file__),
        *command,
        cwd=cwd,
        env=dict(env),
        stdin=asyncio.subprocess.PIPE,
        limit=_LONGEST_LINE,
        pass_fds=keep_open,
        start_new_session=True,
        **streams,
    )
    assert process.stdin is not None
    try:
        yield process
    finally:
        process.stdin.close()
        await process.wait()
