"""Columns of a list: which of them fit a width, and how wide each becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """One column. A column without a `width` takes what the others leave, at least `least` cells."""

    name: str
    title: str
    width: int | None = None
    right: bool = False
    keep_end: bool = False
    """Shorten at the beginning: for paths."""
    least: int = 8
    keep: int = 0
    """Columns with the highest `keep` go last when it gets narrow; those with 0 never go."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A column that is shown: its index among all columns, its place and its width in cells."""

    index: int
    column: Column
    left: int
    width: int


def place(columns: Sequence[Column], width: int, indent: int = 2) -> list[Placed]:
    """Fit columns into `width` cells after `indent` cells: the least important ones leave first."""
    shown = list(enumerate(columns))
    while _needed(shown) + indent > width:
        droppable = [entry for entry in shown if entry[1].keep]
        if not droppable:
            break
        shown.remove(min(droppable, key=lambda entry: (entry[1].keep, -entry[0])))
    flexible = [column for _, column in shown if column.width is None]
    spare = max(0, width - indent - _needed(shown))
    placed, left = [], indent
    for index, column in shown:
        size = column.width
        if size is None:
            extra = spare // len(flexible)
            size = column.least + extra + (spare % len(flexible) if column is flexible[-1] else 0)
        size = max(0, min(size, width - left))
        placed.append(Placed(index, column, left, size))
        left += size + GAP
    return placed


def _needed(shown: Sequence[tuple[int, Column]]) -> int:
    widths = [column.least if column.width is None else column.width for _, column in shown]
    return sum(widths) + GAP * max(0, len(widths) - 1)
