"""Marks and ages of processes, which no step of the wall clock changes."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest

from backend.servers import process_identity
from backend.servers.process_identity import boot_clock, process_age, process_mark


def test_a_mark_names_one_process_for_good() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        mark = process_mark(process.pid)
        assert mark == process_mark(process.pid) != ""
        assert mark != process_mark(os.getpid())
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert process_mark(process.pid) == ""  # a corpse
    assert process_mark(process.pid) == ""
    assert process_age(process.pid) is None


def test_marks_and_ages_ignore_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    mark, age = process_mark(os.getpid()), process_age(os.getpid())
    assert age is not None and age == pytest.approx(time.time() - psutil.Process().create_time(), abs=2)
    monkeypatch.setattr(process_identity.time, "time", lambda: 0.0)
    later = process_age(os.getpid())
    assert later is not None and later >= age
    assert process_mark(os.getpid()) == mark


def test_the_clock_goes_forward_and_is_the_machines() -> None:
    code = "from backend.servers.process_identity import boot_clock; print(boot_clock())"
    before = boot_clock()
    between = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert before <= between <= boot_clock()


def test_a_name_with_brackets_and_spaces_is_no_trouble() -> None:
    code = "from backend.servers.guard import name_process; name_process(') R 1 (x'); import time; print('x', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        age = process_age(process.pid)
        assert age is not None and 0 <= age < 60
        process.kill()
