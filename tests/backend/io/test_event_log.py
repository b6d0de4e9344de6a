"""Events in files: numbered from 0, or on from where the file ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backend.events import Notice
from backend.io.event_log import EventLog, read_events
from backend.io.redact import Redactor


def append(path: Path, *texts: str, resumed: bool = False) -> None:
    log = EventLog(path, Redactor(["sk-very-secret-1"]), resumed=resumed)
    for number, text in enumerate(texts):
        log.append(Notice(text), at=float(number))
    log.close()


def numbers(path: Path) -> list[int]:
    return [event["seq"] for event in read_events(path)]


def test_an_event_is_a_masked_line(tmp_path: Path) -> None:
    append(tmp_path / "e", "the key is sk-very-secret-1")
    (line,) = (tmp_path / "e").read_text().splitlines()
    assert json.loads(line) == {"v": 1, "seq": 0, "t": 0.0, "type": "notice", "text": "the key is ****", "level": "info"}


def test_a_resumed_log_counts_on(tmp_path: Path) -> None:
    path = tmp_path / "e"
    append(path, "a", "b", resumed=True)
    append(path, "c", resumed=True)
    append(path, "d")
    assert numbers(path) == [0, 1, 2, 0]


@pytest.mark.parametrize("tail", [b'{"v": 1, "seq": 7, "ty', b"\n", b'{"other": 1}\n', b"[1]\n"])
def test_only_whole_events_are_counted(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "e"
    append(path, "a", "b")
    path.write_bytes(path.read_bytes() + tail)
    append(path, "c", resumed=True)
    assert json.loads(path.read_bytes().splitlines()[-1])["seq"] == 2


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "e"
    append(path, *["x" * 1000] * 1500)
    append(path, "last", resumed=True)
    assert json.loads(path.read_bytes().splitlines()[-1])["seq"] == 1500
