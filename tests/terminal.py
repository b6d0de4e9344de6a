"""For tests in a real terminal: a process on a pseudo terminal of its own, and what it did to that terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
GYM = (sys.executable, "-m", "backend.cli")
MODES = re.compile(rb"\x1b\[\?([\d;]+)([hl])")
_AT_FIRST = {"7": True, "25": True}
"""Modes that are on in a fresh terminal: wrapping and the cursor."""


@dataclass
class Terminal:
    """The terminal's side of a running process."""

    process: subprocess.Popen[bytes]
    master: int
    before: list[Any]
    """Line settings at first."""
    output: bytes = b""
    _seen: int = field(default=0)

    def send(self, keys: str) -> None:
        """Type."""
        os.write(self.master, keys.encode())

    def read(self, seconds: float = 0.05) -> None:
        """Take what the process writes within `seconds`, and in any case what is there already."""
        end = time.monotonic() + seconds
        left = seconds
        while left > 0:
            if not select.select([self.master], [], [], left)[0]:
                return
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            if not data:
                return
            self.output += data
            left = end - time.monotonic()

    def wait_for(self, text: str, seconds: float = 20) -> None:
        """Wait until `text` was written since the last time; styles between its letters do not count."""
        end = time.monotonic() + seconds
        while text not in self.text(self._seen):
            if time.monotonic() > end or (self.process.poll() is not None and not self._rest()):
                raise AssertionError(f"{text!r} did not come; there was:\n{self.text(self._seen)[-3000:]}")
            self.read()
        self._seen = len(self.output)

    def _rest(self) -> bool:
        size = len(self.output)
        self.read(0.1)
        return len(self.output) > size

    def text(self, start: int = 0) -> str:
        """What was written, without control sequences."""
        data = re.sub(
            rb"\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[PX^_].*?\x1b\\|\x1b\[[0-9;:?<>=]*[ -/]*[@-~]|\x1b.", b"", self.output[start:]
        )
        return data.decode("utf-8", "replace")

    def end(self, seconds: float = 10) -> int:
        """Wait for the end of the process; its exit code."""
        limit = time.monotonic() + seconds
        while self.process.poll() is None:
            self.read(0.02)
            if time.monotonic() > limit:
                raise AssertionError(f"still running after {seconds} s; there was:\n{self.text()[-2000:]}")
        while self._rest():
            pass
        return self.process.returncode

    def modes(self) -> dict[str, bool]:
        """Modes that are not as in a fresh terminal."""
        now: dict[str, bool] = {}
        for numbers, letter in MODES.findall(self.output):
            for number in numbers.decode().split(";"):
                now[number] = letter == b"h"
        return {number: on for number, on in now.items() if on != _AT_FIRST.get(number, False)}

    def line_settings_changed(self) -> bool:
        """Whether echo, signals and the like are not as before."""
        return termios.tcgetattr(self.master)[:4] != self.before[:4]

    def keys_are_plain(self) -> bool:
        """Whether each request for the extended keyboard was taken back."""
        return self.output.count(b"\x1b[>") - self.output.count(b"\x1b[>c") <= self.output.count(b"\x1b[<u")


@contextmanager
def terminal(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *,
    size: tuple[int, int] = (36, 120),
) -> Iterator[Terminal]:
    """Run a command as the leader of a session with a terminal of `size` (rows, columns)."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    before = termios.tcgetattr(slave)
    surroundings = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **(environment or {})}
    for name in ("TMUX", "STY", "LINES", "COLUMNS", "NO_COLOR"):
        if environment is None or name not in environment:
            surroundings.pop(name, None)
    process = subprocess.Popen(
        list(command), cwd=folder, env=surroundings, stdin=slave, stdout=slave, stderr=slave, preexec_fn=_own_terminal
    )
    os.close(slave)
    here = Terminal(process, master, before)
    try:
        yield here
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        try:
            os.close(master)
        except OSError:
            pass


def _own_terminal() -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
