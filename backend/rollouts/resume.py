"""What an interrupted run has left behind, and which of its rows are still to be run.

The materialized inputs are the plan. A row is finished when the rollouts file has a record of it; it is given up when a failed attempt
was terminal or when as many attempts failed as are allowed; every other row is run, retries with the number of failures before them.
Memory grows by about 60 bytes a row, whatever the rollouts hold.
"""

from __future__ import annotations

import os
import shlex
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from backend.errors import GymError, Place, name_some
from backend.io.json_codec import dumps
from backend.io.jsonl import JsonlError, Line, read_jsonl
from backend.io.result_paths import ResultPaths
from backend.io.row_keys import AGENT_REF, ATTEMPT, ROLLOUT, TASK, TASK_SOURCE
from backend.rollouts.compact_numbers import CompactPairs
from backend.rollouts.failures import FAILURE_CLASS, TERMINAL, reason_of
from backend.rollouts.run_record import resumed
from backend.rollouts.tally import Tally, reward_of

ATTEMPTS_VARIABLE = "NEMO_GYM_MAX_ROLLOUT_ATTEMPTS"
DEFAULT_ATTEMPTS = 3
MOST_NAMED = 10
PARAMS = "responses_create_params"

_FINISHED = 1
_TERMINAL = 2
_USED_UP = 3

_UNREADABLE_HINT = "mend or remove this line; the rollout of a line that is removed runs again"


def attempts_allowed() -> tuple[int, str | None]:
    """How often a rollout may be attempted in all, and a warning when the environment variable says nothing usable."""
    text = os.environ.get(ATTEMPTS_VARIABLE, "").strip()
    if not text:
        return DEFAULT_ATTEMPTS, None
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number >= 1:
        return number, None
    return DEFAULT_ATTEMPTS, f"{ATTEMPTS_VARIABLE} must be a whole number of at least 1, not {text!r}; {DEFAULT_ATTEMPTS} is used"


def resume_command(command: Sequence[str]) -> str:
    """The command that goes on with the run that `command` began, for a shell; empty when there is no command."""
    return shlex.join(resumed(command))


