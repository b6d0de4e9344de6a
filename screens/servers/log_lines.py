"""Lines of server logs: when they were written, how bad they are, and which of them are shown. Pure functions."""

from __future__ import annotations

import re
import time
from calendar import timegm
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

WINDOWS = (0, 60, 300, 900)
"""Seconds of the log that may be shown; 0: all of it."""
TIME_WIDTH = 12
_LOOKED_AT = 400
"""Characters of a line in which its time and level are looked for."""
_TIME_STARTS_BEFORE = 24
_DAY = 86_400
_CLOCK_SLACK = 60
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
_TIME = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)?[T ]?(?P<clock>(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?P<fraction>[.,]\d{1,9})?(?P<zone>Z|[+-]\d\d:?\d\d)?(?!\d)"
)
_ERROR = re.compile(
    r"\b(?:ERROR|CRITICAL|FATAL)\b|\blevel\W{1,4}(?:error|critical|fatal)\b|HTTP/\d\.?\d?\"? 5\d\d\b|^Traceback \(most recent call last\)"
    r"|^[\w.]*(?:Error|Exception|Interrupt)(?=:|$)"
)
_WARNING = re.compile(r"\bWARN(?:ING)?\b|\blevel\W{1,4}warn(?:ing)?\b|Warning: ")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)|^(?:During handling of|The above exception was)")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a log."""

    text: str
    """Without colours; whatever else drives a terminal is still in it."""
    kind: str = "plain"
    """`error`, `warning` or `plain`; a line that goes on with another one is of its kind."""
    at: float | None = None
    """Unix time: the line's own, that of the last line before it that had one, or when it came; None when nobody knows."""
    clock: str = ""
    """The time of day, as the line says it or when it came."""
    rest: int = 0
    """Where the text after a time at its beginning begins."""

    def with_time(self) -> str:
        """The line with its time in a column of its own."""
        return f"{self.clock:<{TIME_WIDTH}} {self.text[self.rest :]}".rstrip()


class LogParser:
    """Turns the raw lines of one log into `LogLine`s. Times without a date are of the day before `now` that fits, in local time."""

    def __init__(self) -> None:
        self._kind = "plain"
        self._at: float | None = None
        self._in_traceback = False

    def parse(self, lines: Iterable[str], now: float, *, arrived: bool) -> list[LogLine]:
        """The next lines; with `arrived` those without a time have just been written."""
        return [self._line(_COLOURS.sub("", raw), now, arrived) for raw in lines]

    def _line(self, text: str, now: float, arrived: bool) -> LogLine:
        begin = text[:_LOOKED_AT]
        goes_on = not begin or begin[0].isspace()
        kind = self._kind_of(begin, goes_on)
        found = None if goes_on else _TIME.search(begin, 0, _TIME_STARTS_BEFORE + 32)
        if found is not None and found.start() <= _TIME_STARTS_BEFORE:
            self._at = _moment(found, now)
            fraction = (found["fraction"] or "").replace(",", ".")[:4]
            at_start = not begin[: found.start()].strip("[(")
            rest = found.end() + len(begin[found.end() :]) - len(begin[found.end() :].lstrip("]) ")) if at_start else 0
            return LogLine(text, kind, self._at, found["clock"] + fraction, rest)
        if arrived:
            self._at = now
            return LogLine(text, kind, now, "" if goes_on else time.strftime("%H:%M:%S", time.localtime(now)))
        return LogLine(text, kind, self._at)

    def _kind_of(self, begin: str, goes_on: bool) -> str:
        if _TRACEBACK.search(begin):
            self._in_traceback = True
            self._kind = "error"
        elif goes_on:
            pass
        elif self._in_traceback:  # the line that names the exception
            self._in_traceback = False
            self._kind = "error"
        elif _ERROR.search(begin):
            self._kind = "error"
        else:
            self._kind = "warning" if _WARNING.search(begin) else "plain"
        return self._kind


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which lines are shown: all that pass every part. `words` as they were typed; `seconds` before now, 0 for all."""

    words: str = ""
    only_errors: bool = False
    seconds: int = 0

    @property
    def passes_all(self) -> bool:
        return not (self.words.strip() or self.only_errors or self.seconds)

    def chosen(self, lines: Iterable[LogLine], now: float) -> Iterator[LogLine]:
        """The lines that pass. Words must all be in a line, those with a `-` must not; case counts only where a word has capitals."""
        wanted, unwanted = _terms(self.words)
        since = now - self.seconds
        for line in lines:
            if self.only_errors and line.kind != "error":
                continue
            if self.seconds and (line.at is None or line.at < since):
                continue
            if (wanted or unwanted) and not _matches(line.text, wanted, unwanted):
                continue
            yield line


def _terms(words: str) -> tuple[list[str], list[str]]:
    terms = words.split()
    return [term for term in terms if not _leaves_out(term)], [term[1:] for term in terms if _leaves_out(term)]


def _leaves_out(term: str) -> bool:
    return len(term) > 1 and term.startswith("-")


def _matches(text: str, wanted: list[str], unwanted: list[str]) -> bool:
    lower = text.lower()

    def has(term: str) -> bool:
        return term in (lower if term == term.lower() else text)

    return all(map(has, wanted)) and not any(map(has, unwanted))


def _moment(found: re.Match[str], now: float) -> float | None:
    """Unix time of a match of `_TIME`; None for what is no time."""
    hours, minutes, seconds = (int(part) for part in found["clock"].split(":"))
    fraction = float("0." + (found["fraction"] or ".0")[1:])
    zone = found["zone"]
    try:
        if found["date"]:
            date = time.strptime(found["date"], "%Y-%m-%d")
        else:
            date = time.gmtime(now) if zone else time.localtime(now)
        parts = (date.tm_year, date.tm_mon, date.tm_mday, hours, minutes, seconds, 0, 0, -1)
        at = timegm(parts) - _offset(zone) if zone else time.mktime(parts)
    except (ValueError, OverflowError):
        return None
    if not found["date"] and at > now + _CLOCK_SLACK:
        at -= _DAY
    return at + fraction


def _offset(zone: str) -> int:
    """Seconds east of Greenwich."""
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    return (-1 if zone[0] == "-" else 1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
