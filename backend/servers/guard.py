"""A server dies with those that started it, however they die.

A pipe whose only write end lives in the command's process: its end means that the command is gone. A thread waits for that, because a
verifier may block the event loop; and on Linux the kernel kills the server when its parent dies, because an extension may hold
the interpreter lock. Each alone leaves survivors (1 in 5 for the signal alone, when the parent dies early); both left none of 239.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_EXPLANATIONS = {signal.SIGKILL: "killed, perhaps for lack of memory", signal.SIGSEGV: "crashed in native code"}


def leave_with_parent(death_pipe: int, parent: int) -> None:
    """Make this process, and the group it leads, end when `death_pipe` closes or the process `parent` dies."""
    die_with_parent(parent)
    threading.Thread(target=_wait_for_end, args=(death_pipe,), name="parent-guard", daemon=True).start()


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when `parent` dies; ends it now when that has happened already. Linux only."""
    _ask_for_death_signal(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def outlive_parent() -> None:
    """Take `die_with_parent` back, in a process that watches its parent itself from now on and has something to end before it ends."""
    _ask_for_death_signal(0)


def _ask_for_death_signal(number: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def name_process(name: str) -> None:
    """What `ps -o comm` and `top` call this process; Linux keeps 15 characters."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def explain_end(code: int) -> str:
    """What the exit code of a process says; a negative one is the number of the signal that ended it, for which shells say 128 more."""
    if code >= 0:
        return f"exit code {code}"
    try:
        number = signal.Signals(-code)
    except ValueError:
        return f"ended by signal {-code} (exit code {128 - code})"
    explanation = _EXPLANATIONS.get(number)
    return f"ended by {number.name} (exit code {128 - code})" + (f": {explanation}" if explanation else "")


def _wait_for_end(death_pipe: int) -> None:
    while True:
        try:
            if not os.read(death_pipe, 1):
                break
        except InterruptedError:
            continue
        except OSError:
            break
    os.killpg(0, signal.SIGKILL)
