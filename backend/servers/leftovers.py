"""What servers leave behind: the warm parent adopts it (Linux), and ends it before it ends itself.

Tools in the process group of their server die with the group. Those that have left it, as daemons and whatever is started in a session of
its own, would hold their ports for ever.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path

from backend.servers.process_tree import children_of, descendants

_PR_SET_CHILD_SUBREAPER = 36
_TERM_SECONDS = 0.5
_LONGEST_SECONDS = 1.5
"""Less than the supervisor waits for the warm parent."""
_LOOK_SECONDS = 0.01
_MOST_ROUNDS = 50
_KEEPER = str(Path(__file__).with_name("sandbox") / "keeper.py").encode()


def adopt_leftovers() -> None:
    """Make this process the parent of whatever loses its parent below it; Linux only."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_leftovers() -> None:
    """End the children of this process with all below them, SIGTERM first, SIGKILL after 0.5 s, and reap them; takes 1.5 s at most.

    Keepers of sandboxes are waited for and not killed: they end by themselves once their server is gone, and have folders to delete.
    """
    began = time.monotonic()
    told: set[int] = set()
    while _reap_all() and (spent := time.monotonic() - began) < _LONGEST_SECONDS:
        for child in _children_to_end():
            if child not in told:
                told.add(child)
                _send(child, signal.SIGTERM)
            elif spent >= _TERM_SECONDS:
                for pid in [child, *descendants([child])[child]]:
                    _send(pid, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)


def kill_marked(variable: str, value: str) -> None:
    """Kill every process that was started with the environment variable `variable` set to `value`; Linux only.

    For what nobody has adopted. Processes that were started with an environment made anew, as keepers of sandboxes are, do not have it.
    """
    wanted = f"{variable}={value}".encode()
    for _ in range(_MOST_ROUNDS):  # again, for what they start meanwhile
        found = [pid for pid in _processes() if _has_variable(pid, wanted)]
        if not found:
            return
        for pid in found:
            _send(pid, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _has_variable(pid: int, wanted: bytes) -> bool:
    try:
        return wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _children_to_end() -> list[int]:
    return [pid for pid in children_of(os.getpid()) if not _is_keeper(pid)]


def _is_keeper(pid: int) -> bool:
    try:
        return _KEEPER in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _reap_all() -> bool:
    """Whether there are children left."""
    with contextlib.suppress(ChildProcessError):
        while True:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return True
    return False
