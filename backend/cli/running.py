"""Runs an operation to its end: renders its events, and turns signals into a stop, with the settled exit codes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import uvloop

from backend.errors import ExitCode, GymError
from backend.events import Event

Stop = Callable[[], bool]
"""Asks an operation to come to an end by itself; False when it has to be cancelled."""

_SIGNAL_CODES = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED, signal.SIGHUP: ExitCode.TERMINATED}

_LOOP_DESCRIPTORS = 8
"""Which it and its signal handlers open, and some."""


class _Interruption:
    """Remembers the first signal; cancels the task when the operation cannot stop by itself, or at the second signal."""

    def __init__(self, task: asyncio.Task[None], stop: Stop) -> None:
        self.first: signal.Signals | None = None
        self._task = task
        self._stop = stop

    def receive(self, number: signal.Signals) -> None:
        drains = self.first is None and self._stop()
        self.first = self.first or number
        if drains:
            print("stopping: rollouts in flight get 5 s to finish; once more stops at once", file=sys.stderr, flush=True)
        else:
            self._task.cancel()


def run_operation(
    events: Callable[[], AsyncGenerator[Event, None]],
    render: Callable[[Event], None],
    *,
    stop: Stop = lambda: False,
    interrupted_code: ExitCode = ExitCode.INTERRUPTED,
) -> ExitCode:
    """Run an operation. Returns `interrupted_code` after SIGINT, 143 after SIGTERM, else 0; errors propagate, with that code after a signal.

    A batch system may send SIGTERM to the servers too; then their ends are no news.
    """

    async def consume() -> None:
        async with aclosing(events()) as stream:
            async for event in stream:
                render(event)

    def code_after(number: signal.Signals) -> ExitCode:
        return interrupted_code if number is signal.SIGINT else _SIGNAL_CODES[number]

    async def main() -> ExitCode:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(consume())
        interruption = _Interruption(task, stop)
        # A shell's background job starts with SIGINT ignored; whoever sends it one by its number still means it. Only nohup is obeyed.
        nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        handled = [number for number in _SIGNAL_CODES if not (number is signal.SIGHUP and nohup)]
        before = {number: signal.getsignal(number) for number in handled}
        for number in handled:
            loop.add_signal_handler(number, interruption.receive, number)
        try:
            await task
        except asyncio.CancelledError:
            if interruption.first is None:
                raise
        except GymError as error:
            if interruption.first is not None:
                error.exit_code = code_after(interruption.first)
            raise
        finally:
            for number in handled:
                loop.remove_signal_handler(number)
                # The loop leaves Python's own answer behind, which is a traceback. After a first signal nothing is left to lose.
                signal.signal(number, signal.SIG_IGN if interruption.first is not None else before[number])
        return ExitCode.OK if interruption.first is None else code_after(interruption.first)

    _require_descriptors()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def _require_descriptors() -> None:
    """Raise the system's OSError where it gives this process no more files: an event loop that gets none would abort the process."""
    opened: list[int] = []
    try:
        for _ in range(_LOOP_DESCRIPTORS):
            opened.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for descriptor in opened:
            os.close(descriptor)
