"""Two conversations side by side: turns aligned first, then words inside a turn that differs."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Any

from backend.rollouts.transcript import Transcript, Turn

_MOST_TURNS = 2000
_MOST_WORDS = 20_000
"""Of both texts together; beyond, lines are compared."""
_COMPARED_EXACTLY = 1000
_MOST_LINES = 20_000
_LARGEST_COMPARED = 4 << 20
_WORDS = re.compile(r"\w+|[^\w\s]")
_LINES = re.compile(r"[^\n]+")


class Relation(StrEnum):
    """How the two sides of a pair relate."""

    EQUAL = "equal"
    DIFFERS = "differs"
    LEFT_ONLY = "left only"
    RIGHT_ONLY = "right only"


@dataclass(frozen=True, slots=True)
class Pair:
    """Indices of the turns that stand side by side."""

    left: int | None
    right: int | None
    relation: Relation


@dataclass(frozen=True, slots=True)
class TextDiff:
    """The parts of two texts that are not in the other: pairs of begin and end."""

    left: tuple[tuple[int, int], ...]
    right: tuple[tuple[int, int], ...]
    unit: str
    """What was compared: `words`, `lines`, or `whole` texts when they are too large for either."""


def align(left: Transcript, right: Transcript) -> tuple[Pair, ...]:
    """The turns of two conversations in order, equal ones opposite each other; ones that differ are opposite one of the same kind."""
    pairs = []
    for tag, a, b in _blocks([_identity(turn) for turn in left.turns], [_identity(turn) for turn in right.turns], _MOST_TURNS):
        if tag == "equal":
            pairs += [Pair(i, j, Relation.EQUAL) for i, j in zip(a, b, strict=True)]
        else:
            pairs += _by_kind(left.turns, a, right.turns, b)
    return tuple(pairs)


def word_diff(left: str, right: str) -> TextDiff:
    """Where two texts differ: by words, in texts of more than 20,000 words by lines, in still larger ones as wholes."""
    if left == right:
        return TextDiff((), (), "words")
    if len(left) + len(right) <= _LARGEST_COMPARED:
        for unit, pattern, most in (("words", _WORDS, _MOST_WORDS), ("lines", _LINES, _MOST_LINES)):
            a, b = list(pattern.finditer(left)), list(pattern.finditer(right))
            if len(a) + len(b) <= most:
                return _diff(a, b, unit)
    return TextDiff(_whole(left), _whole(right), "whole")


def _diff(left: list[re.Match[str]], right: list[re.Match[str]], unit: str) -> TextDiff:
    spans: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for tag, a, b in _blocks([match[0] for match in left], [match[0] for match in right], len(left) + len(right)):
        if tag != "equal":
            for matches, indices, found in ((left, a, spans[0]), (right, b, spans[1])):
                if indices:
                    found.append((matches[indices[0]].start(), matches[indices[-1]].end()))
    return TextDiff(tuple(spans[0]), tuple(spans[1]), unit)


def _whole(text: str) -> tuple[tuple[int, int], ...]:
    return ((0, len(text)),) if text else ()


def _by_kind(left: Sequence[Turn], a: range, right: Sequence[Turn], b: range) -> Iterator[Pair]:
    """Pairs of the turns in two stretches without equal ones: those of one kind and title opposite each other, in order."""
    kinds: tuple[list[Any], list[Any]] = (
        [(left[i].kind, left[i].title) for i in a],
        [(right[j].kind, right[j].title) for j in b],
    )
    for tag, same, other in _blocks(*kinds, _MOST_TURNS):
        if tag == "equal":
            for i, j in zip(same, other, strict=True):
                yield Pair(a[i], b[j], Relation.DIFFERS)
        else:
            yield from (Pair(a[i], None, Relation.LEFT_ONLY) for i in same)
            yield from (Pair(None, b[j], Relation.RIGHT_ONLY) for j in other)


def _identity(turn: Turn) -> tuple[Hashable, ...]:
    return turn.kind, turn.title, turn.body


def _blocks(left: Sequence[Hashable], right: Sequence[Hashable], most: int) -> Iterator[tuple[str, range, range]]:
    """Stretches of both sequences, `equal` or not; common ends are taken off first, and beyond `most` elements each only these are found."""
    head = _common(left, right, lambda sequence, at: sequence[at], min(len(left), len(right)))
    tail = _common(left, right, lambda sequence, at: sequence[-1 - at], min(len(left), len(right)) - head)
    if head:
        yield "equal", range(head), range(head)
    a, b = left[head : len(left) - tail], right[head : len(right) - tail]
    if max(len(a), len(b)) > most:
        yield "replace", range(head, head + len(a)), range(head, head + len(b))
    else:
        # Passing over frequent words costs precision, and keeps long texts of few different words from taking minutes.
        matcher = SequenceMatcher(None, a, b, autojunk=len(a) + len(b) > _COMPARED_EXACTLY)
        for tag, i, i_end, j, j_end in matcher.get_opcodes():
            yield tag, range(head + i, head + i_end), range(head + j, head + j_end)
    if tail:
        yield "equal", range(len(left) - tail, len(left)), range(len(right) - tail, len(right))


def _common(
    left: Sequence[Hashable], right: Sequence[Hashable], at: Callable[[Sequence[Hashable], int], Hashable], most: int
) -> int:
    count = 0
    while count < most and at(left, count) == at(right, count):
        count += 1
    return count
