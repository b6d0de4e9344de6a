"""Following an event file: what is new, what is torn, and what was replaced."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import GymError
from backend.io.event_stream import EventStream


def lines(*numbers: int) -> bytes:
    return b"".join(b'{"n":%d}\n' % number for number in numbers)


def numbers(stream: EventStream, limit: int = 1000) -> list[int]:
    return [event["n"] for event in stream.read(limit)]


def append(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.ndjson"


def test_a_file_that_is_not_there_yet_is_empty(path: Path) -> None:
    with EventStream(path) as stream:
        assert (stream.read(), stream.at_end, stream.generation) == ([], True, 0)
        path.write_bytes(lines(1))
        assert numbers(stream) == [1]
        assert stream.generation == 0


def test_each_call_gives_what_is_new(path: Path) -> None:
    path.write_bytes(lines(1, 2))
    with EventStream(path) as stream:
        assert numbers(stream) == [1, 2]
        assert numbers(stream) == []
        append(path, lines(3))
        assert numbers(stream) == [3]
        assert stream.position == path.stat().st_size


def test_a_torn_tail_waits_until_it_is_whole(path: Path) -> None:
    path.write_bytes(lines(1) + b'{"n":')
    with EventStream(path) as stream:
        assert numbers(stream) == [1]
        append(path, b"2}")
        assert numbers(stream) == []
        append(path, b"\n")
        assert (numbers(stream), stream.skipped) == ([2], 0)


def test_broken_lines_are_counted_and_passed_over(path: Path) -> None:
    path.write_bytes(b'{"n":1}\n{"n"\n\n[1]\n"x"\n\xff\n{"n":2}\n')
    with EventStream(path) as stream:
        assert numbers(stream) == [1, 2]
        assert stream.skipped == 4


def test_a_limit_leaves_the_rest_for_later(path: Path) -> None:
    path.write_bytes(lines(*range(10)))
    with EventStream(path) as stream:
        assert (numbers(stream, 4), stream.at_end) == ([0, 1, 2, 3], False)
        assert (numbers(stream, 100), stream.at_end) == ([4, 5, 6, 7, 8, 9], True)


def test_a_replaced_file_starts_over(path: Path) -> None:
    path.write_bytes(lines(1, 2))
    with EventStream(path) as stream:
        stream.read(1)
        path.unlink()
        assert numbers(stream) == [2]  # the rest of the old file, while there is no new one
        path.write_bytes(lines(7, 8, 9))
        assert (numbers(stream), stream.generation) == ([7, 8, 9], 1)


def test_what_is_left_of_a_replaced_file_is_dropped(path: Path, tmp_path: Path) -> None:
    path.write_bytes(lines(1, 2) + b'{"n"')
    with EventStream(path) as stream:
        stream.read(1)
        new = tmp_path / "new"
        new.write_bytes(lines(5))
        os.replace(new, path)
        assert (numbers(stream), stream.generation) == ([5], 1)


def test_a_file_cut_short_starts_over(path: Path) -> None:
    path.write_bytes(lines(1, 2, 3))
    with EventStream(path) as stream:
        stream.read()
        path.write_bytes(b"")
        assert (numbers(stream), stream.generation) == ([], 1)
        append(path, lines(4))
        assert (numbers(stream), stream.generation) == ([4], 1)


def test_a_file_that_was_cut_short_and_has_grown_beyond_it_starts_over(path: Path) -> None:
    path.write_bytes(lines(1, 2))
    with EventStream(path) as stream:
        stream.read()
        path.write_bytes(lines(5, 6, 7, 8))  # the same inode, and longer than what was read
        assert (numbers(stream), stream.generation) == ([5, 6, 7, 8], 1)


def test_lines_longer_than_a_chunk_are_read(path: Path) -> None:
    long = json.dumps({"n": 1, "text": "x" * 3_000_000}).encode()
    path.write_bytes(long + b"\n" + lines(2))
    with EventStream(path) as stream:
        assert numbers(stream) == [1, 2]


def test_a_line_without_end_is_given_up_and_what_follows_is_read(path: Path) -> None:
    path.write_bytes(lines(1) + b"x" * (35 << 20) + b"\n" + lines(2))
    with EventStream(path) as stream:
        found = []
        while not stream.at_end:
            found += numbers(stream)
        assert (found, stream.skipped) == ([1, 2], 1)


def test_a_folder_in_place_of_the_file_is_an_error(path: Path) -> None:
    path.mkdir()
    with EventStream(path) as stream, pytest.raises(GymError, match="cannot read"):
        stream.read()


def test_reading_begins_anew_after_close(path: Path) -> None:
    path.write_bytes(lines(1))
    stream = EventStream(path)
    assert numbers(stream) == [1]
    stream.close()
    assert numbers(stream) == [1]
    stream.close()


@settings(max_examples=50)
@given(st.lists(st.integers(0, 10**6), max_size=30), st.lists(st.integers(1, 40), max_size=30), st.integers(1, 7))
def test_however_the_writer_cuts_its_writes_every_event_comes_once(
    tmp_path_factory: pytest.TempPathFactory, values: list[int], cuts: list[int], limit: int
) -> None:
    path = tmp_path_factory.mktemp("stream") / "events"
    data = lines(*values)
    found = []
    with EventStream(path) as stream:
        for cut in [*cuts, len(data)]:
            append(path, data[:cut])
            data = data[cut:]
            found += numbers(stream, limit)
        while batch := numbers(stream, limit):
            found += batch
    assert found == values
