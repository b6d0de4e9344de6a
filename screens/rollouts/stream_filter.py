"""The filter of the stream: `reward<1 task:183 rollout:2 fail:timeout words`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from backend.errors import did_you_mean
from backend.rollouts.run_progress_parts import Finished
from screens.rollouts.stream_rows import Preview

_TERM = re.compile(r"(?P<key>[A-Za-z]+)(?P<sign>:|<=|>=|<|>|=)(?P<value>.+)")
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, ":": operator.eq,
}  # fmt: skip
_NUMBERS: Mapping[str, Callable[[Finished], float | None]] = {
    "reward": lambda line: line.reward,
    "task": lambda line: line.task,
    "rollout": lambda line: line.rollout,
    "attempt": lambda line: line.attempt + 1,
    "tokens": lambda line: line.output_tokens,
    "seconds": lambda line: line.seconds,
}
_TEXTS: Mapping[str, Callable[[Finished], str]] = {
    "fail": lambda line: line.failure or "",
    "agent": lambda line: line.agent,
}

Term = Callable[[Finished, Preview | None], bool]


@dataclass(frozen=True, slots=True)
class StreamFilter:
    """Which finished rollouts are shown. A term that makes no sense is told in `problem` and left out."""

    text: str = ""
    only_failures: bool = False
    terms: tuple[Term, ...] = ()
    problem: str = ""

    @property
    def passes_all(self) -> bool:
        return not self.terms and not self.only_failures

    def matches(self, line: Finished, preview: Preview | None) -> bool:
        """Whether a rollout is shown; words look at what is known of its record."""
        if self.only_failures and line.failure is None:
            return False
        return all(term(line, preview) for term in self.terms)

    def with_text(self, text: str) -> StreamFilter:
        """The same filter with other terms."""
        terms, problem = [], ""
        for word in text.split():
            match = _TERM.fullmatch(word)
            if match is None:
                terms.append(_word(word.lower()))
                continue
            term = _term(match["key"].lower(), match["sign"], match["value"])
            if isinstance(term, str):
                problem = problem or term
            else:
                terms.append(term)
        return replace(self, text=text, terms=tuple(terms), problem=problem)

    def toggled_failures(self) -> StreamFilter:
        """The same filter with failures only, or with all again."""
        return replace(self, only_failures=not self.only_failures)


def _term(key: str, sign: str, value: str) -> Term | str:
    if key in _TEXTS:
        text_of, wanted = _TEXTS[key], value.lower()
        return lambda line, _preview: wanted in text_of(line).lower() and bool(text_of(line))
    if key not in _NUMBERS:
        return f"unknown term {key}; {did_you_mean(key, [*_NUMBERS, *_TEXTS]) or 'known: ' + ', '.join([*_NUMBERS, *_TEXTS])}"
    try:
        limit = float(value)
    except ValueError:
        return f"{key}{sign} needs a number, not {value}"
    number_of, compare = _NUMBERS[key], _SIGNS[sign]

    def holds(line: Finished, _preview: Preview | None) -> bool:
        number = number_of(line)
        return number is not None and compare(number, limit)

    return holds


def _word(word: str) -> Term:
    def holds(line: Finished, preview: Preview | None) -> bool:
        texts = (line.failure or "", line.reason, preview.text if preview else "", preview.end if preview else "")
        return any(word in text.lower() for text in texts)

    return holds
