"""The one family of errors that people see, and the one table of exit codes.

An operation raises `GymError` (or a subclass) for everything a person can mend; each face lays the fields out in its own way.
Any other exception is a fault of ours and may show a traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from typing import Any, Self


class ExitCode(IntEnum):
    """What a finished command tells its caller."""

    OK = 0
    BAD_INPUT = 1
    """The user's input, configuration or surroundings are wrong."""
    USAGE = 2
    """The command line itself is wrong."""
    UNTRUSTWORTHY = 3
    """The result is not trustworthy, and the caller asked to fail on that."""
    STOPPED_BY_RULE = 4
    """A stop rule, or a request by `gym eval control`, ended the run before its time; what there is has been scored."""
    INTERRUPTED = 130
    """After SIGINT."""
    TERMINATED = 143
    """After SIGTERM."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is wrong: a file, with 1-based line and column where they are known, and a dotted key."""

    file: str | None = None
    line: int | None = None
    column: int | None = None
    key: str | None = None

    def masked(self, mask: Callable[[str], str]) -> Place:
        """The place with `mask` applied: flags and overrides stand where a file would, with all they hold."""
        file, key = (mask(text) if text else text for text in (self.file, self.key))
        return replace(self, file=file, key=key)

    def __str__(self) -> str:
        text = self.file or ""
        if self.file and self.line is not None:
            text += f":{self.line}"
            if self.column is not None:
                text += f":{self.column}"
        if self.key:
            text = f"{text} ({self.key})" if text else self.key
        return text


class GymError(Exception):
    """Something the user can mend.

    `message` says what is wrong in one sentence without a full stop, `place` where, `hint` what to do now, `details` are
    further lines. `exit_code` is what the command ends with.
    """

    exit_code: ExitCode = ExitCode.BAD_INPUT

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        place: Place | None = None,
        details: Iterable[str] = (),
        exit_code: ExitCode | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.place = place
        self.details = tuple(details)
        if exit_code is not None:
            self.exit_code = exit_code

    def masked(self, mask: Callable[[str], str]) -> Self:
        """This error with `mask` applied to all its texts, so that no secret travels in a message."""
        self.message = mask(self.message)
        self.hint = mask(self.hint) if self.hint else self.hint
        self.place = self.place.masked(mask) if self.place else None
        self.details = tuple(mask(line) for line in self.details)
        self.args = (self.message,)
        return self

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place and str(self.place) else self.message
        lines = [text, *self.details]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class UsageError(GymError):
    """The command line cannot be understood, or a command's own options are missing or invalid."""

    exit_code = ExitCode.USAGE


def closest(name: Any, candidates: Iterable[Any], cutoff: float = 0.6) -> str | None:
    """The candidate nearest to `name` (difflib ratio of at least `cutoff`), never `name` itself; None when none is close.

    Names are texts; what is none is near nothing.
    """
    if not isinstance(name, str):
        return None
    letters = frozenset(name)
    others = [
        text
        for text in candidates
        if isinstance(text, str) and text != name and _may_be_close(name, letters, text, _letters(text), cutoff)
    ]
    near = difflib.get_close_matches(name, others, n=1, cutoff=cutoff)
    return near[0] if near else None


def _may_be_close(one: str, its_letters: frozenset[str], other: str, others_letters: frozenset[str], cutoff: float) -> bool:
    """Whether two texts may reach that ratio: letters that only one of them has match nothing. Cheaper than difflib's own bounds."""
    needed = cutoff * (len(one) + len(other)) / 2 - 1e-9
    return len(one) - len(its_letters - others_letters) >= needed and len(other) - len(others_letters - its_letters) >= needed


_letters = lru_cache(maxsize=4096)(frozenset[str])


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """`Did you mean …?` for the nearest candidate, ready to be a hint; None when none is close."""
    near = closest(name, candidates)
    return f"Did you mean `{near}`?" if near else None


def name_some(items: Sequence[Any], most: int = 10) -> str:
    """The first items for a message, and how many there are if that is not all."""
    shown = ", ".join(map(str, items[:most]))
    return f"{shown}, … ({len(items)} in all)" if len(items) > most else shown
