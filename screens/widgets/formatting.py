"""Numbers, times and sizes as the screens write them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from screens.widgets import glyphs

_SIZE_UNITS = ("B", "kB", "MB", "GB", "TB")
_COUNT_UNITS = ("", "k", "M", "G", "T")


def clock_time(seconds: float | None) -> str:
    """A duration as `m:ss` or `h:mm:ss`, rounded to seconds; a negative one, after a step of the clock, counts as none."""
    if seconds is None or not math.isfinite(seconds):
        return glyphs.current().nothing
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def short_time(seconds: float | None) -> str:
    """A short duration: `850 ms`, `16.1 s`, and from a minute on `1:05`."""
    if seconds is None or not math.isfinite(seconds):
        return glyphs.current().nothing
    seconds = max(0.0, seconds)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 59.95 else clock_time(seconds)


def age(seconds: float | None) -> str:
    """How long ago something was, in its largest unit: `12 s`, `3 min`, `2 h`, `5 d`."""
    if seconds is None or not math.isfinite(seconds):
        return glyphs.current().nothing
    seconds = max(0.0, seconds)
    for unit, length, until in (("s", 1, 60), ("min", 60, 3600), ("h", 3600, 48 * 3600)):
        if seconds < until:
            return f"{int(seconds / length)} {unit}"
    return f"{int(seconds / 86400)} d"


def count(number: int | None) -> str:
    """A whole number with its thousands apart: `18 204`."""
    return glyphs.current().nothing if number is None else f"{number:,}".replace(",", " ")


def compact(number: float | None) -> str:
    """A number in three digits or so: `911`, `3.3M`."""
    return glyphs.current().nothing if number is None else _scaled(number, 1000, _COUNT_UNITS, "")


def byte_size(number: int | None) -> str:
    """A size: `18.4 kB`."""
    return glyphs.current().nothing if number is None else _scaled(number, 1000, _SIZE_UNITS, " ")


def score(value: float | None, digits: int = 3) -> str:
    """A reward or a mean of rewards."""
    return glyphs.current().nothing if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def share(part: float, whole: float, digits: int = 1) -> str:
    """A part in percent; nothing of nothing is no number."""
    return f"{100 * part / whole:.{digits}f} %" if whole else glyphs.current().nothing


def joined(parts: Iterable[str], gap: str = "  ") -> str:
    """The parts that say something, in one line."""
    return gap.join(part for part in parts if part)


def _scaled(number: float, step: int, units: tuple[str, ...], gap: str) -> str:
    if not math.isfinite(number):
        return glyphs.current().nothing
    value, index = float(number), 0
    while abs(value) >= step - 0.5 and index < len(units) - 1:
        value /= step
        index += 1
    digits = 0 if index == 0 or abs(value) >= 99.95 else 1
    return f"{value:.{digits}f}{gap}{units[index]}".rstrip()
