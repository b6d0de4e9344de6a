"""The entry point: what it refuses before any command runs, and how it says it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from backend.cli.main import main
from backend.io.text import printable
from tests.conftest import COMMAND, ROOT, Gym


def test_the_other_distribution_beside_ours_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site-packages" / "nemo_gym-0.6.0.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site-packages")])
    assert main(["list", "benchmarks"]) == 1
    assert "the distribution nemo-gym is installed in this environment too" in capsys.readouterr().err
    assert main(["--version"]) == 0


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert printable("a\x1b[2Jb\rc\x07\u202ed\n\te") == "a␛[2Jb␍c␇\ufffdd\n\te"


def test_whatever_is_written_to_standard_error_is_text() -> None:
    script = (
        "import logging, sys, backend.cli.main as command_line\n"
        "def broken(): logging.warning('log \\x1b[2J'); sys.stderr.writelines(['\\x9b']); raise ValueError('fault \\x1b]0;x\\x07')\n"
        "command_line.main = broken\n"
        "from backend.cli.entry import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "log ␛[2J" in done.stderr and "fault" in done.stderr
    assert not any(char in done.stderr for char in "\x1b\x9b\x07")


def test_errors_are_json_where_json_was_asked_for(gym: Gym) -> None:
    result = gym.run("list", "benchmarks", "first_stepz", "--json")
    assert result.returncode == 1
    assert result.stdout == ""
    error = json.loads(result.stderr)["error"]
    assert error["exit_code"] == 1
    assert error["hint"] == "Did you mean `first_steps`?"


def test_output_that_nobody_reads_is_no_error(gym: Gym) -> None:
    script = f"{' '.join(COMMAND)} list benchmarks --json | true; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(
        ["bash", "-c", script],
        cwd=gym.cwd,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_versions(gym: Gym) -> None:
    report = json.loads(gym.run("--version", "--json").stdout)
    assert (report["nemo_gym"], report["gym_tui"]) == ("0.6.0", "0.1.0")
    assert set(report) == {"nemo_gym", "gym_tui", "python", "python_path", "installation_path", "dependencies", "system"}
    assert set(report["system"]) == {"os", "platform", "architecture", "processor", "cpus", "memory_gb"}
