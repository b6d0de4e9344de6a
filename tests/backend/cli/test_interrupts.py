"""What Ctrl-C does before a command is at work, and after."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.cli.interrupts import let_interrupts_kill, let_interrupts_raise
from tests.conftest import ROOT


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
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    let_interrupts_kill()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL


def test_what_somebody_decided_stays() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a shell's background job
    let_interrupts_kill()
    let_interrupts_raise()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_no_exception_breaks_an_import(tmp_path: Path) -> None:
    (tmp_path / "slow_module.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nprint('imported')\n")
    code = "from backend.cli.interrupts import *; let_interrupts_kill(); let_interrupts_raise(); import slow_module"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("ends", ["by itself", "by an error"])
def test_no_exception_disturbs_the_end_of_the_program(tmp_path: Path, ends: str) -> None:
    """A hook at exit stands for the interpreter's end, which is too short to be met."""
    how = "return 0" if ends == "by itself" else "raise backend.errors.GymError('no')"
    code = f"""
import atexit, os, signal, sys, time
import backend.errors
from backend.cli import entry, main
from backend.cli.interrupts import let_interrupts_raise
def run(parsed):
    let_interrupts_raise()
    {how}
main._run = run
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
sys.argv[1:] = ["list", "agents"]
sys.exit(entry.main())
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == -signal.SIGINT
    assert "Traceback" not in result.stderr and "KeyboardInterrupt" not in result.stderr
