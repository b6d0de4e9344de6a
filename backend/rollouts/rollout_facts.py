"""What a list shows of one row of a rollouts file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from backend.errors import Place
from backend.io.row_keys import ATTEMPT, ROLLOUT, TASK
from backend.rollouts.rollout_record import (
    agent_of,
    as_count,
    end_of,
    failure_of,
    plain,
    preview_of,
    reward_of,
    seconds_of,
    tokens_of,
    turns_of,
)

Source = Literal["rollouts", "failures"]


@dataclass(frozen=True, slots=True)
class RowPlace:
    """Where a row is."""

    index: int
    """Number of the row over all files, from 0."""
    source: Source
    path: Path
    line: int
    """1-based, blank lines counted."""
    offset: int
    size: int
    """Bytes, line end included."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row without a record to show."""

    reason: str
    place: Place
    head: bytes
    """The first bytes of the row."""
    too_big: bool = False
    """Fine as far as it was looked at, but too large to be taken apart on demand."""

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class RowFacts:
    """One row. None stands for what the record does not say."""

    place: RowPlace
    task: int | str | None = None
    rollout: int | str | None = None
    attempt: int = 0
    """How many attempts failed before this one."""
    reward: float | None = None
    failure: str | None = None
    end: str | None = None
    """`stop`, `length`, `timeout`, `failed`, or an endpoint's own word."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    turns: int | None = None
    seconds: float | None = None
    preview: str = ""
    """The final answer, one clean line of at most 200 characters."""
    agent: str | None = None
    unreadable: str | None = None
    """Why there is no record to show."""
    too_big: bool = False
    superseded: bool = False
    """Another row has the same task and rollout, and counts instead."""

    @property
    def index(self) -> int:
        return self.place.index

    @property
    def source(self) -> Source:
        return self.place.source

    @property
    def line(self) -> int:
        return self.place.line

    @property
    def size(self) -> int:
        return self.place.size


def facts_of(place: RowPlace, record: Mapping[str, Any]) -> RowFacts:
    """The facts of a record; values of wrong types count as absent."""
    tokens = tokens_of(record)
    return RowFacts(
        place,
        task=_label(record.get(TASK)),
        rollout=_label(record.get(ROLLOUT)),
        attempt=as_count(record.get(ATTEMPT)) or 0,
        reward=reward_of(record),
        failure=failure_of(record),
        end=end_of(record),
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        reasoning_tokens=tokens.reasoning,
        cached_tokens=tokens.cached,
        turns=turns_of(record),
        seconds=seconds_of(record),
        preview=preview_of(record),
        agent=agent_of(record),
    )


def _label(value: Any) -> int | str | None:
    return value if value is None or type(value) is int else plain(value)