def why_from_the_beginning(paths: ResultPaths) -> str | None:
    """Why there is nothing to resume; None when there is something.

    Raises `GymError` when rollouts are there without their plan: beginning again would delete them.
    """
    if paths.rollouts.exists() and paths.materialized_inputs.exists():
        return None
    if paths.rollouts.exists() and paths.rollouts.stat().st_size:
        raise GymError(
            f"{paths.rollouts} cannot be resumed: {paths.materialized_inputs} is missing, which says what is to be run",
            hint="put that file back, or choose another --output; without --resume the rollouts that are there are replaced",
        )
    missing = paths.materialized_inputs if paths.rollouts.exists() else paths.rollouts
    return f"nothing to resume, because {missing} is not there: the run starts from the beginning"


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A rollout that is not attempted any more, with its last failure."""

    task: int
    rollout: int
    attempts: int
    terminal: bool
    failure: str
    reason: str


@dataclass(frozen=True, slots=True)
class EarlierWork:
    """A plan and what is done of it."""

    materialized: Path
    planned: Mapping[str, int]
    """Rollouts by agent."""
    routes: frozenset[tuple[str, str | None]]
    """Agent and `task_source` of all rows."""
    tally: Tally
    """Finished and given-up rollouts are counted already."""
    retries: int
    """Rows still to be run of which an attempt has failed."""
    duplicates: tuple[tuple[int, int], ...]
    """Task and repeat of records that a newer record of the same rollout supersedes."""
    given_up: tuple[GivenUp, ...]
    """The first ones; `tally.failed` tells how many there are."""
    params: Mapping[str, Any]
    """Replaces keys of `responses_create_params` in the rows still to be run; changes nothing unless settings have changed."""
    _failures: array[int] = field(repr=False)
    """Failed attempts by row."""
    _closed: bytearray = field(repr=False)
    """By row, whether it is finished or given up."""

    @property
    def left(self) -> int:
        """How many rows are still to be run."""
        return self.tally.missing

    def rows_left(self) -> Iterator[Line]:
        """The rows that are still to be run, in the order of the plan; retries are stamped with the number of failed attempts."""
        for place, line in enumerate(read_jsonl(self.materialized)):
            if not self._closed[place]:
                stamps: dict[str, Any] = {ATTEMPT: self._failures[place]} if self._failures[place] else {}
                params = line.value[PARAMS]
                if any(params.get(key) != value for key, value in self.params.items()):
                    stamps[PARAMS] = {**params, **self.params}
                row = {**line.value, **stamps}
                yield replace(line, value=row, raw=dumps(row)) if stamps else line


def read_earlier_work(paths: ResultPaths, allowed_attempts: int, params: Mapping[str, Any] | None = None) -> EarlierWork:
    """What is done of the plan in `paths`, without touching a file; `params` are those of the rows to come.

    An unfinished last line of the rollouts or of the failures is left out. Raises `GymError` naming file and line for lines that
    cannot be read, and for records of rollouts that the plan does not have.
    """
    plan = _Plan(paths.materialized_inputs)
    closed = bytearray(len(plan.keys))
    failures = array("I", [0]) * len(plan.keys)
    tally = Tally(plan.planned)
    superseded = _read_rollouts(paths, plan, closed, tally, frozenset())
    if superseded:
        tally = Tally(plan.planned)
        _read_rollouts(paths, plan, closed, tally, frozenset(superseded))
    last = _read_failures(paths.failures, plan, closed, failures)
    given_up = _give_up(paths.failures, plan, closed, failures, last, allowed_attempts, tally)
    return EarlierWork(
        materialized=paths.materialized_inputs,
        planned=plan.planned,
        routes=frozenset(plan.routes),
        tally=tally,
        retries=sum(1 for count, done in zip(failures, closed, strict=True) if count and not done),
        duplicates=tuple(superseded.values()),
        given_up=given_up,
        params=params or {},
        _failures=failures,
        _closed=closed,
    )


class _Plan:
    """The keys of the materialized rows, numbered in their order, and the agent of each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.keys = CompactPairs()
        self.planned: Counter[str] = Counter()
        self.routes: set[tuple[str, str | None]] = set()
        self._agents: list[str] = []
        self._agent_of_row = array("H")
        numbers: dict[str, int] = {}
        for line in read_jsonl(path):
            agent = self._add(line)
            number = numbers.setdefault(agent, len(numbers))
            self._agent_of_row.append(number)
        self._agents = list(numbers)

    def agent(self, place: int) -> str:
        return self._agents[self._agent_of_row[place]]

    def place_of(self, record: Mapping[str, Any]) -> int | None:
        """Which row a record belongs to; None when it is of no row."""
        key = key_of(record)
        return None if key is None else self.keys.get(*key)

    def _add(self, line: Line) -> str:
        place = Place(str(self.path), line.number)
        key, agent = key_of(line.value), agent_of(line.value)
        if key is None or agent is None or not isinstance(line.value.get(PARAMS), Mapping):
            raise JsonlError(
                f"not a materialized row: it needs {TASK}, {ROLLOUT}, {AGENT_REF} and {PARAMS}",
                place=place,
                hint="put the file back as the run wrote it",
            )
        if not self.keys.add(*key)[1]:
            raise JsonlError(f"task {key[0]} has two rows for rollout {key[1]}", place=place)
        source = line.value.get(TASK_SOURCE)
        self.planned[agent] += 1
        self.routes.add((agent, str(source) if source else None))
        return agent


