"""Telling a run to stop, from outside of it: by a signal, or by a request in its control file."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

from backend.events import Event, Notice
from backend.rollouts.run_events import RunControlled

DRAIN = "drain"
CANCEL = "cancel"
ACTIONS = (DRAIN, CANCEL)

DRAIN_SECONDS = 5.0
"""How long rollouts in flight may still finish after a signal."""
LOST_CONNECTION_PAUSE_SECONDS = 1.0
"""How long a lost connection is held back: it may be the first sign of a server's death, which ends the run by itself."""


class RunControl:
    """What a run looks at to know whether it is to go on.

    The first `stop` (a signal) drains a run that collects: nothing new is sent, what is in flight gets 5 s, metrics are written. A run
    that does not collect yet, or a second `stop`, is for whoever runs the operation to cancel; `stop` tells that by False.

    `steer` is for requests: `drain` lets what is in flight finish without a limit, `cancel` gives it up; metrics are written. Either
    ends a run that does not collect yet.
    """

    def __init__(self) -> None:
        self.draining = asyncio.Event()
        self.stopped = False
        """The run has ended before its time because it was told to."""
        self.collecting = False
        self.interrupted = False
        """A signal has come."""
        self.on_event: Callable[[Event], bool] | None = None
        """Whoever passes events on at once; refuses by False."""
        self._unheard: deque[Event] = deque(maxlen=100)
        self._hurry = asyncio.Event()
        self._cancel = asyncio.Event()

    def stop(self) -> bool:
        """Ask for a drain; False when the operation has to be cancelled instead."""
        first, self.interrupted = not self.interrupted, True
        if self.collecting and first:
            self.draining.set()
            self._hurry.set()
            return True
        return False

    def steer(self, action: str, by: str) -> None:
        """Do what `by` requests; other actions than `drain` and `cancel` are only remarked upon."""
        if action not in ACTIONS:
            self._say(Notice(f"{by} asked for {action!r}, which this run does not know", "warning"))
            return
        self._say(RunControlled(action, by))
        self.draining.set()
        if action == CANCEL:
            self._cancel.set()
            self._hurry.set()

    async def time_is_up(self) -> None:
        """Return when what is in flight has to be given up."""
        await self._hurry.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await self._cancel.wait()

    def unheard(self) -> list[Event]:
        """Events that nobody has passed on yet; they are handed out once."""
        events = list(self._unheard)
        self._unheard.clear()
        return events

    def _say(self, event: Event) -> None:
        if self.on_event is None or not self.on_event(event):
            self._unheard.append(event)


async def until_draining(events: AsyncGenerator[Event, None], control: RunControl) -> AsyncGenerator[Event, None]:
    """Pass `events` on until they end or the run is told to stop; then `events` is closed, in the midst of whatever it waits for."""
    told = asyncio.ensure_future(control.draining.wait())
    try:
        async with aclosing(events):
            while not told.done():
                step = asyncio.ensure_future(anext(events))
                try:
                    await asyncio.wait({step, told}, return_when=asyncio.FIRST_COMPLETED)
                    if not step.done():
                        return
                    event = await step
                except StopAsyncIteration:
                    return
                finally:
                    step.cancel()
                    await asyncio.gather(step, return_exceptions=True)
                yield event
    finally:
        told.cancel()
