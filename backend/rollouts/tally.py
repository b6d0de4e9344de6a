"""What a run knows of itself while it goes: counts, averages, and the rewards for its closing summary.

Bounded by the number of tasks: 24 bytes a scored rollout, whatever the rollouts hold.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from backend.metrics.records import LOSS_MASK


@dataclass(slots=True)
class AgentTally:
    """One agent's share of a run."""

    planned: int
    finished: int = 0
    scored: int = 0
    failed: int = 0
    answers: int = 0
    """Answers that came from the agent itself, scored or not; what averages are over."""
    sums: dict[str, float] = field(default_factory=dict)
    tasks: array[int] = field(default_factory=lambda: array("q"))
    repeats: array[int] = field(default_factory=lambda: array("q"))
    rewards: array[float] = field(default_factory=lambda: array("d"))

    def averages(self) -> dict[str, float]:
        """Averages of the numeric fields of all answers; a field that an answer lacks counts as 0."""
        return {name: total / self.answers for name, total in self.sums.items()} if self.answers else {}

    def add_reward(self, task: int, repeat: int, reward: float) -> None:
        """Let a reward count in the summary."""
        self.tasks.append(task)
        self.repeats.append(repeat)
        self.rewards.append(reward)

    def rewards_by_task(self) -> TaskRewards:
        """The rewards of the scored rollouts so far."""
        return TaskRewards(self.tasks, self.repeats, self.rewards)


class TaskRewards:
    """Iterates, any number of times, over the rewards of each task in the order of its repeats; tasks ascending."""

    def __init__(self, tasks: array[int], repeats: array[int], rewards: array[float]) -> None:
        self._tasks = tasks
        self._rewards = rewards
        self._order = array("q", sorted(range(len(tasks)), key=lambda place: (tasks[place], repeats[place])))

    def __len__(self) -> int:
        """How many rewards there are in all."""
        return len(self._order)

    def __iter__(self) -> Iterator[list[float]]:
        for _, places in groupby(self._order, key=self._tasks.__getitem__):
            yield [self._rewards[place] for place in places]


def reward_of(record: Mapping[str, Any]) -> float | None:
    """The reward of a record; None when it has none, or one that is no finite number."""
    reward = record.get("reward")
    return float(reward) if isinstance(reward, int | float) and math.isfinite(reward) else None


class Tally:
    """Counts of a whole run, per agent and together."""

    def __init__(self, planned: Mapping[str, int]) -> None:
        self.agents = {name: AgentTally(count) for name, count in planned.items()}
        self.total = sum(planned.values())
        self.failure_classes: Counter[str] = Counter()
        self.first_reason: dict[str, str] = {}
        """Per failure class, the reason of its first case."""

    @property
    def finished(self) -> int:
        return sum(agent.finished for agent in self.agents.values())

    @property
    def scored(self) -> int:
        return sum(agent.scored for agent in self.agents.values())

    @property
    def failed(self) -> int:
        return sum(agent.failed for agent in self.agents.values())

    @property
    def missing(self) -> int:
        return self.total - self.scored - self.failed

    def left(self) -> dict[str, int]:
        """Rollouts left per agent, most first; agents that are through are left out."""
        left = {name: agent.planned - agent.finished for name, agent in self.agents.items()}
        return dict(sorted(((name, count) for name, count in left.items() if count > 0), key=lambda item: -item[1]))

    def add_answer(self, agent: str, result: Mapping[str, Any]) -> None:
        """Take an agent's own answer into the averages."""
        tally = self.agents[agent]
        tally.answers += 1
        for name, value in result.items():
            if isinstance(value, int | float) and not name.startswith("_") and name != LOSS_MASK:
                tally.sums[name] = tally.sums.get(name, 0.0) + value

    def add_scored(self, agent: str, task: int, repeat: int, reward: float | None) -> None:
        """A rollout is in the rollouts file."""
        tally = self.agents[agent]
        tally.finished += 1
        tally.scored += 1
        if reward is not None:
            tally.add_reward(task, repeat, reward)

    def add_failed(self, agent: str, failure_class: str, reason: str) -> None:
        """A rollout failed, or left nothing that is kept."""
        tally = self.agents[agent]
        tally.finished += 1
        tally.failed += 1
        self.failure_classes[failure_class] += 1
        self.first_reason.setdefault(failure_class, reason)
