"""Finished records as rollouts: their two indices and the numbers that statistics are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

from backend.errors import GymError, name_some
from backend.io.row_keys import ATTEMPT, ROLLOUT, TASK
from backend.metrics.descriptive import NUMBERS

FRAMEWORK_PREFIX = "_ng_"
LOSS_MASK = "mask_sample"


class MissingIndexError(GymError, KeyError):
    """A record does not say which task and which rollout it is."""


class DuplicateRolloutError(GymError, ValueError):
    """Two records claim to be the same rollout of the same task."""


class Rollout(NamedTuple):
    """One record with what the statistics need."""

    task: int
    repeat: int
    """The rollout index: counts the attempts at one task."""
    numbers: dict[str, int | float]
    """What statistics are made of: top-level numbers and those of `response.usage`, the latter winning; NaN included."""
    info: dict[str, Any]
    """The rollout's own line in a report: indices, reward as it is, usage and top-level numbers, the latter winning."""


def read_rollouts(records: Iterable[Mapping[str, Any]]) -> list[Rollout]:
    """The records as rollouts, sorted by (task, rollout).

    Raises `MissingIndexError` for a record without integer indices and `DuplicateRolloutError` for two with the same ones.
    """
    rollouts = [_read(record, position) for position, record in enumerate(records)]
    # Two stable sorts on integers are faster than one on pairs.
    rollouts.sort(key=itemgetter(1))
    rollouts.sort(key=itemgetter(0))
    twice = [a[:2] for a, b in zip(rollouts, islice(rollouts, 1, None), strict=False) if a[1] == b[1] and a[0] == b[0]]
    if twice:
        raise DuplicateRolloutError(
            f"{len(twice)} (task, rollout) pair(s) occur more than once: {name_some(twice)}",
            hint="keep one record per task and rollout; shards that number their tasks alike cannot be merged",
        )
    return rollouts


def _read(record: Mapping[str, Any], position: int) -> Rollout:
    task, repeat = record.get(TASK), record.get(ROLLOUT)
    if not isinstance(task, int) or not isinstance(repeat, int):
        key, value = (TASK, task) if not isinstance(task, int) else (ROLLOUT, repeat)
        raise MissingIndexError(
            f"record {position} (counted from 0) needs an integer {key}, found {value!r}",
            hint="records come from a rollouts file; give each its task and rollout index",
        )
    numbers = _numbers(record)
    response = record.get("response")
    usage = response.get("usage") if isinstance(response, dict) else None
    spent = _numbers(usage) if isinstance(usage, dict) else {}
    info = {"rollout_id": f"{task}:{repeat}", TASK: task, ROLLOUT: repeat, "reward": record.get("reward"), **spent, **numbers}
    if "reward" not in record:
        del info["reward"]
    if ATTEMPT in record:
        info[ATTEMPT] = record[ATTEMPT]
    numbers.pop(LOSS_MASK, None)
    numbers |= spent
    return Rollout(task, repeat, numbers, info)


class _NumberTypes(dict[type, bool]):
    """Which types are numbers, found out once per type: asking `isinstance` of every value takes a fifth longer."""

    def __missing__(self, kind: type) -> bool:
        self[kind] = issubclass(kind, NUMBERS)
        return self[kind]


_IS_NUMBER = _NumberTypes()


def _numbers(values: Mapping[str, Any]) -> dict[str, int | float]:
    """The numbers among `values`, booleans as 0 and 1, without keys of the framework."""
    return {key: +value for key, value in values.items() if _IS_NUMBER[type(value)] and key[:4] != FRAMEWORK_PREFIX}
