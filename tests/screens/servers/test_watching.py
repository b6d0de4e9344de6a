"""Watching real records in a thread."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backend.errors import GymError
from backend.servers.stacks import process_created
from screens.servers import watching
from screens.servers.board import Board, Snapshot
from screens.servers.watching import wait_until_gone, watch_stacks
from screens.widgets.background import Reporter
from tests.server_samples import forget, keep, stack
from tests.workbench import NOW, still_terminal

__all__ = ["still_terminal"]


def wait_for(condition: Any, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_records_are_told_before_the_servers_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()
    monkeypatch.setattr(watching, "sample_stacks", lambda records, _earlier: asked.wait(10) and ())
    told: list[Snapshot] = []
    record = keep(stack())
    reporter = Reporter(told.append)
    thread = threading.Thread(target=watch_stacks, args=(Board(), lambda: NOW, reporter))
    thread.start()
    wait_for(lambda: told)
    assert told[0].stacks[0].record == record
    asked.set()
    wait_for(lambda: len(told) > 1)
    keep(replace(record, state="stopping"))
    wait_for(lambda: told[-1].stacks[0].record.state == "stopping")
    forget(record)
    wait_for(lambda: told[-1].stacks[0].ended_at == NOW)
    began = time.monotonic()
    reporter.cancel()
    thread.join()
    assert time.monotonic() - began < 3


def test_servers_that_do_not_run_are_sampled_as_gone(tmp_path: Path) -> None:
    told: list[Snapshot] = []
    servers = tuple(replace(each, url="http://127.0.0.1:9", pid=4_194_305) for each in stack().servers)
    keep(stack(servers=servers))
    reporter = Reporter(told.append)
    thread = threading.Thread(target=watch_stacks, args=(Board(), lambda: NOW, reporter))
    thread.start()
    wait_for(lambda: told and all(view.failed for view in told[-1].stacks[0].servers))
    reporter.cancel()
    thread.join()


def test_waiting_for_the_end_of_a_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    record = stack(pid=process.pid, created=process_created(process.pid))
    monkeypatch.setattr(watching, "GONE_SECONDS", 0.1)
    with pytest.raises(GymError, match="math_verified has not ended"):
        wait_until_gone(record, Reporter(lambda _value: None))
    process.kill()
    process.wait()
    wait_until_gone(record, Reporter(lambda _value: None))
