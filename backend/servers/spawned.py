"""A child process that is begun at once: `subprocess` and `socket` take longer to import than an interpreter takes to come up."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LOOK_SECONDS = 0.005


class SpawnedProcess:
    """A child of this process, in a process group of its own. Safe for several threads."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        """How it ended, as `subprocess` says it: a signal as its negative number."""
        self._lock = _thread.allocate_lock()

    def poll(self) -> int | None:
        """How it ended; None while it runs."""
        with self._lock:
            if self.returncode is None:
                try:
                    pid, status = os.waitpid(self.pid, os.WNOHANG)
                except ChildProcessError:  # somebody else has waited for it, or nobody has to
                    self.returncode = 0
                else:
                    if pid:
                        self.returncode = os.waitstatus_to_exitcode(status)
            return self.returncode

    def wait(self, seconds: float = float("inf")) -> bool:
        """Wait until it has ended, at most so long; whether it has."""
        end = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > end:
                return False
            time.sleep(_LOOK_SECONDS)
        return True

    def kill(self) -> None:
        """End it, unless it has ended."""
        if self.poll() is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                return


def spawn_python(words: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int]) -> SpawnedProcess:
    """Start this interpreter with `words`. It has `descriptors`, the outputs of this process, and nothing to read.

    Unlike `subprocess`, this leaves to it what else this process has that is inheritable.
    """
    for number in descriptors:
        os.set_inheritable(number, True)
    try:
        nothing = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
        pid = os.posix_spawn(sys.executable, [sys.executable, *words], environment, file_actions=[nothing], setpgroup=0)
    finally:
        for number in descriptors:
            os.set_inheritable(number, False)
    return SpawnedProcess(pid)
