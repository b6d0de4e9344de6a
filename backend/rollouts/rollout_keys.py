"""What lists are sorted, filtered and grouped by, of all rows of a rollouts file: flat columns, 30 bytes a row."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping
from typing import Any

from backend.io.row_keys import AGENT_REF, ROLLOUT, TASK
from backend.rollouts.failures import FAILURE_CLASS
from backend.rollouts.rollout_record import agent_of, end_of, failure_of, output_tokens_of, plain, reward_of

WANTED_PATHS = (
    (TASK,), (ROLLOUT,), (AGENT_REF,), ("reward",), (FAILURE_CLASS,),
    ("response", "status"), ("response", "incomplete_details"), ("response", "usage"),
)  # fmt: skip
"""The values that a row's keys are made of."""

UNREADABLE, TOO_BIG, SUPERSEDED, FROM_FAILURES = 1, 2, 4, 8
"""Bits of a row's flags."""

MISSING = -1
"""A rollout index or token count that a record does not have, or that is out of range."""
_INT_LIMIT = 1 << 31
TASK_LIMIT = 1 << 61
"""Numbers below this, up to its negative, are task indices themselves."""
_NAMED_TASKS = -(1 << 62)
UNSTAMPED_TASKS = 1 << 62
"""From here on they stand for rows without a task index."""
_MOST_LABELS = 1 << 16
_OVERFLOW_LABEL = "(other)"


class Labels:
    """Texts as small numbers; 0 stands for none. What comes after the first 65,534 different ones is `(other)`."""

    def __init__(self, most: int = _MOST_LABELS) -> None:
        self.texts: list[str | None] = [None]
        self._numbers: dict[str, int] = {}
        self._most = most

    def number(self, text: str) -> int:
        known = self._numbers.get(text)
        if known is not None:
            return known
        if len(self.texts) >= self._most - 1:
            text = _OVERFLOW_LABEL
            if text in self._numbers:
                return self._numbers[text]
        self.texts.append(text)
        self._numbers[text] = len(self.texts) - 1
        return self._numbers[text]


class RolloutKeys:
    """The columns, in the order of the rows. One thread appends; others may read what is below `len` at the same time."""

    def __init__(self) -> None:
        self.tasks = array("q")
        """The task index; texts and rows without one have numbers of their own: see `task`."""
        self.rollouts = array("i")
        self.rewards = array("d")
        """NaN where there is none."""
        self.failures = array("H")
        self.agents = array("H")
        self.ends = array("B")
        self.output_tokens = array("i")
        self.flags = array("B")
        self.failure_labels = Labels()
        self.agent_labels = Labels()
        self.end_labels = Labels(1 << 8)
        self._task_labels: list[str] = []
        self._task_numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.flags)

    def append(self, record: Mapping[str, Any] | None, flags: int) -> None:
        """Add the keys of the next row; None stands for a row that cannot be read."""
        if record is None:
            record, flags = {}, flags | UNREADABLE
        task, rollout, tokens = record.get(TASK), record.get(ROLLOUT), output_tokens_of(record)
        reward, failure, agent, end = reward_of(record), failure_of(record), agent_of(record), end_of(record)
        self.tasks.append(task if type(task) is int and -TASK_LIMIT <= task < TASK_LIMIT else self._task_number(task))
        self.rollouts.append(rollout if type(rollout) is int and 0 <= rollout < _INT_LIMIT else MISSING)
        self.rewards.append(math.nan if reward is None else reward)
        self.failures.append(0 if failure is None else self.failure_labels.number(failure))
        self.agents.append(0 if agent is None else self.agent_labels.number(agent))
        self.ends.append(0 if end is None else self.end_labels.number(end))
        self.output_tokens.append(tokens if tokens is not None and tokens < _INT_LIMIT else MISSING)
        self.flags.append(flags)

    def task(self, row: int) -> int | str | None:
        """The task index as the record has it; None when it has none."""
        return self.task_of_number(self.tasks[row])

    def task_of_number(self, number: int) -> int | str | None:
        """What a number in the column `tasks` stands for."""
        if number >= UNSTAMPED_TASKS:
            return None
        return self._task_labels[number - _NAMED_TASKS] if number < -TASK_LIMIT else number

    def task_number(self, task: int | str) -> int | None:
        """The number that stands for a task in the column `tasks`; None when no row so far has it."""
        return task if isinstance(task, int) and -TASK_LIMIT <= task < TASK_LIMIT else self._task_numbers.get(str(task))

    def failure(self, row: int) -> str | None:
        return self.failure_labels.texts[self.failures[row]]

    def agent(self, row: int) -> str | None:
        return self.agent_labels.texts[self.agents[row]]

    def end(self, row: int) -> str | None:
        return self.end_labels.texts[self.ends[row]]

    def reward(self, row: int) -> float | None:
        reward = self.rewards[row]
        return None if math.isnan(reward) else reward

    def counts(self, column: str) -> dict[str, int]:
        """How many rows have each value of `failure`, `end` or `agent`, most frequent first; rows without one are left out."""
        numbers, labels = {
            "failure": (self.failures, self.failure_labels),
            "end": (self.ends, self.end_labels),
            "agent": (self.agents, self.agent_labels),
        }[column]
        return {text: count for number, count in Counter(numbers).most_common() if (text := labels.texts[number]) is not None}

    def _task_number(self, task: Any) -> int:
        if task is None:
            return UNSTAMPED_TASKS + len(self.flags)
        text = plain(task)
        number = self._task_numbers.get(text)
        if number is None:
            number = self._task_numbers[text] = _NAMED_TASKS + len(self._task_labels)
            self._task_labels.append(text)
        return number
