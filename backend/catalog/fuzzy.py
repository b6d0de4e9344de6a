"""Fuzzy matching of what somebody types against names: the letters in order, with gaps, and how well they sit.

A match scores higher the more letters follow each other, begin words, or stand at the beginning, and the shorter the text is.
Case does not count. Pure and fast: some microseconds a name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_LETTER = 16
_FOLLOWS = 16
"""Bonus of a letter right after the one before it."""
_BEGINS_WORD = 10
_BEGINS_TEXT = 8
_SKIPPED = 1
"""Cost of a letter between two matched ones, of at most `_LARGEST_GAP`."""
_LARGEST_GAP = 12
_WHOLE = 40
_LENGTH_SHARE = 3
"""The letters that are left over cost one point for each of these."""
_MOST_STARTS = 6


@dataclass(frozen=True, slots=True)
class Match:
    """A text in which the letters were found."""

    score: int
    positions: tuple[int, ...]
    """Indices of the matched characters in the text, ascending."""


def fuzzy_match(wanted: str, text: str) -> Match | None:
    """How `wanted` is found in `text`; None when its characters do not occur there in this order. Nothing is found everywhere."""
    needle, folded = _folded(wanted), _folded(text)
    if not needle:
        return Match(0, ())
    leftmost = _leftmost(needle, folded)
    if leftmost is None:
        return None
    if folded.startswith(needle):  # nothing can be better
        return Match(_score(leftmost, folded), leftmost)
    score, positions = max((_score(positions, folded), positions) for positions in {leftmost, *_alignments(needle, folded)})
    return Match(score, positions)


def _alignments(needle: str, text: str) -> Iterator[tuple[int, ...]]:
    """Good ways to lay the needle into the text: in one piece where it is there in one piece, else from each start with preference for words."""
    whole = -1
    for _ in range(_MOST_STARTS):
        whole = text.find(needle, whole + 1)
        if whole < 0:
            break
        yield tuple(range(whole, whole + len(needle)))
    start = -1
    for _ in range(_MOST_STARTS):
        start = text.find(needle[0], start + 1)
        if start < 0:
            return
        if positions := _from(start, needle, text):
            yield positions


def _from(start: int, needle: str, text: str) -> tuple[int, ...] | None:
    positions = [start]
    for char in needle[1:]:
        following = positions[-1] + 1
        if text.startswith(char, following):
            positions.append(following)
            continue
        place = text.find(char, following)
        if place < 0:
            return None
        word = place
        while word >= 0 and not _begins_word(word, text):
            word = text.find(char, word + 1)
        positions.append(word if word >= 0 else place)
    return tuple(positions)


def _leftmost(needle: str, text: str) -> tuple[int, ...] | None:
    positions = []
    place = -1
    for char in needle:
        place = text.find(char, place + 1)
        if place < 0:
            return None
        positions.append(place)
    return tuple(positions)


def _score(positions: tuple[int, ...], text: str) -> int:
    score = _LETTER * len(positions) - (len(text) - len(positions)) // _LENGTH_SHARE
    before = None
    for place in positions:
        if before is not None:
            gap = place - before - 1
            score += _FOLLOWS if gap == 0 else -_SKIPPED * min(gap, _LARGEST_GAP)
        if _begins_word(place, text):
            score += _BEGINS_WORD if place else _BEGINS_WORD + _BEGINS_TEXT
        before = place
    return score + (_WHOLE if len(positions) == len(text) else 0)


def _begins_word(place: int, text: str) -> bool:
    """Whether a word begins here: after anything that is no letter or digit, and where digits follow letters."""
    if place == 0:
        return True
    before = text[place - 1]
    return not before.isalnum() or (text[place].isdigit() and before.isalpha())


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    """Lower case, each character still one character."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(low if len(low := char.lower()) == 1 else char for char in text)
