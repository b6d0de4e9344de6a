"""Rows as lines of text with aligned columns, for the parts of a document."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from screens.widgets.text_gate import one_line

_WIDEST_NAME = 36


def table(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Rows as lines with aligned columns, of which the last keeps its length; cells in one of the `right` columns end at the same place."""
    clean = [[one_line(cell) for cell in row] for row in rows]
    columns = max((len(row) for row in clean), default=0)
    widths = [max((cell_len(row[index]) for row in clean if index < len(row)), default=0) for index in range(columns)]
    widths = [min(width, _WIDEST_NAME) for width in widths[:-1]] + widths[-1:]
    lines = []
    for row in clean:
        cells = [_padded(cell, widths[index], index in right) for index, cell in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _padded(cell: str, width: int, right: bool) -> str:
    padding = " " * max(0, width - cell_len(cell))
    return padding + cell if right else cell + padding
