"""Reward profiles: finished rollouts joined with the rows they were planned from, per task, per agent and per repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from backend.errors import GymError, name_some
from backend.io.row_keys import AGENT_REF, ROLLOUT, TASK
from backend.metrics.groups import describe, group_row
from backend.metrics.records import DuplicateRolloutError, MissingIndexError, Rollout, read_rollouts
from backend.metrics.repeats import across_repeats, repeat_rows

_Key = tuple[int, int]
_Item = TypeVar("_Item")


class ProfileError(GymError, ValueError):
    """Rows and results do not belong together, or are not complete."""


class ProfileFieldError(GymError, KeyError):
    """A row or a result lacks what a profile needs."""


@dataclass(frozen=True, slots=True)
class RewardProfile:
    """The content of the three profile files, and how complete the results are."""

    reward_profiling: list[dict[str, Any]]
    """One entry per task, or per task and agent where several agents ran the same task."""
    agent_metrics: list[dict[str, Any]]
    repeat_level_metrics: list[dict[str, Any]]
    summary: dict[str, Any]


def profile_rewards(
    rows: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]], *, allow_partial_rollouts: bool = False
) -> RewardProfile:
    """Join results with rows on (task, rollout), in any order, and compute all statistics.

    Raises `ProfileError` (a ValueError) for pairs that occur twice, results without row and, unless allowed, rows without result;
    `ProfileFieldError` (a KeyError) for a row without agent or a result without indices.
    """
    planned = _keyed(rows, "rows")
    rollouts = _read_results(results)
    done = {(rollout.task, rollout.repeat) for rollout in rollouts}
    _check_complete(planned, done, allow_partial_rollouts)
    agents = {key: _agent_of(row, key) for key, row in planned.items()}
    fan_out = len({(key[0], agent) for key, agent in agents.items()}) > len({key[0] for key in planned})
    groups = _grouped(sorted(planned), lambda key: (key[0], agents[key] if fan_out else ""))
    found = _grouped(rollouts, lambda rollout: (rollout.task, agents[rollout[:2]] if fan_out else ""))
    profiling = []
    for group, keys in groups.items():
        if group in found:
            sample = {key: value for key, value in planned[keys[0]].items() if key not in (TASK, ROLLOUT)}
            profiling.append(group_row(found[group], sample, len(keys), {"name": group[1]} if fan_out else None))
    of_agent = _grouped(rollouts, lambda rollout: agents[rollout[:2]])
    agent_metrics, repeats = [], []
    for agent in sorted(of_agent):
        reference = {"name": agent}
        agent_repeats = repeat_rows(of_agent[agent])
        agent_metrics.append({**describe(of_agent[agent]), AGENT_REF: reference, **across_repeats(agent_repeats)})
        repeats += [{AGENT_REF: reference, **row} for row in agent_repeats]
    done_of_group = {group: len(members) for group, members in found.items()}
    planned_of_group = {group: len(keys) for group, keys in groups.items()}
    return RewardProfile(profiling, agent_metrics, repeats, _summary(planned_of_group, done_of_group, len(planned), len(done)))


class RewardProfiler:
    """`profile_rewards` as an object, for code that expects one."""

    def profile(
        self, rows: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]], *, allow_partial_rollouts: bool = False
    ) -> RewardProfile:
        """See `profile_rewards`."""
        return profile_rewards(rows, results, allow_partial_rollouts=allow_partial_rollouts)

    def profile_completion_summary(
        self, rows: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """How many planned rollouts, and inputs, are complete, partial or missing; results without row count as extra."""
        planned, done = _keyed(rows, "rows"), _keyed(results, "results")
        joined = planned.keys() & done.keys()
        by_task = Counter(task for task, _ in planned)
        return _summary(by_task, Counter(task for task, _ in joined), len(planned), len(joined), len(done) - len(joined))


def _summary(
    planned: Mapping[Any, int], done: Mapping[Any, int], expected: int, completed: int, extra: int = 0
) -> dict[str, Any]:
    complete = sum(1 for group, count in planned.items() if done.get(group, 0) == count)
    partial = sum(1 for group, count in planned.items() if 0 < done.get(group, 0) < count)
    return {
        "expected_rollout_rows": expected,
        "completed_rollout_rows": completed,
        "missing_rollout_rows": expected - completed,
        "extra_rollout_rows": extra,
        "reward_profile_completion_pct": 100.0 * completed / expected if expected else 0.0,
        "total_input_rows": len(planned),
        "complete_input_rows": complete,
        "partial_input_rows": partial,
        "missing_input_rows": len(planned) - complete - partial,
    }


def _keyed(records: Iterable[Mapping[str, Any]], what: str) -> dict[_Key, Mapping[str, Any]]:
    keyed: dict[_Key, Mapping[str, Any]] = {}
    for position, record in enumerate(records):
        task, rollout = record.get(TASK), record.get(ROLLOUT)
        if not isinstance(task, int) or not isinstance(rollout, int):
            raise ProfileFieldError(f"entry {position} (counted from 0) of the {what} needs integers {TASK} and {ROLLOUT}")
        if (task, rollout) in keyed:
            raise ProfileError(f"the {what} have the (task, rollout) pair {(task, rollout)} more than once")
        keyed[task, rollout] = record
    return keyed


def _read_results(results: Sequence[Mapping[str, Any]]) -> list[Rollout]:
    try:
        return read_rollouts(results)
    except DuplicateRolloutError as error:
        raise ProfileError(f"among the results, {error.message}", hint=error.hint) from None
    except MissingIndexError as error:
        raise ProfileFieldError(f"among the results, {error.message}", hint=error.hint) from None


def _check_complete(planned: Mapping[_Key, Any], done: set[_Key], allow_partial: bool) -> None:
    extra = sorted(done - planned.keys())
    if extra:
        raise ProfileError(
            f"{len(extra)} result(s) have no input row: {name_some(extra)}",
            hint="give the materialized inputs of the same run with --inputs",
        )
    missing = sorted(planned.keys() - done)
    if missing and not allow_partial:
        raise ProfileError(
            f"{len(missing)} input row(s) have no result: {name_some(missing)}",
            hint="finish the run, or profile what there is with ++allow_partial_rollouts=True",
        )


def _agent_of(row: Mapping[str, Any], key: _Key) -> str:
    reference = row.get(AGENT_REF)
    name = reference.get("name") if isinstance(reference, Mapping) else None
    if not isinstance(name, str):
        raise ProfileFieldError(f"the input row {key} has no agent_ref.name", hint="give the materialized inputs with --inputs")
    return name


def _grouped(items: Iterable[_Item], key: Callable[[_Item], Any]) -> dict[Any, list[_Item]]:
    groups: dict[Any, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return dict(sorted(groups.items()))
