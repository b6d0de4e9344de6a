"""The repeats of one task as a row of squares, one per repeat, with the present one in brackets."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from screens.widgets import glyphs


class Outcome(Enum):
    """What came of one repeat, as a square."""

    FULL = "full"
    """Reward 1 or more."""
    NONE = "none"
    """Reward 0 or less."""
    BETWEEN = "between"
    FAILED = "failed"
    UNREADABLE = "unreadable"
    UNKNOWN = "unknown"
    """No reward, or not read yet."""


def outcome_of(reward: float | None, *, failed: bool = False, unreadable: bool = False) -> Outcome:
    """The square of a rollout."""
    if unreadable:
        return Outcome.UNREADABLE
    if failed:
        return Outcome.FAILED
    if reward is None:
        return Outcome.UNKNOWN
    return Outcome.FULL if reward >= 1 else Outcome.NONE if reward <= 0 else Outcome.BETWEEN


def sign_of(outcome: Outcome) -> str:
    """One cell."""
    signs = glyphs.current()
    return {
        Outcome.FULL: signs.full,
        Outcome.NONE: signs.empty,
        Outcome.BETWEEN: signs.between,
        Outcome.FAILED: signs.failed,
        Outcome.UNREADABLE: signs.warning,
        Outcome.UNKNOWN: signs.neutral,
    }[outcome]


def legend(width: int = 80, *, more: bool = False, negative: bool = False, unscored: bool = False) -> str:
    """What the squares mean, in lines of at most `width` cells: also for rewards above 1, below 0, and rollouts without one, where there are such."""
    signs = glyphs.current()
    entries = [
        f"{signs.full} 1{' or more' if more else ''}",
        f"{signs.empty} 0{' or less' if negative else ''}",
        f"{signs.between} between",
        f"{signs.failed} failed",
        *([f"{signs.neutral} no score"] if unscored else []),
    ]
    lines = [entries[0]]
    for entry in entries[1:]:
        line = f"{lines[-1]}  {entry}"
        lines[-1:] = [line] if len(line) <= width else [lines[-1], entry]
    return "\n".join(lines)


def strip_text(outcomes: Sequence[Outcome], current: int | None, width: int) -> str:
    """Squares with blanks between them, without blanks where that is too wide, else how many there are of each kind."""
    if 2 * len(outcomes) + 1 <= width:
        text = " " + " ".join(map(sign_of, outcomes)) + " "
        if current is not None:
            at = 2 * current
            text = f"{text[:at]}[{text[at + 1]}]{text[at + 3 :]}"
        return text
    if len(outcomes) + 2 <= width:
        squares = [sign_of(outcome) for outcome in outcomes]
        if current is not None:
            squares[current] = f"[{squares[current]}]"
        return "".join(squares)
    counts = {outcome: outcomes.count(outcome) for outcome in Outcome}
    return " ".join(f"{sign_of(outcome)}{number}" for outcome, number in counts.items() if number)


def repeat_at(column: int, repeats: int, current: int | None, width: int) -> int | None:
    """Which repeat stands in a column of the strip; None for none."""
    if 2 * repeats + 1 <= width:
        index = (column - 1) // 2 if column % 2 else None
    elif repeats + 2 <= width:
        index = column if current is None or column < current else current if column <= current + 2 else column - 2
    else:
        return None
    return index if index is not None and 0 <= index < repeats else None
