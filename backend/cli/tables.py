"""Plain tables: aligned columns, no frames, fitted to a width where one is given."""

from __future__ import annotations

from collections.abc import Sequence

from backend.io.text import cell_width

_GAP = "  "
_ELLIPSIS = "…"
_NARROWEST = 4
_BREAKS = " /_-.,"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None) -> str:
    """Rows under headers; text that looks like a number is right-aligned.

    Lines that would be longer than `width` are made to fit: columns that say the same in every row go, the last one is shortened, the others are wrapped.
    """
    cells = [list(headers), *[[_one_line(cell) for cell in row] for row in rows]]
    widths = _natural_widths(cells)
    if width is not None and _total(widths) > width:
        telling = [column for column in range(len(headers)) if column == 0 or _tells(column, cells[1:])]
        cells = [[row[column] for column in telling] for row in cells]
        widths = _shared(_natural_widths(cells), width - len(_GAP) * (len(telling) - 1))
    numeric = [all(_is_number(row[column]) for row in cells[1:]) and len(cells) > 1 for column in range(len(widths))]
    lines = []
    for row in cells:
        pieces = [_wrapped(cell, size) for cell, size in zip(row[:-1], widths, strict=False)]
        pieces.append(row[-1:])
        for number in range(max(map(len, pieces))):
            texts = [piece[number] if number < len(piece) else "" for piece in pieces]
            padded = [_fit(text, size, right=right) for text, size, right in zip(texts, widths, numeric, strict=True)]
            lines.append(_GAP.join(padded).rstrip())
    return "\n".join(lines)


def _tells(column: int, rows: Sequence[Sequence[str]]) -> bool:
    values = {row[column] for row in rows}
    return len(values) > 1 or (len(rows) == 1 and values != {""})


def _natural_widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(cell_width, column)) for column in zip(*cells, strict=True)]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _shared(natural: Sequence[int], room: int) -> list[int]:
    """Widths that add up to `room`: narrow columns get what they need, the wide ones the rest in equal parts."""
    widths = list(natural)
    by_need = sorted(range(len(natural)), key=lambda column: natural[column])
    for done, column in enumerate(by_need):
        widths[column] = min(natural[column], max(_NARROWEST, room // (len(natural) - done)))
        room -= widths[column]
    return widths


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns; they end after a blank or a sign where one is near."""
    lines = []
    while cell_width(text) > width:
        end = 1
        while end < len(text) and cell_width(text[: end + 1]) <= width:
            end += 1
        sign = next((place for place in range(end, end // 2, -1) if text[place - 1] in _BREAKS), end)
        lines.append(text[:sign].rstrip())
        text = text[sign:].lstrip()
    return [*lines, text]


def _fit(text: str, width: int, *, right: bool) -> str:
    if cell_width(text) > width:
        kept = ""
        for char in text:
            if cell_width(kept + char) > width - 1:
                break
            kept += char
        text = kept + _ELLIPSIS
    padding = " " * (width - cell_width(text))
    return padding + text if right else text + padding


def _one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _is_number(text: str) -> bool:
    return bool(text) and text.replace(".", "", 1).replace("-", "", 1).isdigit()
