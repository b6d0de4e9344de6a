"""The real program in a terminal multiplexer, through a real run of the bundled benchmark: what a user does, and sees."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


class Tmux:
    """A terminal of 120x36 in a server of its own."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux")
        environment = {"GYM_TUI_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
        command = shlex.join([sys.executable, "-m", "backend.cli", "tui"])
        setting = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
        self._call(
            "new-session",
            "-d",
            "-x",
            "120",
            "-y",
            "36",
            "-c",
            str(folder),
            f"COLUMNS=80 {setting} {command}; echo ended with $?; sleep 600",
        )

    def _call(self, *words: str) -> str:
        command = ["tmux", "-S", self._socket, "-f", os.devnull, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout

    def screen(self) -> str:
        return self._call("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        self._call("send-keys", *keys)

    def type(self, text: str) -> None:
        self._call("send-keys", "-l", text)

    def resize(self, width: int, height: int) -> None:
        self._call("resize-window", "-x", str(width), "-y", str(height))

    def wait_for(self, *texts: str, seconds: float = 120) -> str:
        """The screen, once it shows all the texts."""
        end = time.monotonic() + seconds
        while not all(text in (screen := self.screen()) for text in texts):
            assert time.monotonic() < end, f"never on screen: {texts}\n{screen}"
            time.sleep(0.2)
        return screen

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False, timeout=30)


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    terminal = Tmux(tmp_path)
    yield terminal
    terminal.close()


def test_from_an_empty_folder_to_a_rollout(tmux: Tmux, tmp_path: Path) -> None:
    tmux.wait_for("[7 Results]", "No runs below")
    tmux.press(":")
    tmux.type(
        "eval run --benchmark first_steps --model-type llama_cpp_model --split benchmark --limit 6 --output results/m.jsonl"
    )
    tmux.press("Enter")
    tmux.wait_for("[4 Rollouts]", "results/m.jsonl", "waiting for")
    tmux.wait_for("running", "model call 1", "policy_model", "1 job")
    done = tmux.wait_for("m.jsonl · done", "6 / 6   100.0 %", "The run is over.", seconds=240)
    assert "95% CI" in done
    assert (tmp_path / "results" / "m_run" / "run.json").exists()

    tmux.press("Enter")
    viewer = tmux.wait_for("[5 Viewer]", "Answer:", "end: stop", "m.jsonl:")
    assert "extracted_answer" in viewer
    tmux.press("]")
    tmux.resize(80, 24)
    tmux.wait_for("[5 Viewer]", "user")
    tmux.resize(40, 12)
    tmux.wait_for("needs 60x16")
    tmux.resize(120, 36)

    tmux.press("7")
    tmux.wait_for("[7 Results]", "done", "results/m", "first_steps", "6 scored, 0 failed, 0 missing")
    tmux.press("q")
    tmux.wait_for("ended with 0", seconds=20)
