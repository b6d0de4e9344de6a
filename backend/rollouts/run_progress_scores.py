"""The scores of a run while they come in: mean, interval, and how whole tasks went, in 13 bytes a task.

All in constant time, but for the interval of up to 100 tasks: that is resampled, which takes up to 0.05 s.
"""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple

from backend.metrics.intervals import Interval, bootstrap, wilson, within_scale
from backend.metrics.student_t import NORMAL_QUANTILE_975
from backend.rollouts.compact_numbers import CompactNumbers

_DENSE_TASKS = 1 << 20
"""Task numbers below this index their arrays directly; rows may also bring numbers of their own, of any size."""
RESAMPLED_TASKS = 100
"""Most tasks whose interval is resampled while a run goes on. For more, the normal interval is close to what the closing summary says."""
_PASSED, _FAILED, _BETWEEN = 1, 2, 4
_SCORED = _PASSED | _FAILED | _BETWEEN
_HELD, _SEEN = 8, 16
_STATES = 32


class TaskOutcomes(NamedTuple):
    """How many tasks, by the scores of their rollouts; tasks without any score are left out, and those that wait for more."""

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
        self._tasks_by_state = [0] * _STATES
        self._few: set[int] | None = set()
        """The tasks with scores, as long as their interval is resampled."""
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
        table, slot = self._place(task)
        shifted = score - self._origin
        total, count = table.add(slot, shifted)
        self._mark(table, slot, table.states[slot] | _outcome_of(score))
        self.scores += 1
        self._total += shifted
        self._squares += shifted * (2 * total + shifted)
        self._products += total + shifted * (count + 1)
        self._squared_counts += 2 * count + 1
        self._low = min(self._low, score)
        self._high = max(self._high, score)
        if count or score not in (0, 1):
            self._single_and_binary = False
        if self._few is not None and not count:
            self._few.add(task)
            if len(self._few) > RESAMPLED_TASKS:
                self._few = None

    def hold(self, task: int) -> bool:
        """More is to come of `task`: it has no outcome until `release`. Tells whether it was never held before."""
        table, slot = self._place(task)
        before = table.states[slot]
        self._mark(table, slot, before | _HELD | _SEEN)
        return not before & _SEEN

    def release(self, task: int) -> None:
        """All of `task` has come back."""
        table, slot = self._place(task)
        self._mark(table, slot, table.states[slot] & ~_HELD)

    @property
    def tasks(self) -> int:
        """Tasks with at least one score."""
        return sum(count for state, count in enumerate(self._tasks_by_state) if state & _SCORED)

    @property
    def mean(self) -> float | None:
        """Mean over all scores; None without any."""
        return self._origin + self._total / self.scores if self.scores else None

    @property
    def within_unit(self) -> bool:
        """Whether all scores are between 0 and 1."""
        return self._low >= 0 and self._high <= 1

    @property
    def resampled(self) -> bool:
        """Whether the interval takes its time."""
        return self._few is not None and not self._single_and_binary

    def outcomes(self) -> TaskOutcomes:
        """Tasks that passed always, never, and neither, without those that wait for more."""
        counts = [0] * (_SCORED + 1)
        for state, count in enumerate(self._tasks_by_state):
            if not state & _HELD:
                counts[state & _SCORED] += count
        return TaskOutcomes(counts[_PASSED], counts[_FAILED], sum(counts[1:]) - counts[_PASSED] - counts[_FAILED])

    def interval(self) -> Interval | None:
        """95 % interval of the mean: `metrics.intervals.score_interval`, but with the bootstrap only up to 100 tasks.

        With the tasks as clusters, m the mean and s, c the sum and count of a task's scores, the variance of the residuals s - mc is
        had from the sums of ss, sc and cc: Cochran, "Sampling Techniques" (1977), section 6.3.
        """
        tasks = self.tasks
        if not tasks:
            return None
        if self._single_and_binary or self._low == self._high in (0, 1):
            passed = sum(count for state, count in enumerate(self._tasks_by_state) if state & _SCORED == _PASSED)
            return wilson(passed, tasks)
        if tasks < 2:
            return None
        if self._few is not None:
            places = [self._place(task) for task in sorted(self._few)]
            found = bootstrap([(table.totals[slot], table.counts[slot]) for table, slot in places])
            return Interval(self._origin + found.low, self._origin + found.high, found.method)
        centre = self._total / self.scores
        size = self.scores / tasks
        squared_residuals = self._squares - 2 * centre * self._products + centre * centre * self._squared_counts
        deviation = math.sqrt(max(0.0, squared_residuals) / (tasks - 1)) / size
        reach = NORMAL_QUANTILE_975 * deviation / math.sqrt(tasks)
        mean = self._origin + centre
        return within_scale(Interval(mean - reach, mean + reach, "normal"), self._low, self._high)

    def _place(self, task: int) -> tuple[_Table, int]:
        if 0 <= task < _DENSE_TASKS:
            table, slot = self._near, task
        else:
            table, slot = self._far, self._far_numbers.add(task)[0]
        if slot >= len(table.states):
            table.reach(slot)
        return table, slot

    def _mark(self, table: _Table, slot: int, state: int) -> None:
        before = table.states[slot]
        if state != before:
            self._tasks_by_state[before] -= 1
            self._tasks_by_state[state] += 1
            table.states[slot] = state


class _Table:
    """Sum, count and state of each task."""

    def __init__(self) -> None:
        self.totals = array("d")
        self.counts = array("I")
        self.states = bytearray()

    def reach(self, slot: int) -> None:
        """Make room for a task that has none."""
        more = slot + 1 + slot // 8 - len(self.states)
        self.totals.frombytes(bytes(more * self.totals.itemsize))
        self.counts.frombytes(bytes(more * self.counts.itemsize))
        self.states.extend(bytes(more))

    def add(self, slot: int, score: float) -> tuple[float, int]:
        """Add a score; gives the sum and the count from before."""
        before = self.totals[slot], self.counts[slot]
        self.totals[slot] += score
        self.counts[slot] += 1
        return before


def _outcome_of(score: float) -> int:
    if score >= 1:
        return _PASSED
    return _FAILED if score <= 0 else _BETWEEN
