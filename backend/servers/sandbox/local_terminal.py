"""A terminal of this machine, or pipes in its place, with a command of a local sandbox in it."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import signal as signals
import struct
import termios
from collections.abc import Mapping, Sequence

from backend.servers.sandbox.keeper_link import KeeperLink, pipe_to_read, shell_code
from backend.servers.sandbox.providers.base import SandboxConfigError, SandboxError, SandboxPtyError, SandboxPtySpec
from backend.servers.sandbox.terminals import run_in_shell

_MOST_UNREAD = 1 << 20
_PIECE = 1 << 16
_END_SECONDS = 5.0


class LocalTerminal:
    """A `SandboxPtySession`. Nothing outlives its sandbox, so that a detached command is one that is run in its shell."""

    def __init__(self, keeper: KeeperLink, argv: Sequence[str], cwd: str, env: Mapping[str, str], spec: SandboxPtySpec) -> None:
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            try:
                out, err, self._typed, descriptors = _open(ours, theirs, spec)
            except OSError as error:
                raise SandboxPtyError(f"a terminal cannot be opened: {error.strerror}") from error
            request = {"argv": list(argv), "cwd": cwd, "env": dict(env), "terminal": spec.pty}
            self._number, self._ended = keeper.start(request, descriptors)
            ours.pop_all()
        self._keeper = keeper
        self._is_terminal = spec.pty
        self._out = _Incoming(out)
        self._err = _Incoming(err) if err is not None else None
        self._closed = False
        self._typing = asyncio.Lock()
        self._room = asyncio.Event()
        self._ended.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody need wait for it

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    async def read(self, *, timeout_s: float | None = None) -> bytes:
        """What has come, at least one byte; empty at the end, and when nothing came in time."""
        return await self._out.read(timeout_s)

    async def read_stderr(self, *, timeout_s: float | None = None) -> bytes:
        """The same of standard error, where there are pipes."""
        return b"" if self._err is None else await self._err.read(timeout_s)

    async def write(self, data: bytes) -> None:
        """Type; waits while the command does not read. Raises `SandboxPtyError` when it has ended."""
        async with self._typing:
            rest = memoryview(data)
            while rest:
                if self._closed:
                    raise SandboxPtyError("the terminal is closed")
                try:
                    rest = rest[os.write(self._typed, rest) :]
                except BlockingIOError:
                    await self._wait_for_room()
                except OSError as error:
                    raise SandboxPtyError(f"the command in the terminal has ended: {error.strerror}") from error

    async def resize(self, rows: int, cols: int) -> None:
        """Give the terminal another size; its foreground is told with SIGWINCH."""
        if self._is_terminal and not self._closed:
            _set_size(self._typed, rows, cols)

    async def send_signal(self, signal: str) -> None:
        """Send a signal, such as `SIGINT` or `INT`, to the foreground. Raises `SandboxConfigError` (a ValueError) for other names."""
        name = signal.upper() if signal.upper().startswith("SIG") else f"SIG{signal.upper()}"
        number = getattr(signals, name, None)
        if not isinstance(number, signals.Signals):
            raise SandboxConfigError(f"there is no signal {signal!r}")
        if self._closed or self._ended.done():
            return
        if self._is_terminal:
            with contextlib.suppress(OSError):  # a shell that has just ended has no foreground
                os.killpg(os.tcgetpgrp(self._typed), number)
        else:
            self._keeper.kill(self._number, number)

    async def wait_exit(self, *, timeout_s: float | None = None) -> int:
        """The command's exit code, 128 + the signal's number for a signal. Raises TimeoutError, and `SandboxError` when the sandbox ended."""
        async with asyncio.timeout(timeout_s):
            return shell_code(await asyncio.shield(self._ended))

    async def run_detached(self, command: str, *, poll_interval_s: float = 15.0) -> tuple[bytes, int | None]:
        """Run a command in the shell; its output and its exit code, None when the shell ended before. The interval means nothing here."""
        try:
            result = await run_in_shell(self, command)
        except SandboxPtyError:
            return b"", None
        return f"{result.stdout or ''}{result.stderr or ''}".encode(), result.return_code

    async def close(self) -> None:
        """Kill the command, wait for it, and close the terminal."""
        if self._closed:
            return
        self._closed = True
        self._room.set()
        self._keeper.kill(self._number)
        with contextlib.suppress(TimeoutError, SandboxError):
            await self.wait_exit(timeout_s=_END_SECONDS)
        self._keeper.forget(self._number)
        self._out.close()
        if self._err is not None:
            self._err.close()
        async with self._typing:
            os.close(self._typed)

    async def _wait_for_room(self) -> None:
        loop = asyncio.get_running_loop()
        self._room.clear()
        loop.add_writer(self._typed, self._room.set)
        try:
            await self._room.wait()
        finally:
            loop.remove_writer(self._typed)


class _Incoming:
    """What comes from a descriptor, kept until it is read; who writes has to wait while a lot is kept."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._kept = bytearray()
        self._news = asyncio.Event()
        self._over = False
        os.set_blocking(descriptor, False)
        self._listening = False
        self._listen()

    async def read(self, timeout_s: float | None) -> bytes:
        """All that is kept, once there is something; empty at the end, and when nothing came in time."""
        if not self._kept and not self._over:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._news.wait()
        data = bytes(self._kept)
        self._kept.clear()
        if not self._over:
            self._news.clear()
            self._listen()
        return data

    def close(self) -> None:
        """Take no more."""
        self._stop_listening()
        if not self._over:
            self._over = True
            os.close(self._descriptor)
        self._news.set()

    def _listen(self) -> None:
        if not self._listening:
            self._listening = True
            asyncio.get_running_loop().add_reader(self._descriptor, self._take)

    def _stop_listening(self) -> None:
        if self._listening:
            self._listening = False
            asyncio.get_running_loop().remove_reader(self._descriptor)

    def _take(self) -> None:
        try:
            data = os.read(self._descriptor, _PIECE)
        except BlockingIOError:
            return
        except OSError:  # a terminal says so when nobody has it open any more
            data = b""
        if not data:
            self.close()
            return
        self._kept += data
        self._news.set()
        if len(self._kept) >= _MOST_UNREAD:
            self._stop_listening()


def _open(
    ours: contextlib.ExitStack, theirs: contextlib.ExitStack, spec: SandboxPtySpec
) -> tuple[int, int | None, int, list[int]]:
    """Where to read output and standard error, where to write, and the command's stdout, stderr and stdin."""
    if not spec.pty:
        out, out_theirs = pipe_to_read(ours, theirs)
        err, err_theirs = pipe_to_read(ours, theirs)
        stdin, typed = os.pipe()
        ours.callback(os.close, typed)
        theirs.callback(os.close, stdin)
        os.set_blocking(typed, False)
        return out, err, typed, [out_theirs, err_theirs, stdin]
    screen, terminal = pty.openpty()
    ours.callback(os.close, screen)
    theirs.callback(os.close, terminal)
    _set_size(terminal, spec.rows, spec.cols)
    typed = os.dup(screen)  # reading and writing end at different times
    ours.callback(os.close, typed)
    return screen, None, typed, [terminal, terminal, terminal]


def _set_size(descriptor: int, rows: int, cols: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
