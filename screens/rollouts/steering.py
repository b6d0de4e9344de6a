"""Cancelling a run in two steps, and going from one run to another: what is to be done, and what is to be said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from backend.rollouts.run_entry import RunEntry
from screens.rollouts.snapshot import RunSnapshot

CONFIRM_SECONDS = 5.0


class Step(NamedTuple):
    """One step of cancelling."""

    action: str
    """`drain`, `cancel`, or empty when nothing is to be done yet."""
    text: str
    severity: str = "information"


class Cancelling:
    """Remembers when somebody asked for it: the second time within five seconds gives up what is in flight."""

    def __init__(self) -> None:
        self._asked_at = float("-inf")

    def ask(self, shot: RunSnapshot | None, going_on: bool, now: float) -> Step:
        """The key was pressed; without a snapshot the events of the run are still being read."""
        if not going_on:
            return Step("", "this run does not run, so there is nothing to cancel", "warning")
        again = now - self._asked_at <= CONFIRM_SECONDS
        self._asked_at = now
        if again:
            return Step("cancel", "")
        flight = f"the {shot.in_flight_count} rollouts" if shot is not None else "what is"
        if shot is not None and shot.stop_action:
            return Step("", f"x again gives up {flight} in flight", "warning")
        in_flight = f"{shot.in_flight_count}" if shot is not None else "what is"
        return Step("drain", f"no more rollouts are admitted; {in_flight} in flight may finish. x again gives them up.")


def run_beside(runs: Sequence[RunEntry], current: RunEntry | None, step: int) -> RunEntry | str:
    """The run `step` further on in `runs`, newest first, or why there is none."""
    if not runs:
        return "there is no run below the folder"
    paths = current.paths if current else None
    index = next((number for number, run in enumerate(runs) if run.paths == paths), None)
    wanted = 0 if index is None else index + step
    if 0 <= wanted < len(runs):
        return runs[wanted]
    return "this is the newest run" if wanted < 0 else "this is the oldest run"
