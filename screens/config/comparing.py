"""Two configurations side by side as lines: what differs, by mapping, and on request what does not. Pure; for threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from backend.cli.env_diff import read_side
from backend.cli.render_config import value_text
from backend.config.diff_view import Diff, Difference, Held, Side, compare, side_of
from backend.config.nodes import KeyPath, Node, Origin, find, format_path
from backend.config.resolve_view import ResolvedView
from backend.config.stages import READ, STAGES, VALIDATED
from backend.io.text import clean_line
from screens.config.tree_rows import held, hidden
from screens.config.why_blocks import place_text
from screens.widgets import glyphs
from screens.widgets.columns import Column
from screens.widgets.formatting import count
from screens.widgets.virtual_list import Cell, Row

NOW = "now"
"""How the configuration on screen is named as a side."""
SIDE_COLUMNS = (
    Column("sign", "", 1),
    Column("key", "KEY", least=12),
    Column("value", "VALUE", least=12),
    Column("from", "FROM", 12, keep_end=True, keep=1),
)
INLINE_COLUMNS = (
    Column("sign", "", 1),
    Column("key", "KEY", least=16),
    Column("value", "VALUE", least=16),
    Column("from", "FROM", 26, keep_end=True, keep=1),
)

_OWN = frozenset((NOW, *STAGES))
Kind = Literal["head", "added", "removed", "changed", "equal", "note"]
_SIGNS = {"added": ("", "+"), "removed": ("-", ""), "changed": ("~", "~"), "equal": ("=", "=")}
_STYLES = {"added": "good", "removed": "bad", "changed": "warn", "equal": "muted", "note": "muted", "head": "strong"}


@dataclass(frozen=True, slots=True)
class Cells:
    """What one side shows of a key."""

    value: str
    source: str


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One key, or the head of a mapping."""

    kind: Kind
    key: str
    label: str
    left: Cells | None = None
    right: Cells | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides, compared."""

    left: str
    right: str
    """Titles."""
    lines: tuple[DiffLine, ...]
    diff: Diff
    remarks: tuple[str, ...] = ()


class _Places:
    """How one side names who set a value: by the layers on screen where it is a stage of them."""

    def __init__(self, view: ResolvedView, shown: Callable[[str], str], *, own: bool) -> None:
        self.shown = shown
        layers = view.layers if own else ()
        self._numbers = {str(layer.file) if layer.file else layer.title: layer.number for layer in layers}

    def source(self, origin: Origin) -> str:
        """`L2:9`, or the place in full."""
        number = self._numbers.get(origin.file or origin.text)
        if number is None:
            return place_text(origin, self.shown)
        return f"L{number}:{origin.line}" if origin.line else f"L{number}"


Sides = tuple[_Places, _Places]


def named_side(text: str, name: str, view: ResolvedView, tell: Callable[[str], None]) -> Side:
    """The side that somebody named: `now`, a stage of it, a run, a file, or arguments of `gym env resolve`."""
    if text == NOW:
        return side_of(view, NOW, next(reversed(list(view.trees)), VALIDATED))
    if text in STAGES and text != READ:
        return side_of(view, f"{NOW} · {text}", text)
    return read_side(text, name, tell=tell)


def compare_sides(sides: tuple[str, str], view: ResolvedView, *, all_keys: bool, shown: Callable[[str], str]) -> Comparison:
    """Compare two sides; with `all_keys`, keys that are equal are lines as well."""
    remarks: list[str] = []
    left, right = (named_side(text, name, view, remarks.append) for text, name in zip(sides, "AB", strict=True))
    diff = compare(left, right)
    places = (_Places(view, shown, own=sides[0] in _OWN), _Places(view, shown, own=sides[1] in _OWN))
    lines = tuple(_lines(diff, left, right, places, all_keys=all_keys))
    return Comparison(shown(left.title), shown(right.title), lines, diff, tuple(remarks))


def _lines(diff: Diff, left: Side, right: Side, places: Sides, *, all_keys: bool) -> Iterator[DiffLine]:
    groups: dict[KeyPath, list[DiffLine]] = {}
    for path, line in _by_path(diff, left, right, places, all_keys=all_keys):
        groups.setdefault(path[:-1], []).append(line)
    for parent, lines in groups.items():
        if parent:
            yield DiffLine("head", format_path(parent), format_path(parent))
        yield from lines
    sign = glyphs.current().ellipsis
    if diff.incomparable:
        keys = ", ".join(diff.incomparable)
        yield DiffLine("note", "", f"{sign} masked in a run record, so nobody can compare them: {keys}")
    if diff.equal and not all_keys:
        yield DiffLine("note", "", f"{sign} {count(diff.equal)} equal key{'' if diff.equal == 1 else 's'} folded")


def _by_path(diff: Diff, left: Side, right: Side, places: Sides, *, all_keys: bool) -> Iterator[tuple[KeyPath, DiffLine]]:
    """The lines of all keys, those of the left side in its order, then what only the right one has."""
    waiting = {difference.path: difference for difference in diff.differences}
    if all_keys:
        for path, node in _leaves(left.root):
            if path in waiting:
                yield path, _difference_line(waiting.pop(path), places)
            elif (other := find(right.root, path)) is not None:
                yield path, _equal_line(path, (left, node), (right, other), places)
    for path, difference in waiting.items():
        yield path, _difference_line(difference, places)


def _leaves(node: Node, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Node]]:
    """What is compared as one value: scalars, empty containers, lists of scalars."""
    items = node.value.items() if isinstance(node.value, dict) else enumerate(node.value) if isinstance(node.value, list) else ()
    is_plain = isinstance(node.value, list) and not any(isinstance(item.value, dict | list) for item in node.value)
    if is_plain or not node.value or not isinstance(node.value, dict | list):
        yield path, node
        return
    for key, item in items:
        yield from _leaves(item, (*path, key))


def _equal_line(path: KeyPath, left: tuple[Side, Node], right: tuple[Side, Node], places: Sides) -> DiffLine:
    secret = any(side.masker.is_secret(path, node.history) for side, node in (left, right))
    cells = [
        Cells(
            hidden() if secret else place.shown(value_text(side.masker.value(node.value, secret=False))),
            place.source(side.masker.origin(node.source)),
        )
        for (side, node), place in zip((left, right), places, strict=True)
    ]
    return DiffLine("equal", format_path(path), format_path(path[-1:]), *cells)


def _difference_line(difference: Difference, places: Sides) -> DiffLine:
    cells = [_cells(each, difference, place) for each, place in zip((difference.left, difference.right), places, strict=True)]
    return DiffLine(difference.kind, difference.key, format_path(difference.path[-1:]), *cells)


def _cells(each: Held | None, difference: Difference, place: _Places) -> Cells | None:
    if each is None:
        return None
    if difference.secret:
        value = "changed (secret)" if difference.kind == "changed" else hidden()
    elif isinstance(each.value, list):
        value = value_text(each.value)
    else:
        value = held(each.shape, each.value, secret=False)
    return Cells(place.shown(value), place.source(each.origin))


def side_rows(comparison: Comparison, side: int) -> LineRows:
    """The rows of the left (0) or right (1) side; both have as many."""
    rows = []
    for line in comparison.lines:
        cells = (line.left, line.right)[side]
        sign = _SIGNS[line.kind][side] if line.kind in _SIGNS else ""
        rows.append(_row(line, sign, cells, side))
    return LineRows(rows, [line.key for line in comparison.lines], _changes(comparison.lines))


def inline_rows(comparison: Comparison) -> LineRows:
    """Both sides in one column: what goes, and below it what comes."""
    rows: list[Row] = []
    keys: list[str] = []
    changes: list[int] = []
    for line in comparison.lines:
        pairs = (
            [("-", line.left, 0), ("+", line.right, 1)] if line.kind in ("changed", "added", "removed") else [("", line.left, 0)]
        )
        if line.kind in ("changed", "added", "removed"):
            changes.append(len(rows))
        for sign, cells, side in pairs:
            if cells is not None or not sign:
                rows.append(_row(line, sign or ("=" if line.kind == "equal" else ""), cells, side, inline=True))
                keys.append(line.key)
    return LineRows(rows, keys, changes)


def _row(line: DiffLine, sign: str, cells: Cells | None, side: int, *, inline: bool = False) -> Row:
    style = _STYLES[line.kind]
    if inline and line.kind == "changed":
        style = "bad" if side == 0 else "good"
    if line.kind in ("head", "note"):
        return Row((), heading=Cell(line.label, style))
    if cells is None:
        return Row(("", "", "", ""))
    label = Cell(f"  {clean_line(line.label, 200)}", "muted" if line.kind == "equal" else "plain")
    return Row((Cell(sign, style), label, Cell(clean_line(cells.value, 400), style), Cell(cells.source, "muted")))


def _changes(lines: Sequence[DiffLine]) -> list[int]:
    return [index for index, line in enumerate(lines) if line.kind in ("changed", "added", "removed")]


class LineRows:
    """Rows that are ready, and which of them are changes."""

    def __init__(self, rows: Sequence[Row], keys: Sequence[str], changes: Sequence[int]) -> None:
        self._rows = rows
        self.keys = keys
        self.changes = changes

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, index: int) -> Row:
        return self._rows[index]

    def key(self, index: int) -> tuple[str, int]:
        return (self.keys[index], sum(1 for key in self.keys[max(0, index - 1) : index] if key == self.keys[index]))

    def index_of(self, key: object) -> int | None:
        return next((index for index in range(len(self)) if self.key(index) == key), None)


def as_text(comparison: Comparison) -> str:
    """The differences as text, with `-` and `+`."""
    lines = [f"--- {comparison.left}", f"+++ {comparison.right}"]
    for line in comparison.lines:
        if line.kind in ("head", "note"):
            lines.append(line.label)
            continue
        pairs = [(" ", line.left)] if line.kind == "equal" else [("-", line.left), ("+", line.right)]
        lines += [f"{sign} {line.key}: {cells.value}  ({cells.source})" for sign, cells in pairs if cells is not None]
    return "\n".join(lines) + "\n"
