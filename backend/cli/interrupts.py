"""What Ctrl-C does while the program is not yet at work.

Python's own answer, an exception wherever it happens to be, is a traceback while modules are imported; inside the start of an
extension module it can even crash the interpreter when it ends. As long as nothing is at stake, the signal simply ends the process.
"""

import signal


def let_interrupts_kill() -> None:
    """Let SIGINT end the process as the system does, unless somebody has decided otherwise."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def let_interrupts_raise() -> None:
    """Let SIGINT raise KeyboardInterrupt again, after `let_interrupts_kill`."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
