"""Watches all stacks of this machine in one thread."""

from __future__ import annotations

import time
from collections.abc import Callable

from backend.errors import GymError
from backend.servers.stack_record import StackRecord
from backend.servers.stack_watch import StackSample, sample_stacks
from backend.servers.stacks import is_running, running_stacks
from screens.servers.board import Board
from screens.widgets.background import Reporter

SAMPLE_SECONDS = 1.0
RECORD_SECONDS = 0.25
"""How often the records are read: while servers start, much happens within a second."""
GONE_SECONDS = 30.0


def watch_stacks(board: Board, clock: Callable[[], float], reporter: Reporter) -> None:
    """Sample all servers once a second, and tell a `Snapshot` after that and whenever a record has changed, until cancelled."""
    samples: tuple[StackSample, ...] = ()
    board.note_pause()
    sampled_at = float("-inf")
    shown: object = None
    while not reporter.cancelled:
        records = running_stacks()
        now = time.monotonic()
        if records != shown:
            reporter.tell(board.look(records, clock()))
            shown = records
        if now - sampled_at >= SAMPLE_SECONDS:
            sampled_at = now
            samples = sample_stacks(records, samples)
            if reporter.cancelled:
                return
            board.note(samples)
            reporter.tell(board.look(records, clock()))
        reporter.wait(RECORD_SECONDS)


def wait_until_gone(record: StackRecord, reporter: Reporter) -> None:
    """Wait until the command of a stack has ended. Raises `GymError` when it has not after 30 s."""
    deadline = time.monotonic() + GONE_SECONDS
    while is_running(record):
        if time.monotonic() > deadline:
            raise GymError(
                f"the stack {record.name or record.id} has not ended after {GONE_SECONDS:.0f} s, so it is not started again"
            )
        if not reporter.wait(RECORD_SECONDS):
            return
