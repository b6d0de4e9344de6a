"""Offsets of rows in files that grow, shrink and are replaced."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.errors import GymError
from backend.io import line_index
from backend.io.line_index import LineIndex


def indexed(path: Path) -> LineIndex:
    index = LineIndex(path)
    while not index.extend(0):
        pass
    return index


def rows(index: LineIndex) -> list[bytes]:
    return [index.read(row) for row in range(len(index))]


@pytest.fixture(params=[7, 1 << 20], ids=["small chunks", "one chunk"])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(line_index, "CHUNK_BYTES", request.param)
    return int(request.param)


@pytest.mark.usefixtures("chunk")
def test_rows_are_the_lines_that_are_not_blank(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'\xef\xbb\xbf\n{"a": 1}\r\n \t\n\n  {"b": 2}\n{"c": 3}\n')
    index = indexed(path)
    assert rows(index) == [b'{"a": 1}', b'{"b": 2}', b'{"c": 3}']
    assert [index.line_number(row) for row in range(3)] == [2, 5, 6]
    assert [index.span(row)[0] for row in range(3)] == [4, 18, 29]
    assert sum(index.span(2)) == path.stat().st_size
    assert index.torn_bytes == 0
    assert index.row_at(37) == 2
    assert index.row_at(0) is None
    assert index.row_at(38) is None


@pytest.mark.usefixtures("chunk")
def test_a_last_line_without_its_end_counts_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b": [2, {}')
    index = indexed(path)
    assert (rows(index), index.torn_bytes) == ([b'{"a": 1}'], 12)
    with open(path, "ab") as file:
        file.write(b"]}")
    assert index.extend(1)
    assert (rows(index), index.torn_bytes) == ([b'{"a": 1}', b'{"b": [2, {}]}'], 0)
    with open(path, "ab") as file:
        file.write(b'\n{"c": 3}\n')
    assert index.extend(1)
    assert rows(index)[1:] == [b'{"b": [2, {}]}', b'{"c": 3}']
    assert index.line_number(2) == 3
    assert index.generation == 0


def test_a_number_may_still_grow(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"12")
    assert (len(indexed(path)), indexed(path).torn_bytes) == (0, 2)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(GymError, match=r"cannot read .*nowhere.jsonl: No such file"):
        LineIndex(tmp_path / "nowhere.jsonl")
    with pytest.raises(GymError, match="is not a file"):
        LineIndex(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(GymError, match="is not a file"):
        LineIndex(tmp_path / "pipe")


def test_growth_truncation_replacement_and_rewriting_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b": 2}\n')
    index = indexed(path)
    with open(path, "ab") as file:
        file.write(b'{"c": 3}\n')
    assert index.extend(1)
    assert (len(index), index.generation) == (3, 0)

    os.truncate(path, 9)
    assert index.extend(1)
    assert (rows(index), index.generation) == ([b'{"a": 1}'], 1)

    other = tmp_path / "other.jsonl"
    other.write_bytes(b'{"x": 1}\n{"y": 1}\n')
    other.replace(path)
    assert index.extend(1)
    assert (rows(index), index.generation) == ([b'{"x": 1}', b'{"y": 1}'], 2)

    path.write_bytes(b'{"z": 1}\n{"longer": "than before"}\n')  # the same file, emptied and written anew between two looks
    assert index.extend(1)
    assert (rows(index), index.generation) == ([b'{"z": 1}', b'{"longer": "than before"}'], 3)


def test_a_file_that_vanishes_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n')
    index = indexed(path)
    path.unlink()
    assert index.extend(1)
    assert rows(index) == [b'{"a": 1}']


def test_reads_are_bounded_and_rows_that_are_not_there_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b": 2}\n{"c": 3}\n')
    index = indexed(path)
    assert index.read(0, 4) == b'{"a"'
    assert index.block(1, 18) == (b'{"b": 2}\n{"c": 3}\n', [0, 9, 18])
    assert index.block(1, 1) == (b'{"b": 2}\n', [0, 9])
    assert index.read_range(20, 100) == b'c": 3}\n'
    for row in (-1, 3):
        with pytest.raises(IndexError):
            index.span(row)
        with pytest.raises(IndexError):
            index.read(row)


def test_other_threads_read_while_one_extends(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"".join(b'{"row": %d}\n' % number for number in range(200_000)))
    index = LineIndex(path)
    wrong: list[bytes] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            last = len(index) - 1
            if last >= 0 and index.read(last) != b'{"row": %d}' % last:
                wrong.append(index.read(last))

    reader = threading.Thread(target=read)
    reader.start()
    while not index.extend(0):
        pass
    done.set()
    reader.join()
    assert (wrong, len(index)) == ([], 200_000)


lines = st.lists(
    st.binary(max_size=12).map(lambda data: data.replace(b"\n", b"")) | st.sampled_from([b"", b"  ", b"\r", b'{"a": 1}']),
    max_size=12,
)


@given(lines, st.booleans(), st.integers(1, 9), st.lists(st.integers(0, 120), max_size=4))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_file_gives_the_lines_that_a_simple_reader_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[bytes], ends: bool, chunk: int, looks: list[int]
) -> None:
    monkeypatch.setattr(line_index, "CHUNK_BYTES", chunk)
    data = b"\n".join(lines) + (b"\n" if ends else b"")
    path = tmp_path / "rows.jsonl"
    data = data.removeprefix(b"\xef\xbb\xbf")
    path.write_bytes(b"")
    index = LineIndex(path)
    for size in [*sorted(min(look, len(data)) for look in looks), len(data)]:  # the file grows while it is looked at
        path.write_bytes(data[:size])
        while not index.extend(0):
            pass
    expected = [
        (number, line.strip(b" \t\r\n"))
        for number, line in enumerate(data.split(b"\n")[:-1] if b"\n" in data else [], 1)
        if line.strip(b" \t\r\n")
    ]
    found = [(index.line_number(row), index.read(row)) for row in range(len(index))]
    tail = data.rpartition(b"\n")[2].strip(b" \t\r\n")
    if index.torn_bytes == 0 and tail:
        expected.append((data.count(b"\n") + 1, tail))
    assert found == expected
