"""Small plots as plain text: pure functions of numbers and a size, without styles.

Blocks fill a cell in eighths; with `ascii` only ASCII is used. Numbers that are missing or not finite are drawn as nothing, and what is
out of range at its edge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_LEFT_EIGHTHS = "▏▎▍▌▋▊▉█"
_LOWER_EIGHTHS = "▁▂▃▄▅▆▇█"
_ASCII_LEVELS = "_.-:=+*#"


def progress_bar(share: float | None, width: int, ascii: bool = False) -> str:
    """A bar of `width` cells, `share` of it (0 to 1) full; only a share of 1 fills it, and only one of 0 leaves it empty."""
    bar = h_bar(share, width, ascii).rstrip(" ")
    return bar + ("." if ascii else "░") * (max(0, width) - len(bar))


def h_bar(share: float | None, width: int, ascii: bool = False) -> str:
    """A horizontal bar without a track, padded with blanks to `width` cells."""
    width = max(0, width)
    steps = width if ascii else 8 * width
    filled = _steps(share, steps)
    if ascii:
        return "#" * filled + " " * (width - filled)
    whole, rest = divmod(filled, 8)
    bar = "█" * whole + (_LEFT_EIGHTHS[rest - 1] if rest else "")
    return bar + " " * (width - len(bar))


def sparkline(values: Sequence[float | None], width: int, ascii: bool = False, *, least_top: float = 0.0) -> str:
    """Values as columns between 0 and the largest one, at most `width` of them: more values are taken together by their mean.

    Missing values leave a gap; anything above 0 is seen. With `least_top` the scale reaches at least so far.
    """
    columns = _resampled(values, max(0, width))
    top = max((value for value in columns if value is not None), default=0.0)
    top = max(top, least_top)
    levels = _ASCII_LEVELS if ascii else _LOWER_EIGHTHS
    return "".join(" " if value is None else levels[_level(value, top, len(levels))] for value in columns)


def histogram(
    counts: Sequence[int], height: int, ascii: bool = False, labels: Sequence[str] = ("0.0", "0.5", "1.0")
) -> list[str]:
    """Vertical bars, one column per count, `height` rows high, and a row of labels below: the first at the left, the last at the right,
    those between at their share of the way. Of labels that have no room beside each other only the outer ones are written, or none.

    The axis names the largest count and 0. A count above 0 is always seen, and one of 0 never. Rows are at most as wide as the axis,
    which takes `axis_width` cells, and a cell per count.
    """
    height = max(1, height)
    counts = [max(0, count) for count in counts]
    top = max(counts, default=0)
    names = [f"{top}" if row == height - 1 else "0" if row == 0 else "" for row in range(height)]
    margin = axis_width(counts)
    axis = "|" if ascii else "┤"
    rows = [
        f"{names[row]:>{margin - 2}} {axis}" + "".join(_bar_cell(count, top, row, height, ascii) for count in counts)
        for row in range(height)
    ]
    return [row.rstrip() for row in reversed(rows)] + [" " * margin + _label_row(labels, len(counts))]


def axis_width(counts: Sequence[int]) -> int:
    """Cells to the left of the first bar of a `histogram`."""
    return max(len(f"{max(counts, default=0)}"), 3) + 2


def interval_strip(
    value: float | None,
    low: float | None,
    high: float | None,
    width: int,
    ascii: bool = False,
    *,
    start: float = 0.0,
    end: float = 1.0,
) -> str:
    """A value and its interval on a scale from `start` to `end`, in `width` cells."""
    rest, line, left, right, point = (".", "-", "[", "]", "o") if ascii else ("·", "─", "├", "┤", "●")
    width = max(0, width)
    cells = [rest] * width
    if not width or end <= start:
        return "".join(cells)

    def place(number: float) -> int:
        share = min(1.0, max(0.0, (number - start) / (end - start)))
        return min(width - 1, math.floor(share * width))

    if low is not None and high is not None and math.isfinite(low) and math.isfinite(high) and low <= high:
        first, last = place(low), place(high)
        cells[first : last + 1] = line * (last - first + 1)
        cells[first], cells[last] = left, right
    if value is not None and math.isfinite(value):
        cells[place(value)] = point
    return "".join(cells)


def _steps(share: float | None, steps: int) -> int:
    if share is None or not math.isfinite(share) or share <= 0 or not steps:
        return 0
    return steps if share >= 1 else min(max(1, int(share * steps)), max(1, steps - 1))


def _level(value: float, top: float, levels: int) -> int:
    if value <= 0 or top <= 0:
        return 0
    return min(levels - 1, max(0, math.ceil(value / top * levels) - 1))


def _resampled(values: Sequence[float | None], width: int) -> list[float | None]:
    numbers = [value if value is not None and math.isfinite(value) else None for value in values]
    if len(numbers) <= width or not width:
        return numbers if width else []
    columns: list[float | None] = []
    for column in range(width):
        part = numbers[column * len(numbers) // width : (column + 1) * len(numbers) // width]
        known = [number for number in part if number is not None]
        columns.append(sum(known) / len(known) if known else None)
    return columns


def _bar_cell(count: int, top: int, row: int, height: int, ascii: bool) -> str:
    """The cell of a bar in a row, counted from the bottom."""
    if not count:
        return " "
    steps = 1 if ascii else 8
    filled = max(1, round(count / top * height * steps)) - row * steps
    if filled <= 0:
        return " "
    if ascii:
        return "#"
    return _LOWER_EIGHTHS[min(8, filled) - 1]


def _label_row(labels: Sequence[str], width: int) -> str:
    if sum(map(len, labels)) + len(labels) - 1 > width:
        labels = (labels[0], labels[-1]) if len(labels) > 2 and len(labels[0]) + len(labels[-1]) < width else ()
    row = [" "] * width
    for number, label in enumerate(labels):
        room = max(0, width - len(label))
        at = round(room * number / (len(labels) - 1)) if len(labels) > 1 else 0
        row[at : at + len(label)] = label
    return "".join(row).rstrip()
