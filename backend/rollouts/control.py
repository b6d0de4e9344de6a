"""Telling a run to stop, from outside of it."""

from __future__ import annotations

import asyncio

DRAIN_SECONDS = 5.0
"""How long rollouts in flight may still finish after the first request to stop."""


LOST_CONNECTION_PAUSE_SECONDS = 1.0
"""How long a lost connection is held back: it may be the first sign of a server's death, which ends the run by itself."""


class RunControl:
    """The first `stop` drains a run that collects: nothing new is sent, what is in flight gets 5 s, metrics are written.

    A run that does not collect yet, or a second `stop`, is for whoever runs the operation to cancel; `stop` tells that by False.
    """

    def __init__(self) -> None:
        self.draining = asyncio.Event()
        self.collecting = False

    def stop(self) -> bool:
        """Ask for a drain; False when the operation has to be cancelled instead."""
        if self.collecting and not self.draining.is_set():
            self.draining.set()
            return True
        return False
