"""Stacks that are to come back: one start for each, however often somebody asks for it meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from backend.servers.stack_record import StackRecord
from screens.servers.board import Snapshot


@dataclass(frozen=True, slots=True)
class Restart:
    """A stack on its way back."""

    record: StackRecord
    server: str
    """The one that had the cursor."""
    started_at: float | None = None
    """When its command was started; None while the stack before has yet to end."""
    others: frozenset[str] = frozenset()
    """Stacks that ran at that time: none of them is the one that is waited for."""


class Restarts:
    """All of them, by the id of the stack before."""

    def __init__(self) -> None:
        self._all: dict[str, Restart] = {}

    def of(self, record: StackRecord) -> Restart | None:
        """The restart of a stack, while it is on its way."""
        return self._all.get(record.id)

    def wait_for_end(self, record: StackRecord, server: str) -> None:
        """The stack was asked to end, and is to be started after that."""
        self._all[record.id] = Restart(record, server)

    def started(self, record: StackRecord, server: str, at: float, running: Iterable[str]) -> None:
        """The stack's command was started, beside the stacks `running`."""
        self._all[record.id] = Restart(record, server, at, frozenset(running))

    def give_up(self, record: StackRecord) -> None:
        """It will not come back."""
        self._all.pop(record.id, None)

    def come_back(self, snapshot: Snapshot) -> list[tuple[str, tuple[str, str]]]:
        """Those that are there now, and no longer on their way: the id of the stack before, and the row for the cursor."""
        found: list[tuple[str, tuple[str, str]]] = []
        for old, restart in list(self._all.items()):
            taken = {new for _, (new, _) in found}
            new = [
                stack.record.id
                for stack in snapshot.running
                if stack.record.command == restart.record.command and stack.record.id not in restart.others | taken | {old}
            ]
            if new and restart.started_at is not None:
                del self._all[old]
                found.append((old, (new[-1], restart.server)))
        return found
