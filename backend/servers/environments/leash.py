"""Runs a program that ends, with all it started, when the command that asked for it is gone: `python leash.py PROGRAM ARGUMENT…`.

The command holds the other end of standard input; its end means that nobody waits any more. A file of its own, without imports of
the project, because it is run by path in a bare interpreter (0.02 s).
"""

import contextlib
import ctypes
import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1


def main(command: list[str]) -> int:
    """Exit code of the program, 128 and the signal's number when a signal ended it."""
    child = os.fork()
    if not child:
        _become(command)
    with contextlib.suppress(OSError):  # the child does the same; whoever is first
        os.setpgid(child, child)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: _send(child, received))
    threading.Thread(target=_end_with_the_command, args=(child,), daemon=True).start()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    _kill_group(child)  # before its number is given back
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def _become(command: list[str]) -> None:
    try:
        os.setpgid(0, 0)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # the interpreter ignores them, programs do not expect that
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _end_with_the_command(child: int) -> None:
    while os.read(0, 4096):
        pass
    _kill_group(child)


def _kill_group(child: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def _send(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
