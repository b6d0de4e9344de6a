"""The language of the viewer's filter: `reward<1 task:183 fail:timeout end:length sort:-reward "some words"`.

All parts must hold. A part is `FIELD OPERATOR VALUE`, or a word, or several words in double quotes, to be found in the row's text; `!` in front
of a part turns it round.

- numbers: `reward`, `task`, `rollout`, `tokens` (generated), `size` (bytes) with `<`, `<=`, `>`, `>=`, `=` (or `:`), `!=`; also lists `task:1,2` and ranges `task:3..7`.
  A row without the value fits no comparison.
- texts: `fail`, `end`, `agent` with `:` for a part of the text in any case, `=` and `!=` for the whole; `any` and `none` for some value and no value.
- `task:NAME` where tasks have names. `is:` failed, scored, unreadable, superseded, big.
- `sort:FIELD`, downwards with `sort:-FIELD`; rows without the value come last.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from backend.errors import GymError, did_you_mean

NUMBER_FIELDS = ("reward", "task", "rollout", "tokens", "size")
TEXT_FIELDS = ("fail", "end", "agent")
STATES = ("failed", "scored", "unreadable", "superseded", "big")
SORT_FIELDS = (*NUMBER_FIELDS, *TEXT_FIELDS, "file")
_FIELDS = (*NUMBER_FIELDS, *TEXT_FIELDS, "is", "sort")

_PARTS = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
_CONDITION = re.compile(r"(?P<field>[A-Za-z_]+)(?P<operator><=|>=|!=|<|>|=|:)(?P<value>.*)", re.DOTALL)
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip


class QueryError(GymError):
    """A filter cannot be understood."""


@dataclass(frozen=True, slots=True)
class NumberCondition:
    """A field compared with one number, or with several of which one must be equal."""

    field: str
    operator: str
    values: tuple[float, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class RangeCondition:
    """A field between two numbers, both included."""

    field: str
    low: float
    high: float
    negated: bool = False


@dataclass(frozen=True, slots=True)
class TextCondition:
    """A field's text: `:` contains it, `=` is it; `text` None stands for having no value at all."""

    field: str
    operator: str
    text: str | None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class StateCondition:
    state: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """Text to be found in a row."""

    text: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Sort:
    field: str
    descending: bool = False


Condition = NumberCondition | RangeCondition | TextCondition | StateCondition


@dataclass(frozen=True, slots=True)
class Query:
    """What a list shows and in which order; empty means all rows in file order."""

    conditions: tuple[Condition, ...] = ()
    words: tuple[Word, ...] = ()
    sort: Sort | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.conditions or self.words or self.sort)


def parse_query(text: str) -> Query:
    """The query that `text` asks for; raises `QueryError` naming the part that is wrong and what could stand there."""
    conditions: list[Condition] = []
    words: list[Word] = []
    sort: Sort | None = None
    for part in _PARTS.findall(text):
        negated = part.startswith("!") and len(part) > 1
        body = part[1:] if negated else part
        match = None if body.startswith('"') else _CONDITION.fullmatch(body)
        if match is None:
            if word := body.replace('"', ""):
                words.append(Word(word, negated))
            continue
        field, sign, value = match["field"].lower(), match["operator"], match["value"].replace('"', "")
        if field == "sort":
            if sort or negated:
                raise QueryError(f"`{part}`: a filter has one `sort:`, without `!`", hint="`sort:-reward` sorts downwards")
            sort = _sort(part, value)
        else:
            conditions.append(_condition(part, field, sign, value, negated))
    return Query(tuple(conditions), tuple(words), sort)


def _condition(part: str, field: str, sign: str, value: str, negated: bool) -> Condition:
    if field not in _FIELDS:
        near = did_you_mean(field, _FIELDS)
        raise QueryError(
            f"`{part}`: there is no field `{field}`",
            hint=f"{near} " * bool(near) + f'Fields are {", ".join(_FIELDS)}; quote text to be searched: "{part}"',
        )
    if not value:
        raise QueryError(f"`{part}`: a value is missing", hint=f"for example `{_example(field)}`")
    if field in TEXT_FIELDS:
        if sign not in (":", "=", "!="):
            raise QueryError(f"`{part}`: `{field}` is a text and takes `:`, `=` or `!=`", hint=f"for example `{_example(field)}`")
        nothing = value.lower() in ("none", "any")
        negated ^= (sign == "!=") ^ (value.lower() == "any")
        return TextCondition(field, ":" if sign == ":" else "=", None if nothing else value.lower(), negated)
    if field == "is":
        if value.lower() not in STATES or sign not in (":", "="):
            raise QueryError(f"`{part}`: `is:` takes one of {', '.join(STATES)}", hint=did_you_mean(value.lower(), STATES))
        return StateCondition(value.lower(), negated)
    return _number_condition(part, field, "=" if sign == ":" else sign, value, negated)


def _number_condition(part: str, field: str, sign: str, value: str, negated: bool) -> Condition:
    try:
        if sign == "=" and ".." in value:
            low, _, high = value.partition("..")
            return RangeCondition(field, float(low or "-inf"), float(high or "inf"), negated)
        numbers = tuple(float(piece) for piece in value.split(",")) if sign in ("=", "!=") else (float(value),)
    except ValueError:
        if field == "task" and sign in ("=", "!="):  # tasks may have names
            return TextCondition(field, "=", value, negated ^ (sign == "!="))
        raise QueryError(f"`{part}`: `{value}` is not a number", hint=f"for example `{_example(field)}`") from None
    if sign == "!=":  # none of several
        return NumberCondition(field, "!=" if len(numbers) == 1 else "=", numbers, negated ^ (len(numbers) > 1))
    return NumberCondition(field, sign, numbers, negated)


def _sort(part: str, value: str) -> Sort:
    field = value.removeprefix("-").lower()
    if field not in SORT_FIELDS:
        raise QueryError(f"`{part}`: rows are sorted by {', '.join(SORT_FIELDS)}", hint=did_you_mean(field, SORT_FIELDS))
    return Sort(field, value.startswith("-"))


def _example(field: str) -> str:
    examples = {"reward": "reward<1", "task": "task:3..7", "fail": "fail:timeout", "end": "end:length", "is": "is:failed"}
    return examples.get(field, f"{field}:{'math' if field in TEXT_FIELDS else 100}")
