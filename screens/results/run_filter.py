"""Narrows the list of runs as somebody types, and says which letters matched."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from backend.rollouts.run_entry import RunEntry
from backend.rollouts.run_query import parse_run_query

_TERM = re.compile(r"-.|[A-Za-z_]+[:<>=]")
_NAME_TERM = re.compile(r"(?:name|benchmark|model)[:=](.+)", re.DOTALL | re.IGNORECASE)
_COMPARED_NAMES = 400


@dataclass(frozen=True, slots=True)
class Matches:
    """The runs that pass, in the order given."""

    runs: list[RunEntry]
    words: tuple[str, ...] = ()
    """What to light, in small letters."""
    fuzzy: bool = False
    """No run has the words as they are: these have their letters, in that order."""


def matching_runs(runs: Sequence[RunEntry], text: str, now: float) -> Matches:
    """The runs that `text` lets pass; raises `GymError` for a filter that cannot be understood.

    Only when no run has the words as they are typed, those count that have their letters in order in name, benchmark or model.
    """
    query = parse_run_query(text)
    terms, words = _split(text)
    lit = (*words, *(match[1].lower() for term in terms if (match := _NAME_TERM.fullmatch(term))))
    passing = [run for run in runs if query.matches(run, now)]
    if passing or not words:
        return Matches(passing, lit)
    query = parse_run_query(shlex.join(terms))
    near = [run for run in runs if query.matches(run, now) and all(_has_letters(run, word) for word in words)]
    return Matches(near, lit, fuzzy=True)


def nearest_names(runs: Sequence[RunEntry], text: str, most: int = 3) -> list[str]:
    """Names of runs that look like what was typed."""
    try:
        typed = " ".join(_split(text)[1])
    except ValueError:  # a quote without its partner
        return []
    names = list(dict.fromkeys(run.name for run in runs[:_COMPARED_NAMES]))
    by_end = {name.rpartition("/")[2].lower(): name for name in reversed(names)}
    near = difflib.get_close_matches(typed, list(by_end), n=most, cutoff=0.4) if typed else []
    return [by_end[end] for end in near]


def lit_letters(text: str, words: Sequence[str], *, fuzzy: bool) -> tuple[int, ...]:
    """Positions of the letters of `text` that the words match."""
    low = text.lower()
    if len(low) != len(text):  # a few capitals have two small letters
        return ()
    found: set[int] = set()
    for word in words:
        begin = low.find(word)
        if begin >= 0:
            found.update(range(begin, begin + len(word)))
        elif fuzzy:
            found.update(_letters_in_order(low, word) or ())
    return tuple(sorted(found))


def _split(text: str) -> tuple[list[str], tuple[str, ...]]:
    """The conditions of a filter, and its plain words in small letters."""
    pieces = shlex.split(text)
    return [piece for piece in pieces if _TERM.match(piece)], tuple(piece.lower() for piece in pieces if not _TERM.match(piece))


def _has_letters(run: RunEntry, word: str) -> bool:
    return any(_letters_in_order(text.lower(), word) is not None for text in (run.name, run.benchmark or "", run.model or ""))


def _letters_in_order(text: str, word: str) -> list[int] | None:
    positions, at = [], -1
    for letter in word:
        at = text.find(letter, at + 1)
        if at < 0:
            return None
        positions.append(at)
    return positions
