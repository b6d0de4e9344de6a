"""What the supervisor hands to a server process: its listening socket, and a pipe on which it reports.

A process that nobody supervises (a test, `python app.py` by hand) has no context and binds for itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from dataclasses import dataclass

READY = b"R"
FAILED = b"F"
PHASE = b"P"
SETTING_UP = "setting up"
"""The step between the import of the entry point and the first answer."""
_MOST_REPORTED = 1900
"""Bytes of a text as JSON: two of them and what is around them fit into one write that the system does not tear (4096, PIPE_BUF)."""


@dataclass(slots=True)
class ProcessContext:
    """`listener` is bound already; `report` is the write end of a pipe to the supervisor's helper process."""

    listener: socket.socket | None = None
    report: int | None = None
    session_secret: str | None = None
    dry_run: bool = False
    ended_by: int | None = None
    """The signal that has ended its serving."""

    def report_phase(self, phase: str) -> None:
        """Say which step of its start-up this server has come to."""
        self._report(PHASE + phase.encode())

    def report_ready(self) -> None:
        """Say that requests are answered from now on."""
        self._report(READY)

    def report_failure(self, reason: str, hint: str | None = None, *, told: bool = False) -> None:
        """Say why this server cannot run; `told` when that is the whole story, so that its output adds nothing."""
        story = {"reason": _cut(reason), "hint": hint and _cut(hint), "told": told}
        self._report(FAILED + json.dumps(story).encode())

    def forward(self, message: bytes) -> None:
        """Pass on what another process of this server reported, without its line end."""
        self._report(message)

    def _report(self, message: bytes) -> None:
        """One line with a single write, short enough never to be torn; a reader that is gone needs no news."""
        if self.report is not None:
            with contextlib.suppress(OSError):
                os.write(self.report, message + b"\n")


def _cut(text: str) -> str:
    text = text[:_MOST_REPORTED]
    while (size := len(json.dumps(text))) > _MOST_REPORTED:  # one character may be up to twelve bytes
        text = text[: len(text) * _MOST_REPORTED // size]
    return text


class _Current:
    context = ProcessContext()


def process_context() -> ProcessContext:
    """The context of this process; an empty one where nobody supervises it."""
    return _Current.context


def enter_process_context(context: ProcessContext) -> None:
    """Make `context` this process' context."""
    _Current.context = context
