"""Copies say how much went where; what a terminal may not take is in a file too; commands hold no keys."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest

from backend.io.homes import state_home
from gym_tui.clipboard import clipboard_sequences, copy_out, doubt_about, masked_command


class Driver:
    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, text: str) -> None:
        self.written.append(text)


class FakeApp:
    def __init__(self) -> None:
        self._driver = Driver()


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("TMUX", "STY", "VTE_VERSION", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return FakeApp()


def copies() -> list[Path]:
    return sorted(state_home("copies").glob("*"))


def test_a_small_text_goes_to_the_terminal(app: Any) -> None:
    assert copy_out(app, "grüß", "the line") == "copied the line (4 characters) to the terminal's clipboard"
    assert app._driver.written == [f"\x1b]52;c;{base64.b64encode('grüß'.encode()).decode()}\x07"]
    assert copies() == []


def test_a_text_that_terminals_cut_is_in_a_file_too(app: Any) -> None:
    text = "x" * 80_000
    told = copy_out(app, text, "the turn")
    assert told.startswith(
        "copied the turn (80.0 kB) to the terminal's clipboard; terminals cut what is above 74.0 kB, so it is also in "
    )
    (file,) = copies()
    assert file.read_text() == text
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.name in told


def test_a_huge_text_goes_to_a_file_only(app: Any) -> None:
    told = copy_out(app, "x" * 2_000_000, "the file")
    assert app._driver.written == []
    assert "clipboard" not in told.split(";")[0] and "also in" in told


def test_without_a_place_for_the_file_it_says_so(app: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "file"))
    assert "no file could be written" in copy_out(app, "x" * 80_000, "the turn")


def test_nothing_is_not_copied(app: Any) -> None:
    assert copy_out(app, "", "the filter") == "nothing to copy: the filter is empty"
    assert app._driver.written == []


@pytest.mark.parametrize("variable", ["TMUX", "STY", "VTE_VERSION"])
def test_where_it_may_not_arrive_it_says_so_and_keeps_a_file(app: Any, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "1")
    assert "so it is also in" in copy_out(app, "text", "the line")
    assert [file.read_text() for file in copies()] == ["text"]


def test_tmux_gets_it_and_passes_it_on() -> None:
    direct, through = clipboard_sequences("a", {"TMUX": "/tmp/tmux"})
    assert direct == "\x1b]52;c;YQ==\x07"
    assert through == "\x1bPtmux;\x1b\x1b]52;c;YQ==\x07\x1b\\"


def test_gnu_screen_gets_pieces_that_it_passes_on() -> None:
    (sequence,) = clipboard_sequences("a" * 3000, {"STY": "1"})
    pieces = re.findall(r"\x1bP(.*?)\x1b\\", sequence, re.DOTALL)
    assert max(map(len, pieces)) <= 768
    assert "".join(pieces) == f"\x1b]52;c;{base64.b64encode(b'a' * 3000).decode()}\x07"


def test_doubts() -> None:
    assert doubt_about({"TERM": "xterm"}, 74_000) == ""
    assert doubt_about({"TERM": "xterm"}, 74_001)
    assert doubt_about({"TERM": "linux"}, 1)
    assert doubt_about({"TERM_PROGRAM": "Apple_Terminal"}, 1)


def test_only_the_newest_copies_are_kept(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STY", "1")
    for number in range(25):
        copy_out(app, str(number), "it")
    assert len(copies()) == 20


@pytest.mark.parametrize(
    ("command", "masked"),
    [
        ("gym eval run --model-api-key abcdefgh", "gym eval run --model-api-key '****'"),
        ("gym eval run ++policy_api_key=abcdefgh", "gym eval run '++policy_api_key=****'"),
        ("gym eval run --limit 3", "gym eval run --limit 3"),
        ("gym 'unfinished", "gym 'unfinished"),
    ],
)
def test_commands_are_masked(command: str, masked: str) -> None:
    assert masked_command(command) == masked
