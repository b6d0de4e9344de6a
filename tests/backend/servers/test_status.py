"""`gym env status` by its operation: how long a stack has been up."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from backend.config.request import ConfigRequest
from backend.servers.process_identity import boot_clock
from backend.servers.status import environment_status
from tests.conftest import unused_port
from tests.server_samples import keep, server, stack


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def uptime(**facts: float) -> float:
    """What is told of a stack with one server."""
    keep(stack(servers=(server("quiz", "resources_servers", unused_port(), os.getpid()),), **facts))
    (status,) = environment_status(ConfigRequest())
    (entry,) = status.servers
    return float(entry["uptime_seconds"])


@pytest.mark.parametrize("step", [-3600, 3600])
def test_a_step_of_the_clock_changes_no_uptime(step: int) -> None:
    assert 50 <= uptime(started=time.time() - 50 - step, began=boot_clock() - 50) < 100


def test_a_record_without_the_other_clock_gives_no_negative_uptime() -> None:
    assert uptime(started=time.time() + 3600) == 0
