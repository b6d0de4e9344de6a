"""Which tasks of a run still wait for repeats, as far as its events tell."""

from __future__ import annotations

from backend.rollouts.run_progress_scores import TaskScores


class OpenTasks:
    """Holds back the outcomes of tasks of which more is to come.

    No event says how many repeats a task has. But a run sends its rollouts in the order of its plan, in which a task's repeats stand
    together: the task that was sent last may have more until another one follows or nothing is left to send, and any task waits
    while one of its rollouts is in flight. Where equal rows of the input stand apart, a task waits again when its next row is sent.
    """

    def __init__(self, scores: TaskScores) -> None:
        self._scores = scores
        self._in_flight: dict[int, int] = {}
        self._last: int | None = None
        self._interrupted: set[int] = set()
        """Tasks that were open when the session before ended."""

    def sent(self, task: int) -> None:
        """A rollout of `task` is on its way."""
        new = self._scores.hold(task)
        self._in_flight[task] = self._in_flight.get(task, 0) + 1
        if task != self._last:
            before, self._last = self._last, task
            if before is not None:
                self._release_unless_awaited(before)
        if self._interrupted:
            self._interrupted.discard(task)
            if new:  # what stands before a new task in the plan has been sent
                self._close_interrupted()

    def came_back(self, task: int) -> None:
        """A rollout of `task` has a score, or has failed."""
        left = self._in_flight.get(task, 0) - 1
        if left > 0:
            self._in_flight[task] = left
        else:
            self._in_flight.pop(task, None)
            self._release_unless_awaited(task)

    def all_sent(self) -> None:
        """Nothing of the plan is left to send."""
        last, self._last = self._last, None
        if last is not None:
            self._release_unless_awaited(last)
        if self._interrupted:
            self._close_interrupted()

    def all_back(self) -> None:
        """The whole plan is scored or has failed."""
        for task in self._in_flight:
            self._scores.release(task)
        self._in_flight.clear()
        self.all_sent()

    def begin_session(self) -> None:
        """The run is resumed: what was in flight is sent again."""
        self._interrupted.update(self._in_flight, () if self._last is None else (self._last,))
        self._in_flight.clear()
        self._last = None

    def _close_interrupted(self) -> None:
        interrupted, self._interrupted = self._interrupted, set()
        for task in interrupted:
            self._release_unless_awaited(task)

    def _release_unless_awaited(self, task: int) -> None:
        if task != self._last and task not in self._in_flight and task not in self._interrupted:
            self._scores.release(task)
