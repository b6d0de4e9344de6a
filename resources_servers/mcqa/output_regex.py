"""A row's own `output_regex`, run so that no pattern can stop the server.

Python's matcher can need exponential time and cannot be stopped from another thread, but it does let signal handlers of the main
thread run. So a timer signal ends a pattern after `TIME_LIMIT` seconds. That holds where servers grade, in the main thread; in
any other thread Python allows no handler, and there the pattern runs without a limit.
"""

from __future__ import annotations

import logging
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

TIME_LIMIT = 0.5
"""Seconds that one pattern may take on one text."""

_log = logging.getLogger(__name__)


class _TimeUp(Exception):
    pass


def last_capture(pattern: str, text: str) -> str | None:
    """What the last match of `pattern` in `text` captured, ignoring case: its first group with text, or all of it without groups.

    None when nothing matches, when the pattern is not valid, or when it does not finish within `TIME_LIMIT`.
    """
    last: re.Match[str] | None = None
    try:
        with _time_limit(TIME_LIMIT):
            for match in re.finditer(pattern, text, re.IGNORECASE):
                last = match
    except _TimeUp:
        _log.warning("output_regex gave no result within %s s and counts as no match: %.200s", TIME_LIMIT, pattern)
        return None
    except (re.error, OverflowError, RecursionError):
        return None
    if last is None:
        return None
    return next(filter(None, last.groups()), "") if last.re.groups else last[0]


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def time_up(_signal: int, _frame: FrameType | None) -> None:
        raise _TimeUp

    previous_handler = signal.signal(signal.SIGALRM, time_up)
    begin = time.monotonic()
    previous_delay, previous_interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous_handler or signal.SIG_DFL)
        if previous_delay:
            remaining = max(previous_delay - (time.monotonic() - begin), 0.001)
            signal.setitimer(signal.ITIMER_REAL, remaining, previous_interval)
