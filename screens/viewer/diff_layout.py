"""Two rollouts side by side as rows of a width: turns opposite each other, and inside a turn that differs the words that do. Pure; for threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from backend.io.text import clean, clean_line
from backend.rollouts.transcript import Transcript, Turn
from backend.rollouts.transcript_diff import Pair, Relation, align, word_diff
from screens.viewer.conversation import shown_body
from screens.widgets import glyphs
from screens.widgets.formatting import count
from screens.widgets.text_gate import fit
from screens.widgets.wrapping import WrappedText

LEFT_MARKS, RIGHT_MARKS = ("[-", "-]"), ("{+", "+}")
"""What stands around words that only one side has."""
LONGEST_BODY = 100_000
"""Characters of a turn that are laid out."""
_SLICE = 50_000
"""What is spent on wrapping at a time, about a millisecond."""
_LINES_BETWEEN_RESTS = 500
_INDENT = "  "
_HEAD_SHARE = 0.55


class Span(NamedTuple):
    """A piece of a row and its style: one of `STYLES`."""

    text: str
    style: str


STYLES = ("plain", "head", "equal", "differs", "only", "marked", "muted")


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One row of both sides."""

    left: tuple[Span, ...]
    right: tuple[Span, ...]
    pair: int
    is_head: bool


@dataclass(frozen=True, slots=True)
class DiffLayout:
    """All rows, where the pairs begin, and which of those differ."""

    rows: tuple[DiffRow, ...] = ()
    heads: tuple[int, ...] = ()
    differences: tuple[int, ...] = ()
    """Rows of the heads of pairs that are not equal."""
    width: int = 0


def lay_out(left: Transcript, right: Transcript, width: int, *, show_equal: bool, rest: Callable[[], bool]) -> DiffLayout:
    """The rows of two conversations for sides of `width` cells; equal turns are folded unless `show_equal`.

    `rest` is called every few milliseconds and may sleep, so that other threads come to draw; False from it ends the work.
    """
    rows: list[DiffRow] = []
    heads: list[int] = []
    differences: list[int] = []
    for number, pair in enumerate(align(left, right)):
        if not rest():
            break
        a = left.turns[pair.left] if pair.left is not None else None
        b = right.turns[pair.right] if pair.right is not None else None
        heads.append(len(rows))
        if pair.relation is not Relation.EQUAL:
            differences.append(len(rows))
        folded = pair.relation is Relation.EQUAL and not show_equal
        rows.append(DiffRow(_head(a, pair, width, folded), _head(b, pair, width, folded), number, True))
        if not folded:
            sides = _bodies(a, b, max(8, width - len(_INDENT)), rest)
            rows += [DiffRow(one, other, number, False) for one, other in zip_longest(*sides, fillvalue=())]
    return DiffLayout(tuple(rows), tuple(heads), tuple(differences), width)


def plain_rows(layout: DiffLayout) -> str:
    """The rows as text of two columns."""
    lines = (f"{fit(_text(row.left), layout.width)} {glyphs.current().gutter} {_text(row.right)}".rstrip() for row in layout.rows)
    return "\n".join(lines) + "\n"


def _text(spans: Sequence[Span]) -> str:
    return "".join(span.text for span in spans)


def _head(turn: Turn | None, pair: Pair, width: int, folded: bool) -> tuple[Span, ...]:
    if turn is None:
        return (Span(glyphs.current().nothing, "muted"),)
    facts = [turn.title]
    if turn.tokens is not None:
        facts.append(f"{count(turn.tokens)} tok")
    if turn.end and turn.end != "stop":
        facts.append("cut off (length)" if turn.end == "length" else f"end: {turn.end}")
    if turn.error:
        facts.append("error")
    name = clean_line("  ".join(part for part in (f"{turn.kind!s:<11}", *facts) if part), 200)
    relation, style = {
        Relation.EQUAL: ("= equal, folded" if folded else "= equal", "equal"),
        Relation.DIFFERS: ("~ differs", "differs"),
        Relation.LEFT_ONLY: ("! only here", "only"),
        Relation.RIGHT_ONLY: ("! only here", "only"),
    }[pair.relation]
    room = max(8, min(width - len(relation) - 1, round(width * _HEAD_SHARE)))
    return (Span(fit(name, room), "head"), Span(" ", "plain"), Span(relation, style))


def _bodies(
    left: Turn | None, right: Turn | None, width: int, rest: Callable[[], bool]
) -> tuple[list[tuple[Span, ...]], list[tuple[Span, ...]]]:
    texts = [clean(shown_body(turn)[:LONGEST_BODY]) if turn is not None else "" for turn in (left, right)]
    if left is None or right is None:
        return _wrapped(texts[0], (), LEFT_MARKS, width, rest), _wrapped(texts[1], (), RIGHT_MARKS, width, rest)
    found = word_diff(*texts)
    rest()
    sides = _wrapped(texts[0], found.left, LEFT_MARKS, width, rest), _wrapped(texts[1], found.right, RIGHT_MARKS, width, rest)
    for turn, side in zip((left, right), sides, strict=True):
        if len(turn.body) > LONGEST_BODY:
            side.append(
                (Span(f"{_INDENT}{glyphs.current().ellipsis} {count(len(turn.body) - LONGEST_BODY)} more characters", "muted"),)
            )
    return sides


def _wrapped(
    text: str, spans: Sequence[tuple[int, int]], marks: tuple[str, str], width: int, rest: Callable[[], bool]
) -> list[tuple[Span, ...]]:
    """A text in lines, what `spans` cover between marks and styled."""
    pieces, marked, at, size = [], [], 0, 0
    for begin, end in spans:
        before, inside = text[at:begin], marks[0] + text[begin:end] + marks[1]
        pieces += [before, inside]
        marked.append((size + len(before), size + len(before) + len(inside)))
        size += len(before) + len(inside)
        at = end
    pieces.append(text[at:])
    wrapped = WrappedText("".join(pieces), width)
    while not wrapped.finished and rest():
        wrapped.extend(1 << 62, _SLICE)
    rows, next_mark = [], 0
    for number, (start, line) in enumerate(zip(wrapped.starts, wrapped.lines, strict=True)):
        if number % _LINES_BETWEEN_RESTS == _LINES_BETWEEN_RESTS - 1:
            rest()
        while next_mark < len(marked) and marked[next_mark][1] <= start:
            next_mark += 1
        rows.append((Span(_INDENT, "plain"), *_styled(line, start, marked, next_mark)))
    return rows


def _styled(line: str, start: int, marked: Sequence[tuple[int, int]], first: int) -> list[Span]:
    spans, at, end = [], start, start + len(line)
    for begin, until in marked[first:]:
        if begin >= end:
            break
        if begin > at:
            spans.append(Span(line[at - start : begin - start], "plain"))
        spans.append(Span(line[max(begin, at) - start : until - start], "marked"))
        at = min(until, end)
    if at < end:
        spans.append(Span(line[at - start :], "plain"))
    return spans
