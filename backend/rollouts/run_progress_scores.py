"""The scores of a run while they come in: mean, interval, and how whole tasks went, in constant time and 13 bytes a task."""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple

from backend.metrics.intervals import Interval, wilson
from backend.metrics.student_t import NORMAL_QUANTILE_975
from backend.rollouts.compact_numbers import CompactNumbers

_DENSE_TASKS = 1 << 20
"""Task numbers below this index their arrays directly; rows may also bring numbers of their own, of any size."""
_PASSED, _FAILED, _BETWEEN = 1, 2, 4


class TaskOutcomes(NamedTuple):
    """How many tasks, by the scores of their rollouts so far; tasks without any score are left out."""

    all_pass: int
    """Every score is 1 (or more)."""
    all_fail: int
    """Every score is 0 (or less)."""
    mixed: int
    """Anything else, graded scores among them."""


class TaskScores:
    """Sums over tasks from which the mean and its interval follow at any moment."""

    def __init__(self) -> None:
        self.scores = 0
        self._near = _Table()
        self._far = _Table()
        self._far_numbers = CompactNumbers()
        self._tasks_by_outcome = [0] * 8
        # Sums are over scores minus the first one, which keeps the differences exact where scores are large and close to each other.
        self._origin = 0.0
        self._total = 0.0
        self._squares = 0.0
        self._products = 0.0
        self._squared_counts = 0
        self._low = math.inf
        self._high = -math.inf
        self._single_and_binary = True

    def add(self, task: int, score: float) -> None:
        """Take in a finite score of one rollout of `task`."""
        if not self.scores:
            self._origin = score
        if 0 <= task < _DENSE_TASKS:
            table, slot = self._near, task
        else:
            table, slot = self._far, self._far_numbers.add(task)[0]
        shifted = score - self._origin
        total, count, outcome = table.add(slot, shifted, _outcome_of(score))
        self._tasks_by_outcome[outcome] -= 1
        self._tasks_by_outcome[table.outcomes[slot]] += 1
        self.scores += 1
        self._total += shifted
        self._squares += shifted * (2 * total + shifted)
        self._products += total + shifted * (count + 1)
        self._squared_counts += 2 * count + 1
        self._low = min(self._low, score)
        self._high = max(self._high, score)
        if count or score not in (0, 1):
            self._single_and_binary = False

    @property
    def tasks(self) -> int:
        """Tasks with at least one score."""
        return sum(self._tasks_by_outcome[1:])

    @property
    def mean(self) -> float | None:
        """Mean over all scores; None without any."""
        return self._origin + self._total / self.scores if self.scores else None

    def outcomes(self) -> TaskOutcomes:
        """Tasks that passed always, never, and neither."""
        passed, failed = self._tasks_by_outcome[_PASSED], self._tasks_by_outcome[_FAILED]
        return TaskOutcomes(passed, failed, self.tasks - passed - failed)

    def interval(self) -> Interval | None:
        """95 % interval of the mean: `metrics.intervals.score_interval`, with the normal interval in place of the bootstrap.

        With the tasks as clusters, m the mean and s, c the sum and count of a task's scores, the variance of the residuals s - mc is
        had from the sums of ss, sc and cc: Cochran, "Sampling Techniques" (1977), section 6.3.
        """
        tasks = self.tasks
        if not tasks:
            return None
        if self._single_and_binary or self._low == self._high in (0, 1):
            return wilson(self._tasks_by_outcome[_PASSED], tasks)
        if tasks < 2:
            return None
        centre = self._total / self.scores
        size = self.scores / tasks
        squared_residuals = self._squares - 2 * centre * self._products + centre * centre * self._squared_counts
        deviation = math.sqrt(max(0.0, squared_residuals) / (tasks - 1)) / size
        reach = NORMAL_QUANTILE_975 * deviation / math.sqrt(tasks)
        mean = self._origin + centre
        return Interval(mean - reach, mean + reach, "normal")


class _Table:
    """Sum, count and outcome of each task."""

    def __init__(self) -> None:
        self.totals = array("d")
        self.counts = array("I")
        self.outcomes = bytearray()

    def add(self, slot: int, score: float, outcome: int) -> tuple[float, int, int]:
        """Add a score; gives the sum, the count and the outcome from before."""
        if slot >= len(self.outcomes):
            more = slot + 1 + slot // 8 - len(self.outcomes)
            self.totals.frombytes(bytes(more * self.totals.itemsize))
            self.counts.frombytes(bytes(more * self.counts.itemsize))
            self.outcomes.extend(bytes(more))
        before = self.totals[slot], self.counts[slot], self.outcomes[slot]
        self.totals[slot] += score
        self.counts[slot] += 1
        self.outcomes[slot] |= outcome
        return before


def _outcome_of(score: float) -> int:
    if score >= 1:
        return _PASSED
    return _FAILED if score <= 0 else _BETWEEN
