"""The part of the viewer that goes from rollout to rollout, to repeats of the same task and to problems.

Steps are counted when they are asked for faster than they can be taken: while a search for the one before goes on, and while the rows they
lead to are still being read.
"""

from __future__ import annotations

from screens.viewer.listing import PROBLEMS, find_problem, step
from screens.viewer.reading_screen import ReadingScreen
from screens.widgets.background import Failure, Reporter


class SteppingScreen(ReadingScreen):
    """A file, one of its rows, and the way to others."""

    def __init__(self) -> None:
        super().__init__()
        self._problem = next(iter(PROBLEMS))
        self._rollouts_to_go = 0
        """Steps that are asked for and not taken yet; below 0 back."""
        self._problems_to_go = 0
        """The same to problems."""
        self._steps_from: int | None = None
        """The row from which they are counted; None for the first that will be on show."""
        self._is_waiting = False
        """Whether somebody was told that steps wait for rows."""

    def forget_rows(self) -> None:
        super().forget_rows()
        self._drop_steps()

    def relisted(self) -> None:
        super().relisted()
        self._go_on()

    def page_shown(self) -> None:
        super().page_shown()
        self._go_on()

    def _leave_diff_for(self, row: int) -> None:
        self.leave_comparison()
        self.select(row)

    # Steps that wait

    def _drop_steps(self) -> None:
        self.background.stop("problem")
        self._rollouts_to_go = self._problems_to_go = 0
        self._steps_from = self._row
        self._is_waiting = False

    def _count_from_here(self) -> None:
        """Steps that wait are given up by whoever goes elsewhere."""
        if self._steps_from not in (None, self._row):
            self._drop_steps()
        self._steps_from = self._row

    def _go_on(self) -> None:
        """There may be rows that steps wait for."""
        if (self._rollouts_to_go or self._problems_to_go) and not self.background.works_on("problem"):
            self._count_from_here()
            self._take_steps()
            self._seek_problem()

    def _may_come(self, by: int) -> bool:
        """Whether there may be a further row in a direction, later."""
        if self._row is None and self._file is not None and self.tasks.listing:
            return True
        return self.is_reading and (by > 0 or not self.tasks.is_in_file_order)

    def _wait_for_rows(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self.workbench.tell("rows are still being read: the step is taken as soon as the next one is known")

    @property
    def _is_listed(self) -> bool:
        """Whether the list, as it is now, tells what is beside the row on show."""
        listing, row = self.tasks.listing, self._row
        return listing is not None and row is not None and (row in listing or self.tasks.hides(row))

    @property
    def so_far(self) -> str:
        """What is added to words that rows may refute which are not read yet."""
        return " so far" if self.is_reading else ""

    # To the next rollout

    def action_next_rollout(self) -> None:
        self._step(1)

    def action_previous_rollout(self) -> None:
        self._step(-1)

    def _step(self, by: int) -> None:
        self._count_from_here()
        self._rollouts_to_go += by
        self._take_steps()
        if self._rollouts_to_go:
            self.tasks.hurry()

    def _take_steps(self) -> None:
        listing, row = self.tasks.listing, self._row
        by = 1 if self._rollouts_to_go > 0 else -1
        while self._rollouts_to_go and listing is not None and self._is_listed:
            following = step(listing, row, by)
            if following is None:
                break
            row = following
            self._rollouts_to_go -= by
        if row is not None and row != self._row:
            self._steps_from = row
            self._leave_diff_for(row)
        if not self._rollouts_to_go:
            self._is_waiting = self._is_waiting and bool(self._problems_to_go)
        elif self._may_come(by):
            self._wait_for_rows()
        else:
            self._rollouts_to_go = 0
            self._is_waiting = False
            end = "this is the last rollout" if by > 0 else "this is the first rollout"
            self.workbench.tell("no rollout is on show" if row is None else end)

    # To a repeat

    def action_next_repeat(self) -> None:
        self._step_repeat(1)

    def action_previous_repeat(self) -> None:
        self._step_repeat(-1)

    def _step_repeat(self, by: int) -> None:
        entry = self._entry()
        if entry is None or self._row not in entry.rows:
            self.workbench.tell("the repeats of this task are not known yet")
        elif len(entry.rows) == 1:
            self.workbench.tell(f"this task has one repeat{self.so_far}")
        else:
            rows = [row for row in entry.rows if row == self._row or not self.tasks.hides(row)]
            if len(rows) == 1:
                self.workbench.tell("the filter hides the other repeats of this task")
            else:
                self._leave_diff_for(rows[(rows.index(self._row) + by) % len(rows)])

    # To a problem

    def action_next_problem(self) -> None:
        self._step_problem(1)

    def action_previous_problem(self) -> None:
        self._step_problem(-1)

    def _step_problem(self, by: int) -> None:
        if self.background.works_on("problem"):
            self._problems_to_go += by
            return
        self._count_from_here()
        self._problems_to_go += by
        self._seek_problem()
        if self._is_waiting:
            self.tasks.hurry()

    def _seek_problem(self) -> None:
        listing, opened, current, kind = self.tasks.listing, self._file, self._row, self._problem
        by = 1 if self._problems_to_go > 0 else -1
        if not self._problems_to_go:
            return
        if listing is None or opened is None or not self._is_listed:
            self._no_problem(by)
            return
        keys = opened.rollouts.keys

        def done(row: int | None) -> None:
            if row is not None:
                self._steps_from = row
                self.select(row)
                self._problems_to_go -= by
                self._is_waiting = self._is_waiting and bool(self._problems_to_go)
                self._seek_problem()
            elif self.tasks.listing is not listing:  # rows have come that were not searched
                self._seek_problem()
            else:
                self._no_problem(by)

        def work(reporter: Reporter) -> int | None:
            return find_problem(listing, keys, current, by, kind, lambda: reporter.cancelled)

        self.background.start("problem", work, done=done, failed=self._seek_failed)

    def _no_problem(self, by: int) -> None:
        if self._may_come(by):
            self._wait_for_rows()
            return
        self._problems_to_go = 0
        self._is_waiting = False
        self.workbench.tell(
            "no rollout is on show" if self._row is None else f"no further rollout counts as a problem ({self._problem})"
        )

    def _seek_failed(self, failure: Failure) -> None:
        self._drop_steps()
        self.tell_failure(failure)

    def tell_failure(self, failure: Failure) -> None:
        self.workbench.tell(f"{failure.message}{'; ' if failure.hint else ''}{failure.hint}", "error")

    def action_problem_kind(self) -> None:
        kinds = list(PROBLEMS)
        self._problem = kinds[(kinds.index(self._problem) + 1) % len(kinds)]
        self.tasks.count_problems_as(f"problems: {self._problem}")
