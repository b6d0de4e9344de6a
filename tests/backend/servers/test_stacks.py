"""Records of stacks on this machine: found while their command runs, forgotten afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from backend.io.homes import state_home
from backend.io.redact import Redactor
from backend.servers.process_identity import process_mark
from backend.servers.stack_record import StackRecord, StackServer
from backend.servers.stacks import (
    KEPT_FOLDERS,
    is_running,
    new_stack_folder,
    process_created,
    remove_record,
    running_stacks,
    write_record,
)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def process() -> Iterator[psutil.Process]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as started:
        yield psutil.Process(started.pid)
        started.kill()


def record_of(process: psutil.Process, **changes: object) -> StackRecord:
    server = StackServer("quiz", "resources_servers", "mcqa", "http://127.0.0.1:12345", uses=("policy_model",))
    record = StackRecord(
        id="20260101-000000-abcd",
        pid=process.pid,
        created=process.create_time(),
        started=1.0,
        command=("gym", "env", "start"),
        folder="/somewhere",
        head_url="http://127.0.0.1:11000",
        state="ready",
        events="",
        servers=(server,),
        name="quiz",
        machine=os.uname().nodename,
    )
    return replace(record, **changes)  # type: ignore[arg-type]


def write(record: StackRecord) -> Path:
    write_record(record, Redactor())
    return state_home("stacks") / f"{record.id}.json"


def test_a_record_is_read_as_it_was_written(process: psutil.Process) -> None:
    record = record_of(process)
    path = write(record)
    assert running_stacks() == (record,)
    assert path.stat().st_mode & 0o777 == 0o600
    remove_record(record.id)
    assert running_stacks() == ()


def test_stacks_come_oldest_first(process: psutil.Process) -> None:
    for number, started in enumerate([3.0, 1.0, 2.0]):
        write(record_of(process, id=f"s{number}", started=started))
    assert [record.id for record in running_stacks()] == ["s1", "s2", "s0"]


def test_secrets_are_masked(process: psutil.Process) -> None:
    path = state_home("stacks") / "20260101-000000-abcd.json"
    write_record(record_of(process, command=("gym", "++k=sk-abcdefgh")), Redactor(["sk-abcdefgh"]))
    assert "sk-abcdefgh" not in path.read_text()
    assert running_stacks()[0].command == ("gym", "++k=****")


def test_the_record_of_a_dead_command_is_removed(process: psutil.Process) -> None:
    path = write(record_of(process))
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert running_stacks() == ()  # a corpse that nobody has reaped yet counts as dead
    assert not path.exists()


def test_another_process_with_the_number_is_not_the_stack(process: psutil.Process) -> None:
    stranger = record_of(process, created=process.create_time() - 60)
    assert not is_running(stranger)
    path = write(stranger)
    assert running_stacks() == ()
    assert not path.exists()
    assert is_running(record_of(process, created=process.create_time() + 0.02))  # the clock was adjusted a little


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_step_of_the_clock_does_not_lose_a_stack(process: psutil.Process, step: float) -> None:
    """The system derives creation times from the wall clock: after a step, the one in the record differs from what is told now."""
    record = record_of(process, created=process.create_time() - step, mark=process_mark(process.pid))
    write(record)
    assert running_stacks() == (record,)
    assert not is_running(replace(record, created=process.create_time(), mark=process_mark(os.getpid())))


def test_records_of_other_machines_are_left_alone(process: psutil.Process) -> None:
    path = write(record_of(process, machine="another-host", pid=1))
    assert running_stacks() == ()
    assert path.exists()


@pytest.mark.parametrize("content", ["", "{", "[1]", "null", '{"id": "x"}', '{"servers": [{}], "command": []}', "\x00\xff"])
def test_what_is_no_record_is_passed_over(process: psutil.Process, content: str) -> None:
    path = write(record_of(process))
    path.with_name("broken.json").write_text(content)
    assert len(running_stacks()) == 1


def test_a_record_of_a_later_version_is_read_as_far_as_it_is_known(process: psutil.Process) -> None:
    path = write(record_of(process))
    value = json.loads(path.read_text())
    value["more"] = value["servers"][0]["more"] = 1
    del value["servers"][0]["phase"]
    path.write_text(json.dumps(value))
    assert running_stacks() == (record_of(process),)


def test_no_process_was_created_with_a_free_number() -> None:
    assert process_created(2**22 + 1) is None


def test_old_folders_go_and_those_of_running_stacks_stay(process: psutil.Process) -> None:
    oldest = record_of(process, id="20200101-000000-0000")
    write(oldest)
    folders = [state_home("stacks") / name for name in (oldest.id, *(f"20250101-0000{number:02}-0000" for number in range(30)))]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "a.log").write_text("a")
    new = new_stack_folder("20260101-000000-ffff")
    assert new is not None and new.is_dir()
    left = sorted(path.name for path in state_home("stacks").iterdir() if path.is_dir())
    assert left[0] == oldest.id
    assert left[-1] == new.name
    assert len(left) == KEPT_FOLDERS + 1
    assert left[1] == "20250101-000011-0000"


def test_folders_of_stacks_on_other_machines_stay(process: psutil.Process) -> None:
    elsewhere = record_of(process, id="20200101-000000-0000", machine="another-host", pid=1)
    write(elsewhere)
    for name in (elsewhere.id, *(f"20250101-0000{number:02}-0000" for number in range(30))):
        (state_home("stacks") / name).mkdir(parents=True)
    assert new_stack_folder("20260101-000000-ffff") is not None
    assert (state_home("stacks") / elsewhere.id).is_dir()


def test_without_a_state_folder_there_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYM_TUI_HOME", "/proc/nonexistent")
    assert new_stack_folder("x") is None
    assert running_stacks() == ()
