"""The few scores to read first: what they are, on which scale, over how many rollouts, and how sure they are."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backend.metrics.descriptive import as_number, mean
from backend.metrics.intervals import Interval, score_interval
from backend.metrics.pass_at_k import NO_ANSWER, STATISTIC_SUFFIXES, pass_at_k

FRACTION = "0-1"
PERCENT = "0-100"
RAW = "raw"
"""Rewards outside of 0 to 1."""

SAME_AS_PASS_AT_1 = ("pass@1[avg-of-1]", "majority@1")
_PERCENT_METRIC = re.compile(r"(?:.*/)?(?P<family>pass@(?P<k>\d+)|pass@1\[avg-of-\d+\]|majority@\d+)/(?P<score>[^/]+)")


@dataclass(frozen=True, slots=True)
class AgentScores:
    """What is known about one agent's rollouts when a run ends."""

    agent: str
    rewards: Iterable[Sequence[float]]
    """Task by task, each in the order of the attempts, failures that count as zero included. It is iterated several times."""
    scored: int
    failed: int
    missing: int
    """Planned, but neither scored nor failed."""
    key_metrics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One line of the closing summary."""

    agent: str
    name: str
    value: float | None
    """On `scale`; None without any scored rollout."""
    scale: str
    """`0-1`, `0-100`, or `raw` for rewards outside of 0 to 1."""
    scored: int
    failed: int
    missing: int
    interval: Interval | None
    """95 %, on `scale`; None where the scores of single tasks are not known."""


def summary_rows(agents: Iterable[AgentScores]) -> list[ScoreRow]:
    """The rows for all agents: the mean reward, then pass@k, pass@1[avg-of-k] and majority@k of their key metrics.

    Left out are spreads, which are not scores, majority@k/no_answer, which is 0 by construction, and what equals pass@1 when there is
    one attempt.
    """
    return [row for scores in agents for row in _agent_rows(scores)]


def _agent_rows(scores: AgentScores) -> Iterator[ScoreRow]:
    rewards = array("d", (float(reward) for task in scores.rewards for reward in task if as_number(reward) is not None))
    scale = FRACTION if all(0 <= reward <= 1 for reward in rewards) else RAW
    interval = score_interval(scores.rewards)
    yield _row(scores, "reward/mean", mean(rewards) if rewards else None, scale, interval)
    for key, raw in scores.key_metrics.items():
        value, shape = as_number(raw), _PERCENT_METRIC.fullmatch(key)
        if value is None or shape is None or key.endswith(STATISTIC_SUFFIXES):
            continue
        if shape["family"].startswith("majority@") and shape["score"] == NO_ANSWER:
            continue
        if shape["family"] in SAME_AS_PASS_AT_1:
            continue
        if shape["k"] == "1" and rewards and math.isclose(100 * mean(rewards), value, abs_tol=1e-6):
            percent = interval.scaled(100) if interval else None  # the same quantity, whatever its name
        else:
            percent = _pass_interval(scores, int(shape["k"]), value) if shape["k"] else None
        yield _row(scores, key, float(value), PERCENT, percent)


def _pass_interval(scores: AgentScores, k: int, value: float) -> Interval | None:
    """The interval of a pass@k in percent, if it is one of the rewards: other scores are not known task by task."""
    estimates = array("d", (estimate for task in scores.rewards if (estimate := pass_at_k(task, k)) is not None))
    if not estimates or not math.isclose(100 * mean(estimates), value, abs_tol=1e-6):
        return None
    interval = score_interval([estimate] for estimate in estimates)
    return interval.scaled(100) if interval else None


def _row(scores: AgentScores, name: str, value: float | None, scale: str, interval: Interval | None) -> ScoreRow:
    return ScoreRow(scores.agent, name, value, scale, scores.scored, scores.failed, scores.missing, interval)
