"""The server's side of a keeper: starts commands through it, and waits for what becomes of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.io.json_codec import dumps, loads
from backend.servers.sandbox.output import LimitedOutput, collect
from backend.servers.sandbox.providers.base import SandboxError

_SCRIPT = Path(__file__).with_name("keeper.py")
_PACKET = 1 << 12
_LATE_OUTPUT_SECONDS = 0.2
"""How long the output of a command that has ended is waited for: something it left in the background may hold the pipe open."""
_END_SECONDS = 10.0
_NEEDED_BY_PYTHON = ("LD_LIBRARY_PATH", "PYTHONHOME")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code (128 + the signal's number for a signal), or None when its time was up."""

    code: int | None
    stdout: str
    stderr: str


class KeeperLink:
    """One keeper process, and the commands that run below it. `root` is the folder that ends with it. Raises OSError without one."""

    def __init__(self, root: Path) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, contextlib.ExitStack() as undoing:
            undoing.callback(self._control.close)
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SCRIPT), str(theirs.fileno()), str(root)],
                pass_fds=[theirs.fileno()],
                env={name: os.environ[name] for name in _NEEDED_BY_PYTHON if name in os.environ},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            undoing.pop_all()
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._count = 0
        self._open = True
        asyncio.get_running_loop().add_reader(self._control, self._hear)

    @property
    def alive(self) -> bool:
        """Whether commands can be run."""
        return self._open

    async def run(
        self, argv: Sequence[str], *, cwd: str, env: dict[str, str], timeout_s: float | None, output_limit: int
    ) -> Ended:
        """Run a command to its end, or kill its process group after `timeout_s` and when cancelled.

        Raises `SandboxError` when it cannot be started, and when the keeper is gone.
        """
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            try:
                (out, out_theirs), (err, err_theirs) = pipe_to_read(ours, theirs), pipe_to_read(ours, theirs)
            except OSError as error:
                raise _cannot_start(error) from error
            number, ended = self.start({"argv": list(argv), "cwd": cwd, "env": env}, [out_theirs, err_theirs])
            ours.pop_all()
        outputs = LimitedOutput(output_limit), LimitedOutput(output_limit)
        readers = [asyncio.create_task(collect(pipe, kept)) for pipe, kept in zip((out, err), outputs, strict=True)]
        code: int | None = None
        try:
            done, _ = await asyncio.wait({ended}, timeout=timeout_s)
            if done:
                code = ended.result()
            else:
                self.kill(number)
                await asyncio.wait({ended}, timeout=_END_SECONDS)
        except asyncio.CancelledError:
            self.kill(number)
            raise
        finally:
            self.forget(number)
            await _give_up_after(readers, _LATE_OUTPUT_SECONDS)
        return Ended(None if code is None else shell_code(code), outputs[0].text(), outputs[1].text())

    def start(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> tuple[int, asyncio.Future[int]]:
        """Start a command; gives its number and what becomes its exit code, negative for a signal.

        `request` is `{"argv", "cwd", "env"}`, and `{"terminal": True}` where stdin is to be its terminal; `descriptors` are its stdout, stderr and, if
        there is one, stdin, and stay the caller's. Raises `SandboxError` when the sandbox has ended; the future does when the command does not start.
        """
        if not self._open:
            raise SandboxError("the sandbox has ended")
        self._count += 1
        try:
            file = _file_with(dumps(request))
        except OSError as error:
            raise _cannot_start(error) from error
        try:
            socket.send_fds(self._control, [dumps({"start": self._count})], [file, *descriptors])
        except OSError as error:
            self._lose()
            raise SandboxError(f"the sandbox does not take commands any more: {error.strerror}") from error
        finally:
            os.close(file)
        ended = self._waiting[self._count] = asyncio.get_running_loop().create_future()
        return self._count, ended

    def kill(self, number: int, by: int = signal.SIGKILL) -> None:
        """Send a signal to a command's process group; nothing when it has ended."""
        self._send({"kill": number, "signal": int(by)})

    def forget(self, number: int) -> None:
        """Take no more interest in a command's end."""
        self._waiting.pop(number, None)

    async def close(self) -> None:
        """End every process of the sandbox and the keeper, which deletes the folder."""
        self._lose()
        try:
            await asyncio.to_thread(self._process.wait, _END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)

    def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self._control.send(dumps(message))

    def _hear(self) -> None:
        try:
            data = self._control.recv(_PACKET, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        message = loads(data)
        future = self._waiting.get(message.get("ended", message.get("failed")))
        if future is None or future.done():
            return
        if "failed" in message:
            future.set_exception(SandboxError(f"the command cannot be started: {message['error']}"))
        else:
            future.set_result(message["code"])

    def _lose(self) -> None:
        if self._open:
            self._open = False
            asyncio.get_running_loop().remove_reader(self._control)
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)  # a process forked meanwhile may hold the socket open
            self._control.close()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(SandboxError("the sandbox ended while the command ran"))


def pipe_to_read(ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[int, int]:
    """A pipe: the end that is read here, and the one for the command. The stacks close them."""
    read, write = os.pipe()
    ours.callback(os.close, read)
    theirs.callback(os.close, write)
    return read, write


def shell_code(code: int) -> int:
    """An exit code as shells say it: 128 + the signal's number for a signal."""
    return 128 - code if code < 0 else code


def _file_with(data: bytes) -> int:
    """The descriptor of a file in memory that holds `data`, at its beginning."""
    file = os.memfd_create("sandbox-request")
    try:
        os.write(file, data)
        os.lseek(file, 0, os.SEEK_SET)
    except OSError:
        os.close(file)
        raise
    return file


def _cannot_start(error: OSError) -> SandboxError:
    return SandboxError(f"the command cannot be started: {error.strerror}")


async def _give_up_after(tasks: list[asyncio.Task[None]], seconds: float) -> None:
    _, late = await asyncio.wait(tasks, timeout=seconds)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
