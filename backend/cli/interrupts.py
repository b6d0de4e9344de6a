"""What Ctrl-C does while no operation listens for it.

Python's own answer, an exception wherever it happens to be, is a traceback while modules are imported and while the interpreter ends;
inside the start of an extension module it can even crash the interpreter. There the signal simply ends the process.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

_IMPORT_SYSTEM = "<frozen importlib"


def let_interrupts_kill() -> None:
    """Let SIGINT end the process as the system does, unless somebody has decided otherwise."""
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _raise_outside_of_imports):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def let_interrupts_raise() -> None:
    """Let SIGINT raise KeyboardInterrupt again, after `let_interrupts_kill`; while something is imported, it still ends the process."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, _raise_outside_of_imports)


def _raise_outside_of_imports(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORT_SYSTEM):
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        frame = frame.f_back
    raise KeyboardInterrupt
