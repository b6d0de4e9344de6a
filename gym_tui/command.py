"""`gym tui`: checks what it is started with, runs the workbench, and leaves the terminal as it was.

Textual is imported only when the workbench is really going to be drawn.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from backend.cli.parser import Parsed
from backend.errors import ExitCode, GymError, Place, UsageError
from backend.io.homes import config_home
from gym_tui.terminal import SIGNAL_CODES, SavedTerminal, driver_class, end_after, leave, refusal

if TYPE_CHECKING:
    from gym_tui.settings import Settings

_THREADS = 32
"""Workers that follow files hold a thread each; asyncio's own number is six on two cores."""
_SECONDS_TO_LEAVE = 1.5


def run(parsed: Parsed) -> int:
    """Run the workbench and end the process with its exit code. Raises `GymError` for what it cannot be started with, before anything is drawn."""
    reason = refusal(os.environ, sys.__stdin__, sys.__stdout__, sys.__stderr__)
    if reason is not None:
        raise UsageError(reason)
    from gym_tui.settings import SETTINGS_FILE, Settings, read_choices, read_keymap

    choices = read_choices()
    keymap = read_keymap()
    path = Path(parsed.name or ".").absolute()
    from gym_tui.start import first_view, known_screen, known_theme

    theme = str(parsed.given("theme") or choices.get("theme") or "")
    if theme:
        from textual.theme import BUILTIN_THEMES

        from gym_tui.themes import OWN

        try:
            known_theme(theme, [*(own.name for own in OWN), *BUILTIN_THEMES])
        except GymError as error:
            if not parsed.given("theme"):
                error.place = Place(str(config_home(SETTINGS_FILE)), key="theme")
            raise
    screen, _ = first_view(path)
    if parsed.given("screen"):
        screen = known_screen(str(parsed.given("screen"))).name
    settings = Settings(
        path,
        screen,
        ascii=bool(parsed.given("ascii") or choices.get("ascii", False)),
        mouse=bool(not parsed.given("no_mouse") and choices.get("mouse", True)),
        keymap=keymap,
        **({"theme": theme} if theme else {}),
    )
    leave(_run_workbench(settings))


def _run_workbench(settings: Settings) -> int:
    from gym_tui.app import WorkbenchApp

    for name in ("COLUMNS", "LINES"):  # they would be believed instead of the terminal, and resizing would have no effect
        os.environ.pop(name, None)
    gc.freeze()  # what was imported stays; walking through it again and again would hold up the loop
    assert sys.__stdin__ is not None  # checked before
    saved = SavedTerminal(sys.__stdin__.fileno())
    loop = asyncio.new_event_loop()
    executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="workbench")
    loop.set_default_executor(executor)
    ending = _Ending(saved)
    app = WorkbenchApp(settings, driver_class=driver_class(partial(loop.call_soon_threadsafe, ending.receive, signal.SIGHUP)))
    ending.stop = app.exit
    app.lost = partial(ending.receive, signal.SIGHUP)
    for number in SIGNAL_CODES:
        loop.add_signal_handler(number, ending.receive, number)
    loop.set_exception_handler(lambda _loop, context: app.late_failure(context))
    try:
        loop.run_until_complete(app.run_async(mouse=settings.mouse))
    finally:
        saved.restore()
        executor.shutdown(wait=False, cancel_futures=True)
        for number in SIGNAL_CODES:  # nothing is left to lose; a further signal must not show a traceback
            signal.signal(number, signal.SIG_IGN)
        loop.close()
    code = app.return_code or ExitCode.OK
    if app.faults and code == ExitCode.BAD_INPUT:
        print(f"Error: {app.faults[0].line}", file=sys.stderr)
    return ending.code or code


class _Ending:
    """Ends the workbench on a signal: in good order at the first one, at once at the second, and for certain after a moment."""

    def __init__(self, saved: SavedTerminal) -> None:
        self.code = 0
        self.stop: Callable[..., object] = lambda **_options: None
        self._saved = saved

    def receive(self, number: signal.Signals) -> None:
        """Handle a signal."""
        if self.code:
            self._saved.leave_screen()
            os._exit(self.code)
        self.code = int(SIGNAL_CODES[number])
        end_after(_SECONDS_TO_LEAVE, self.code, self._saved)
        self.stop(return_code=self.code)
