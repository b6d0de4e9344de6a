"""The terminal: whether there is one, how it is left, and what happens when it goes away.

Imports no Textual before `driver_class` is called, so that a command without a terminal is refused at once.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, NoReturn

from backend.errors import ExitCode

if TYPE_CHECKING:
    from textual.driver import Driver

PLAIN_COMMANDS = "`gym list runs`, `gym list benchmarks`, `gym eval run`"
SIGNAL_CODES = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.TERMINATED,
    signal.SIGQUIT: ExitCode.TERMINATED,
}
_LEAVE = (
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"  # mouse
    "\x1b[?2004l\x1b[?2048l\x1b[?1004l\x1b[<u\x1b[?7h"  # paste, resize reports, focus reports, keys, wrapping
    "\x1b[?1049l\x1b[?25h\x1b[0m"  # main screen, cursor, colours
)
_MOUSE_PIXELS_OFF = "\x1b[?1016l"


def refusal(environment: Mapping[str, str], *streams: IO[Any] | None) -> str | None:
    """Why the workbench cannot be drawn, in one line that names plain commands; None when it can."""
    names = ("standard input", "standard output", "standard error")
    for name, stream in zip(names, streams, strict=False):
        if stream is None or stream.closed or not stream.isatty():
            return f"the workbench needs a terminal, and {name} is none; plain commands: {PLAIN_COMMANDS}"
    kind = environment.get("TERM", "")
    if kind in ("", "dumb", "unknown"):
        told = f"TERM={kind} cannot draw a full screen" if kind else "TERM is not set"
        return f"the workbench needs a terminal, and {told}; plain commands: {PLAIN_COMMANDS}"
    return None


class SavedTerminal:
    """The terminal's settings as they were, to be put back however the workbench ends."""

    def __init__(self, descriptor: int) -> None:
        import termios

        self._descriptor = descriptor
        try:
            self._attributes: list[Any] | None = termios.tcgetattr(descriptor)
        except termios.error:
            self._attributes = None

    def restore(self) -> None:
        """Put the line settings back; harmless when they are."""
        import termios

        if self._attributes is not None:
            with suppress(termios.error, OSError):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._attributes)

    def leave_screen(self) -> None:
        """Switch off by hand all that was switched on; for ends at which the driver could not do it."""
        with suppress(OSError):
            os.write(2, _LEAVE.encode())
        self.restore()


class _Output:
    """The terminal as a file that survives the terminal: a thread that dies of a write error would leave its writers waiting for ever."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return True


def driver_class(on_lost: Callable[[], object]) -> type[Driver]:
    """Textual's driver, which also ends mouse reports in pixels, survives SIGSTOP, and calls `on_lost` when nobody is at the other end any more."""
    from textual.drivers.linux_driver import LinuxDriver

    class TerminalDriver(LinuxDriver):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._file = _Output(self._file)  # type: ignore[assignment, arg-type]
            self._has_terminal = False

        def start_application_mode(self) -> None:
            super().start_application_mode()
            self._has_terminal = self._key_thread is not None and self._key_thread.is_alive()

        def _sigcont_application(self, *signal_and_frame: Any) -> None:
            """Textual's own answer starts a second thread that reads keys where SIGSTOP left no time to end the first one."""
            if self._must_signal_resume:  # it was handed back in order
                super()._sigcont_application(*signal_and_frame)
                return
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._take_terminal_again)

        def _take_terminal_again(self) -> None:
            """A shell has used the terminal meanwhile, and left it as it likes it."""
            if self._has_terminal:
                self.suspend_application_mode()
                self.resume_application_mode()
                self._app.refresh(layout=True)

        def _run_input_thread(self) -> None:
            try:
                self.run_input_thread()
            except OSError:
                on_lost()

        def stop_application_mode(self) -> None:
            self._has_terminal = False
            if self._mouse_pixels:
                self.write(_MOUSE_PIXELS_OFF)
            super().stop_application_mode()

    return TerminalDriver


def hung_up(descriptor: int) -> bool:
    """Whether the terminal behind a descriptor is gone."""
    poller = select.poll()
    poller.register(descriptor, 0)
    try:
        return any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poller.poll(0))
    except OSError:
        return True


def end_after(seconds: float, code: int, saved: SavedTerminal) -> None:
    """End this process for certain, for the case that the orderly way out gets stuck."""

    def end() -> None:
        saved.leave_screen()
        os._exit(code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def leave(code: int) -> NoReturn:
    """End the process without taking the interpreter apart: that takes longer than all the rest, and a thread that does not listen would hold it up."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