def key_of(record: Mapping[str, Any]) -> tuple[int, int] | None:
    """Task and repeat of a row or record; None when it lacks one of them."""
    task, rollout = record.get(TASK), record.get(ROLLOUT)
    if isinstance(task, int) and isinstance(rollout, int) and not isinstance(task, bool) and not isinstance(rollout, bool):
        return task, rollout
    return None


def agent_of(record: Mapping[str, Any]) -> str | None:
    """The agent that a row or record names."""
    reference = record.get(AGENT_REF)
    name = reference.get("name") if isinstance(reference, Mapping) else None
    return name if isinstance(name, str) else None


def _read_rollouts(
    paths: ResultPaths, plan: _Plan, closed: bytearray, tally: Tally, skipped: frozenset[int]
) -> dict[int, tuple[int, int]]:
    """Count finished rollouts, those at the offsets in `skipped` left out; returns the keys of superseded records by offset."""
    superseded: dict[int, tuple[int, int]] = {}
    offsets = array("q", [-1]) * len(plan.keys)
    foreign: list[str] = []
    for line in _readable(paths.rollouts):
        if line.offset in skipped:
            continue
        place = plan.place_of(line.value)
        if place is None or agent_of(line.value) not in (None, plan.agent(place)):
            foreign.append(f"line {line.number}: {key_of(line.value) or 'no indices'}")
            continue
        if offsets[place] >= 0:
            superseded[offsets[place]] = (line.value[TASK], line.value[ROLLOUT])
        offsets[place] = line.offset
        closed[place] = _FINISHED
        agent = plan.agent(place)
        tally.add_answer(agent, line.value)
        tally.add_scored(agent, line.value[TASK], line.value[ROLLOUT], reward_of(line.value))
    if foreign:
        raise GymError(
            f"{len(foreign)} record(s) of {paths.rollouts} are of no row of {plan.path}",
            details=[name_some(foreign, MOST_NAMED)],
            hint="the two files are of different runs: put back the right one, or choose another --output",
        )
    return superseded


def _read_failures(path: Path, plan: _Plan, closed: bytearray, failures: array[int]) -> array[int]:
    """Count failed attempts by row and mark terminal ones; returns the offset of each row's last failure, -1 without one."""
    last = array("q", [-1]) * len(plan.keys)
    for line in _readable(path) if path.exists() else ():
        place = plan.place_of(line.value)
        if place is None:  # says nothing about a row of this plan
            continue
        failures[place] += 1
        last[place] = line.offset
        if line.value.get(TERMINAL) and not closed[place]:
            closed[place] = _TERMINAL
    return last


def _give_up(
    path: Path, plan: _Plan, closed: bytearray, failures: array[int], last: array[int], allowed: int, tally: Tally
) -> tuple[GivenUp, ...]:
    """Close the rows that have no attempt left, count them as failed by their last failure, and describe the first of them."""
    given_up: list[GivenUp] = []
    hopeless = {
        place for place, count in enumerate(failures) if closed[place] != _FINISHED and (closed[place] or count >= allowed)
    }
    for line in _readable(path) if hopeless else ():
        place = plan.place_of(line.value)
        if place is None or place not in hopeless or last[place] != line.offset:
            continue
        failure, reason = str(line.value.get(FAILURE_CLASS) or "unknown"), reason_of(line.value)
        tally.add_failed(plan.agent(place), failure, reason)
        if len(given_up) < MOST_NAMED:
            terminal = closed[place] == _TERMINAL
            given_up.append(GivenUp(line.value[TASK], line.value[ROLLOUT], failures[place], terminal, failure, reason))
    for place in hopeless:
        closed[place] = closed[place] or _USED_UP
    return tuple(given_up)


def _readable(path: Path) -> Iterator[Line]:
    """The whole lines of a file that grows by whole lines; what is wrong with one of them comes with what to do."""
    try:
        yield from read_jsonl(path, allow_torn_tail=True)
    except JsonlError as error:
        error.hint = error.hint or _UNREADABLE_HINT
        raise
