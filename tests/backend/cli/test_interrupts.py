"""What Ctrl-C does before a command is at work."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from backend.cli.interrupts import let_interrupts_kill, let_interrupts_raise


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_to_and_fro() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    let_interrupts_kill()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    let_interrupts_raise()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_somebody_decided_stays() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a shell's background job
    let_interrupts_kill()
    let_interrupts_raise()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
