"""Filters and orders of a list of runs, as people type them: `state:died benchmark:first score<0.5 word`."""

from __future__ import annotations

import operator
import re
import shlex
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from backend.errors import GymError, did_you_mean
from backend.rollouts.run_entry import STATES, RunEntry

_TERM = re.compile(r"(?P<key>[A-Za-z_]+)(?P<sign>:|<=|>=|<|>|=)(?P<value>.*)", re.DOTALL)
_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[smhdw]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, ":": operator.eq,
}  # fmt: skip

_TEXTS: Mapping[str, Callable[[RunEntry], str]] = {
    "state": lambda run: run.state,
    "benchmark": lambda run: run.benchmark or "",
    "model": lambda run: run.model or "",
    "agent": lambda run: " ".join(run.agents),
    "name": lambda run: run.name,
    "host": lambda run: run.host or "",
}
_NUMBERS: Mapping[str, Callable[[RunEntry], float | None]] = {
    "score": lambda run: run.headline.fraction if run.headline else None,
    "scored": lambda run: run.scored,
    "failed": lambda run: run.failed,
    "missing": lambda run: run.missing,
    "planned": lambda run: run.planned,
}
_AGE = "age"


@dataclass(frozen=True, slots=True)
class SortKey:
    """An order of runs: its title, and what it compares. Runs without a value come last, whichever way it goes."""

    title: str
    value: Callable[[RunEntry], float | str | None]
    descending: bool = False
    """The way it goes at first."""


SORT_KEYS: Mapping[str, SortKey] = {
    "age": SortKey("newest first", lambda run: run.when, descending=True),
    "score": SortKey("score", _NUMBERS["score"], descending=True),
    "name": SortKey("name", lambda run: run.name.lower()),
    "failed": SortKey("failures", _NUMBERS["failed"], descending=True),
    "state": SortKey("state", lambda run: float(STATES.index(run.state))),
    "benchmark": SortKey("benchmark", lambda run: run.benchmark.lower() if run.benchmark else None),
    "model": SortKey("model", lambda run: run.model.lower() if run.model else None),
    "scored": SortKey("scored", _NUMBERS["scored"], descending=True),
    "missing": SortKey("missing", _NUMBERS["missing"], descending=True),
}


@dataclass(frozen=True, slots=True)
class RunQuery:
    """A parsed filter: every condition has to hold."""

    text: str
    conditions: tuple[Callable[[RunEntry, float], bool], ...] = ()
    """Each takes a run and the present time."""

    def matches(self, run: RunEntry, now: float | None = None) -> bool:
        moment = time.time() if now is None else now
        return all(condition(run, moment) for condition in self.conditions)


def parse_run_query(text: str) -> RunQuery:
    """The filter that `text` means; the empty text lets every run pass. Raises `GymError` for what cannot be understood.

    `state:`, `benchmark:`, `model:`, `agent:`, `name:` and `host:` look for a part of the text, whatever its case; `score`, `scored`,
    `failed`, `missing` and `planned` compare (`<`, `<=`, `>`, `>=`, `=`) with a number, scores on the scale from 0 to 1, and `age`
    with a duration such as `90m`, `2h` or `3d`. Any other word has to be in one of these texts or in the path. A `-` in front of a term
    turns it round; quotes keep blanks together.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        raise GymError("the filter has a quote without its partner", hint="""write both, as in name:"two words\"""") from None
    return RunQuery(text, tuple(map(_condition, words)))


def sort_runs(runs: Iterable[RunEntry], key: str = "age", *, reverse: bool = False) -> list[RunEntry]:
    """The runs in one of `SORT_KEYS`' orders, or the other way round. Raises `GymError` for an unknown order."""
    order = SORT_KEYS.get(key)
    if order is None:
        raise GymError(f"runs cannot be sorted by `{key}`", hint=f"one of {', '.join(SORT_KEYS)}")
    valued = [(value, run) for run in runs if (value := order.value(run)) is not None]
    without = [run for run in runs if order.value(run) is None]
    valued.sort(key=lambda pair: pair[0], reverse=order.descending != reverse)
    return [run for _, run in valued] + without


def _condition(word: str) -> Callable[[RunEntry, float], bool]:
    if word.startswith("-") and len(word) > 1:
        positive = _condition(word[1:])
        return lambda run, now: not positive(run, now)
    term = _TERM.fullmatch(word)
    if term is None:
        return _contains(word)
    key, sign, value = term["key"].lower(), term["sign"], term["value"]
    if key in _TEXTS:
        return _text_condition(key, sign, value)
    if key in _NUMBERS:
        return _number_condition(key, sign, value)
    if key == _AGE:
        return _age_condition(sign, value)
    known = (*_TEXTS, *_NUMBERS, _AGE)
    raise GymError(f"runs have no `{key}`", hint=did_you_mean(key, known) or f"known are {', '.join(known)}")


def _contains(word: str) -> Callable[[RunEntry, float], bool]:
    wanted = word.lower()

    def holds(run: RunEntry, _now: float) -> bool:
        texts = [text(run) for text in _TEXTS.values()]
        return any(wanted in text.lower() for text in (*texts, str(run.paths.rollouts)))

    return holds


def _text_condition(key: str, sign: str, value: str) -> Callable[[RunEntry, float], bool]:
    if sign not in (":", "="):
        raise GymError(f"`{key}` is a text and cannot be compared with {sign}", hint=f"write {key}:{value or 'TEXT'}")
    wanted, text = value.lower(), _TEXTS[key]
    if not wanted:
        raise GymError(f"`{key}{sign}` says nothing to look for", hint=f"write {key}:TEXT")
    if key == "state" and not any(state.startswith(wanted) for state in STATES):
        raise GymError(f"there is no state `{value}`", hint=did_you_mean(wanted, STATES) or f"one of {', '.join(STATES)}")
    if key == "state":
        return lambda run, _now: run.state.startswith(wanted)
    return lambda run, _now: wanted in text(run).lower()


def _number_condition(key: str, sign: str, value: str) -> Callable[[RunEntry, float], bool]:
    try:
        wanted = float(value)
    except ValueError:
        raise GymError(f"`{key}{sign}` needs a number, not `{value}`", hint=f"for example {key}<1") from None
    number, compare = _NUMBERS[key], _SIGNS[sign]
    return lambda run, _now: (known := number(run)) is not None and compare(known, wanted)


def _age_condition(sign: str, value: str) -> Callable[[RunEntry, float], bool]:
    duration = _DURATION.fullmatch(value)
    if duration is None or sign in (":", "="):
        raise GymError(f"`age` is compared with a duration, not `{sign}{value}`", hint="for example age<2h or age>3d")
    wanted, compare = float(duration["number"]) * _SECONDS[duration["unit"]], _SIGNS[sign]
    return lambda run, now: run.when is not None and compare(now - run.when, wanted)
