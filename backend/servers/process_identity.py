"""What names a process for good, and how old it is, by clocks that nobody sets.

A creation time in Unix seconds is neither: the system derives it from the wall clock, so that it changes whenever somebody sets that.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_STATE, _START_TICKS = 0, 19
"""Fields of `/proc/PID/stat`, counted from the one after the command's name."""


def boot_clock() -> float:
    """Seconds since the machine's start, the same in all its processes; it goes on while the machine sleeps, where the system can do that."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def process_mark(pid: int) -> str:
    """The boot of the machine and the tick at which the process began; empty for one that is gone, or where the system does not tell."""
    ticks = _start_ticks(pid)
    if ticks is None:
        return ""
    try:
        return f"{_BOOT_ID.read_text().strip()}:{ticks}"
    except OSError:
        return ""


def process_age(pid: int) -> float | None:
    """Seconds since the process began; None for one that is gone, or where the system does not tell."""
    ticks = _start_ticks(pid)
    return None if ticks is None else max(0.0, boot_clock() - ticks / os.sysconf("SC_CLK_TCK"))


def _start_ticks(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return None if fields[_STATE] == b"Z" else int(fields[_START_TICKS])
    except (OSError, IndexError, ValueError):
        return None
