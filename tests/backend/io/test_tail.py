"""Ends of logs, and logs that are followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backend.errors import GymError
from backend.io.tail import Follower, NewLines, tail_lines


def test_the_last_lines_come_back(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"one\r\ntwo\n\nthree \xff\nunfinished")
    assert tail_lines(path, 3) == ["", "three \ufffd", "unfinished"]
    assert tail_lines(path, 99) == ["one", "two", "", "three \ufffd", "unfinished"]
    assert tail_lines(path, 0) == []
    path.write_bytes(b"")
    assert tail_lines(path, 5) == []


def test_only_the_end_of_a_large_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"first\nsecond\nthird\n")
    assert tail_lines(path, 9, max_bytes=10) == ["third"]
    assert tail_lines(path, 9, max_bytes=13) == ["second", "third"]
    path.write_bytes(b"x" * 100)
    assert tail_lines(path, 9, max_bytes=10) == ["x" * 10]


def test_a_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(GymError, match=r"cannot read .*none.log"):
        tail_lines(tmp_path / "none.log", 3)
    with pytest.raises(GymError, match="Is a directory"):
        Follower(tmp_path).read()


def test_a_follower_gives_complete_lines(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    with Follower(path) as follower:
        assert follower.read() == NewLines()
        with open(path, "wb", buffering=0) as log:
            log.write(b"one\ntw")
            assert follower.read().lines == ("one",)
            assert follower.read().lines == ()
            log.write(b"o\n\n")
            assert follower.read() == NewLines(("two", ""))


def test_a_follower_may_begin_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"old\nhal")
    follower = Follower(path, from_end=True)
    with open(path, "ab") as log:
        log.write(b"f\nnew\n")
    assert follower.read().lines == ("half", "new")
    follower.close()


def test_rotation_gives_the_rest_of_the_old_file_first(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"one\n")
    follower = Follower(path)
    assert follower.read().lines == ("one",)
    with open(path, "ab") as log:
        log.write(b"two\nend")
    os.rename(path, tmp_path / "server.log.1")
    assert follower.read() == NewLines(("two",))
    path.write_bytes(b"new\n")
    assert follower.read() == NewLines(("end",), more=True)
    assert follower.read() == NewLines(("new",), restarted=True)
    follower.close()


def test_truncation_starts_over(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"a longer line\nhalf")
    follower = Follower(path)
    follower.read()
    path.write_bytes(b"new\n")
    assert follower.read() == NewLines(("new",), restarted=True)
    follower.close()


def test_much_text_and_endless_lines_come_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"x" * (9 << 20) + b"\nlast\n")
    follower = Follower(path)
    pieces: list[str] = []
    while (step := follower.read()).more:
        pieces += step.lines
    pieces += step.lines
    assert [len(piece) for piece in pieces[:9]] == [1 << 20] * 9
    assert "".join(pieces[9:]) == "last"
    follower.close()


def test_a_follower_may_begin_near_the_end(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"first\nsecond\nthird\nunfinished")
    for last, expected, skipped in (
        (99, ("first", "second", "third"), 0),
        (17, ("third",), 13),
        (16, ("third",), 13),
        (15, (), 19),
    ):
        with Follower(path, last_bytes=last) as follower:
            assert follower.skipped == skipped
            assert follower.read().lines == expected
    with Follower(path, last_bytes=16) as follower:
        follower.read()
        with path.open("ab") as file:
            file.write(b" no more\n")
        assert follower.read().lines == ("unfinished no more",)
    with Follower(tmp_path / "none.log", last_bytes=16) as follower:
        assert follower.read() == NewLines()


def test_the_end_of_a_line_that_is_too_long_is_given(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"x" * 100)
    with Follower(path, last_bytes=10) as follower:
        path.write_bytes(b"x" * 100 + b"\n")
        assert follower.read().lines == ("x" * 11,)
