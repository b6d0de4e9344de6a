"""Work beside the loop: threads that report by messages, end at once when asked to, and whose outdated results are dropped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from textual.message import Message
from textual.widget import Widget

from backend.errors import GymError
from screens.widgets.workbench import workbench_of

T = TypeVar("T")


class Reporter:
    """The side of a worker that works: whether it should stop, and how it tells what it has found."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._stop = threading.Event()

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more; every loop in a worker looks at this."""
        return self._stop.is_set()

    def tell(self, value: Any) -> None:
        """Hand over an intermediate result: immutable, because two threads see it."""
        if not self.cancelled:
            self._send(value)

    def wait(self, seconds: float) -> bool:
        """Sleep, but wake up when cancelled; True when the work should go on."""
        return not self._stop.wait(seconds)

    def cancel(self) -> None:
        """Ask the worker to stop."""
        self._stop.set()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a piece of work ended without a result."""

    message: str
    hint: str = ""

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """What a person reads of an error; one that is not ours is named by its type as well."""
        if isinstance(error, GymError):
            place = f"{error.place}: " if error.place and str(error.place) not in error.message else ""
            return cls(f"{place}{error.message}", error.hint or "")
        return cls(f"{type(error).__name__}: {error}")


class Reported(Message, bubble=False):
    """Something a worker has told, on its way to the loop."""

    def __init__(self, reporter: Reporter, deliver: Callable[[Any], None], value: Any, last: bool) -> None:
        super().__init__()
        self.reporter = reporter
        self.deliver = deliver
        self.value = value
        self.last = last


class Background(Generic[T]):
    """The workers of one widget, one at a time per group.

    The widget forwards `Reported` messages to `receive` and calls `stop_all` when it goes.
    """

    def __init__(self, owner: Widget) -> None:
        self._owner = owner
        self._current: dict[str, Reporter] = {}

    def start(
        self,
        group: str,
        work: Callable[[Reporter], T],
        *,
        done: Callable[[T], None],
        failed: Callable[[Failure], None],
        partly: Callable[[Any], None] | None = None,
        endless: bool = False,
    ) -> None:
        """Run `work` in a thread, in place of whatever the group still does. All callbacks run on the loop, and only for the newest work.

        `endless` work follows something until it is stopped; the workbench counts as idle meanwhile.
        """
        self.stop(group)
        workbench = workbench_of(self._owner)
        owner = self._owner

        def send(value: Any) -> None:
            owner.post_message(Reported(reporter, partly or _ignore, value, False))

        reporter = Reporter(send)
        self._current[group] = reporter
        if not endless:
            workbench.begin_work()

        def finish(outcome: T | Failure) -> None:
            if not endless:
                workbench.end_work()
            if self._current.get(group) is reporter:
                del self._current[group]
            if not reporter.cancelled:
                if isinstance(outcome, Failure):
                    failed(outcome)
                else:
                    done(outcome)

        def run() -> None:
            outcome: T | Failure
            try:
                outcome = work(reporter)
            except Exception as error:
                outcome = Failure.of(error)
            if not owner.post_message(Reported(reporter, finish, outcome, True)) and not endless:
                owner.app.call_later(workbench.end_work)  # the owner is gone, the work is over all the same

        owner.run_worker(run, name=group, group=group, thread=True, exit_on_error=False)

    def works_on(self, group: str) -> bool:
        """Whether the newest work of a group goes on. Who looks regularly asks, or work that is slower than that never ends well."""
        return group in self._current

    def receive(self, message: Reported) -> None:
        """Deliver what a worker has told, unless it is outdated."""
        message.stop()
        if message.last or not message.reporter.cancelled:
            message.deliver(message.value)

    def stop(self, group: str) -> None:
        """Give up what a group does."""
        reporter = self._current.pop(group, None)
        if reporter is not None:
            reporter.cancel()

    def stop_all(self) -> None:
        """Give up everything."""
        for group in list(self._current):
            self.stop(group)


def _ignore(_value: Any) -> None:
    return None
