"""The note of the files that a warm parent reads, and what a command does with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from backend.servers import read_ahead
from tests.conftest import ROOT, Gym

pytestmark = pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system takes no such advice")

NOTE = "from backend.servers.read_ahead import note_files; import json.decoder; note_files()"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path))
    return tmp_path


def notes(home: Path) -> list[Path]:
    return sorted((home / "cache" / "read-ahead").glob("*"))


def noted(home: Path) -> list[str]:
    (note,) = notes(home)
    return note.read_text().split("\n")


def test_a_process_notes_the_files_of_its_modules_in_their_order(home: Path) -> None:
    subprocess.run([sys.executable, "-P", "-c", NOTE], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    files = noted(home)
    assert all(Path(file).exists() for file in files)
    modules = [Path(file).name.split(".")[0] for file in files]
    assert modules.index("read_ahead") < modules.index("decoder")
    (note,) = notes(home)
    assert note.stat().st_mode & 0o077 == 0


def test_a_note_is_written_anew_only_when_it_changes(home: Path) -> None:
    read_ahead.note_files()
    (note,) = notes(home)
    before = note.stat().st_ino
    read_ahead.note_files()
    assert note.stat().st_ino == before
    note.write_bytes(b"/something/else")
    read_ahead.note_files()
    assert "/something/else" not in noted(home)


def test_what_was_noted_is_asked_for_and_what_is_gone_is_passed_over(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_ahead.note_files()
    (note,) = notes(home)
    os.mkfifo(home / "pipe")  # nobody ever writes into it
    (home / "module.pyc").write_bytes(b"x")
    note.write_text("\n".join([str(home / "gone"), str(home / "pipe"), str(home), str(home / "module.pyc"), ""]))
    asked: list[str] = []
    advise = os.posix_fadvise

    def seen(descriptor: int, offset: int, length: int, advice: int) -> None:
        asked.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        assert (offset, advice) == (0, os.POSIX_FADV_WILLNEED)
        advise(descriptor, offset, length, advice)

    monkeypatch.setattr(os, "posix_fadvise", seen)
    before = len(os.listdir("/proc/self/fd"))
    read_ahead.read_ahead()
    assert str(home / "module.pyc") in asked and str(home / "gone") not in asked
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_damaged_note_does_no_harm(home: Path) -> None:
    read_ahead.note_files()
    (note,) = notes(home)
    for content in (b"\0" * 200, b"\xff\xfe\n\n/", b""):
        note.write_bytes(content)
        read_ahead.read_ahead()


def test_without_a_note_or_a_home_nothing_happens(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_ahead.read_ahead()
    monkeypatch.setenv("GYM_TUI_HOME", "/dev/null/nothing")
    read_ahead.note_files()
    read_ahead.read_ahead()
    assert not (home / "cache").exists()


@pytest.mark.slow
def test_a_stack_that_was_stopped_has_left_a_note(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    gym.environment["GYM_TUI_HOME"] = str(gym.cwd / "home")
    process = gym.start("env", "start", "--config", "tiny.yaml", f"++head_server.port={free_port}")
    gym.wait_for("servers ready!")
    process.send_signal(signal.SIGINT)
    process.wait(20)
    modules = {Path(file).name.split(".")[0] for file in noted(gym.cwd / "home")}
    assert {"warm_parent", "resources_server", "routing", "_pydantic_core"} <= modules
    assert "app" not in modules  # what servers import of their own is not the warm parent's
