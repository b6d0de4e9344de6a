"""Interactive terminals of a sandbox, and commands that are run by typing them into one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from uuid import uuid4

from backend.servers.sandbox.providers.base import (
    RUNTIME_RETURN_CODE,
    TIMEOUT,
    SandboxConfigError,
    SandboxExecResult,
    SandboxPtyError,
    SandboxPtySession,
    SandboxPtySpec,
    SandboxPtyUnsupportedError,
)

if TYPE_CHECKING:
    from backend.servers.sandbox.async_api import AsyncSandbox

DEFAULT_TIMEOUT_SECONDS = 180.0
_LATE_STDERR_SECONDS = 0.05
_LATE_OUTPUT_SECONDS = 0.2


class SandboxPty:
    """Interactive terminals, where the provider has them."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._sandbox = sandbox

    async def create(
        self,
        command: str | None = None,
        *,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        rows: int = 24,
        cols: int = 80,
        user: str | int | None = None,
        pty: bool = True,
    ) -> SandboxPtySession:
        """A new terminal; see `SandboxPtySpec`. Raises `SandboxPtyError`, also a NotImplementedError where the provider has none."""
        handle = self._sandbox._running()
        make = getattr(self._sandbox._provider, "create_pty", None)
        if make is None:
            raise self._unsupported("have no interactive terminals", "use exec()")
        spec = SandboxPtySpec(command, self._sandbox._folder_for(cwd), env, rows, cols, user, pty)
        session: SandboxPtySession = await make(handle, spec)
        return session

    async def attach(self, session_id: str, *, takeover: bool = True, since: int | None = None) -> SandboxPtySession:
        """A terminal that was made before; see `SupportsSandboxPtyAttach`. Raises as `create` does."""
        handle = self._sandbox._running()
        take_up = getattr(self._sandbox._provider, "attach_pty", None)
        if take_up is None:
            raise self._unsupported("have no terminals that can be taken up again", "keep the session that create() gave")
        session: SandboxPtySession = await take_up(handle, session_id, takeover=takeover, since=since)
        return session

    async def exec(
        self,
        command: str,
        *,
        session: SandboxPtySession | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_s: float | None = DEFAULT_TIMEOUT_SECONDS,
        user: str | int | None = None,
        rows: int = 24,
        cols: int = 80,
        pty: bool = True,
        detach: bool = False,
        poll_interval_s: float = 15.0,
    ) -> SandboxExecResult:
        """Run a command in the shell of `session`, or in a terminal of its own, which ends with it.

        With `detach` it is run by the session's `run_detached`. A command that is not done within `timeout_s` gives the error type `timeout`;
        in a session of yours it then still runs, and the session is of no more use. Raises `SandboxPtyError`, also when the shell ends before the
        command, and `SandboxConfigError` (a ValueError) for `cwd`, `env` or `user` with a session, which has its own.
        """
        if session is not None and (cwd, env, user) != (None, None, None):
            raise SandboxConfigError("cwd, env and user of a terminal are given when it is created")
        own = session is None
        used = session or await self.create(
            None if detach else command, cwd=cwd, env=env, rows=rows, cols=cols, user=user, pty=pty
        )
        late = f"the command was not done within {timeout_s:g} s" if timeout_s is not None else ""
        try:
            if own and not detach:
                return await read_to_its_end(used, timeout_s, late)
            async with asyncio.timeout(timeout_s):
                if detach:
                    output, code = await used.run_detached(command, poll_interval_s=poll_interval_s)
                    return SandboxExecResult(_text(output), None, RUNTIME_RETURN_CODE if code is None else code)
                return await run_in_shell(used, command)
        except TimeoutError:
            return SandboxExecResult(
                None, late + ("" if own else " and still runs in the terminal"), RUNTIME_RETURN_CODE, TIMEOUT
            )
        finally:
            if own:
                await used.close()

    def _unsupported(self, meaning: str, hint: str) -> SandboxPtyUnsupportedError:
        name = getattr(self._sandbox._provider, "name", "?")
        return SandboxPtyUnsupportedError(f"sandboxes of the provider `{name}` {meaning}", hint=hint)


async def read_to_its_end(session: SandboxPtySession, timeout_s: float | None, late: str) -> SandboxExecResult:
    """All that the command of a terminal says, and its exit code; after `timeout_s` what it has said by then, and `late`.

    What it has left in the background may hold the terminal open, and is not waited for.
    """
    out, err = bytearray(), bytearray()
    readers = {asyncio.create_task(_keep(out, session.read)), asyncio.create_task(_keep(err, session.read_stderr))}
    try:
        code = await session.wait_exit(timeout_s=timeout_s)
        done, _ = await asyncio.wait(readers, timeout=_LATE_OUTPUT_SECONDS)
        for reader in done:
            reader.result()
    except TimeoutError:
        told = "\n".join(filter(None, [_text(err).rstrip("\n"), late]))
        return SandboxExecResult(_text(out), told, RUNTIME_RETURN_CODE, TIMEOUT)
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    return SandboxExecResult(_text(out), _text(err) or None, code)


async def run_in_shell(session: SandboxPtySession, command: str) -> SandboxExecResult:
    """Type a command into the shell of a terminal, and give what it says and its exit code. Raises `SandboxPtyError` when the shell ends."""
    mark = uuid4().hex
    # The shell puts the marks together from two words: what the terminal echoes of this never looks like one.
    begin, end = (f"printf '%s%s:%s\\n' '{word}' '{mark}'" for word in ("begin", "end"))
    # A long command is still being echoed when its beginning runs, hence without an echo; pipes have none to turn off.
    await session.write(f"stty -echo 2>/dev/null; {begin} 0\n".encode())
    _, _, rest = await _until(session, bytearray(), rf"begin{mark}:(0)\r?\n".encode())
    await session.write(f'{{ {command}\n}} </dev/null\n{end} "$?"; stty echo 2>/dev/null\n'.encode())
    said, code, _ = await _until(session, rest, rf"end{mark}:(\d+)\r?\n".encode())
    err = bytearray()
    while piece := await session.read_stderr(timeout_s=_LATE_STDERR_SECONDS):
        err += piece
    return SandboxExecResult(_text(said), _text(err) or None, code)


async def _until(session: SandboxPtySession, said: bytearray, mark: bytes) -> tuple[bytearray, int, bytearray]:
    """What is said before a mark (`said` of it already), the number in the mark, and what is already known to come after it."""
    pattern = re.compile(mark)
    searched = 0
    while (found := pattern.search(said, searched)) is None:
        searched = max(0, len(said) - len(mark))
        piece = await session.read()
        if not piece:
            raise SandboxPtyError("the terminal's shell ended before the command did")
        said += piece
    return said[: found.start()], int(found[1]), said[found.end() :]


async def _keep(said: bytearray, read: Callable[[], Awaitable[bytes]]) -> None:
    while piece := await read():
        said += piece


def _text(data: bytes | bytearray) -> str:
    """What a terminal shows, with the line ends that the command gave."""
    return bytes(data).replace(b"\r\n", b"\n").decode("utf-8", "replace")
