"""Reading and writing JSON lines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.errors import GymError
from backend.io.jsonl import JsonlError, JsonlWriter, heal, read_jsonl

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
rows = st.lists(st.dictionaries(st.text(), json_values, max_size=5), max_size=8)


def values(path: Path, **options: Any) -> list[dict[str, Any]]:
    return [line.value for line in read_jsonl(path, **options)]


@given(rows)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_what_is_written_is_read(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    path = tmp_path / "rows.jsonl"
    path.unlink(missing_ok=True)
    with JsonlWriter(path) as writer:
        sizes = [writer.write(row) for row in rows]
    assert values(path) == json.loads(json.dumps(rows))
    assert sum(sizes) == path.stat().st_size
    assert [line.offset for line in read_jsonl(path)] == [sum(sizes[:i]) for i in range(len(sizes))]


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes('{"a":"\u2028\u0085\u000c"}\r\n\n  \n{"a":2}'.replace("\u000c", "\\f").encode())
    lines = list(read_jsonl(path))
    assert [line.value["a"] for line in lines] == ["\u2028\u0085\u000c", 2]
    assert [line.number for line in lines] == [1, 4]


def test_a_lone_carriage_return_is_extra_data_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a":1}\r{"a":2}\n')
    with pytest.raises(JsonlError) as caught:
        values(path)
    assert caught.value.place is not None
    assert (caught.value.place.line, caught.value.place.column) == (1, 9)


def test_a_byte_order_mark_leaves_the_first_key_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a":1}\r\n{"b":2}\r\n')
    assert values(path) == [{"a": 1}, {"b": 2}]


def test_lone_surrogates_are_replaced_and_can_be_written_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a":"x\\udcb2y"}\n')
    (row,) = values(path)
    assert row == {"a": "x\ufffdy"}
    with JsonlWriter(tmp_path / "copy.jsonl") as writer:
        writer.write({"a": "x\udcb2y"})
    assert values(tmp_path / "copy.jsonl") == [row]


def test_numbers_that_are_not_finite_become_null(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with JsonlWriter(path) as writer:
        writer.write({"reward": float("nan"), "big": 1 << 70, "inf": float("inf")})
    assert path.read_bytes() == b'{"reward":null,"big":1180591620717411303424,"inf":null}\n'


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ('{"a":1}\n{"a":}\n', "not valid JSON", 2, 6),
        ('{"a":1}\n\n[1]\n', "expected a JSON object, found an array", 3, 1),
        ('{"a": NaN}\n', "not valid JSON", 1, None),
        ("null\n", "expected a JSON object, found null", 1, 1),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str, message: str, line: int, column: int | None) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(JsonlError, match=message) as caught:
        values(path)
    place = caught.value.place
    assert place is not None
    assert (place.file, place.line) == (str(path), line)
    assert column is None or place.column == column


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(GymError, match=r"cannot read .*nothing.jsonl: No such file"):
        values(tmp_path / "nothing.jsonl")


def test_a_torn_tail_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":2,"text":"cut of')
    assert values(path, allow_torn_tail=True) == [{"a": 1}]
    with JsonlWriter(path) as writer:
        assert writer.healed
        writer.write({"a": 3})
    assert values(path) == [{"a": 1}, {"a": 3}]
    assert (tmp_path / "rows.jsonl.torn").read_bytes() == b'{"a":2,"text":"cut of\n'


def test_a_complete_last_row_only_gets_its_line_end(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":2}')
    assert heal(path) is False
    assert path.read_bytes() == b'{"a":1}\n{"a":2}\n'


@given(st.integers(min_value=0, max_value=60))
@settings(max_examples=61, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_file_cut_anywhere_keeps_every_whole_row(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "rows.jsonl"
    whole = b"".join(b'{"n":%d,"t":"abcdef"}\n' % n for n in range(3))
    path.write_bytes(whole[:keep])
    with JsonlWriter(path) as writer:
        writer.write({"n": 9})
    numbers = [row["n"] for row in values(path)]
    complete = whole[:keep].count(b"\n") + (1 if whole[keep : keep + 1] == b"\n" else 0)
    assert numbers == [*range(complete), 9]


WRITE_FOREVER = """
import sys
from backend.io.jsonl import JsonlWriter
with JsonlWriter(sys.argv[1]) as writer:
    n = 0
    while True:
        writer.write({"n": n, "text": "x" * 5000})
        n += 1
"""


def test_a_killed_writer_tears_at_most_the_last_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", WRITE_FOREVER, str(path)], cwd=Path(__file__).parents[3])
        before = path.stat().st_size if path.exists() else 0
        deadline = time.monotonic() + 20
        while not (path.exists() and path.stat().st_size > before) and time.monotonic() < deadline:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    heal(path)
    assert all(len(row["text"]) == 5000 for row in values(path))


def test_rows_can_be_waited_for(tmp_path: Path) -> None:
    with JsonlWriter(tmp_path / "rows.jsonl") as writer:
        writer.write({"a": 1})
        writer.sync()
        writer.write({"a": 2})
        writer.sync()
    assert values(tmp_path / "rows.jsonl") == [{"a": 1}, {"a": 2}]
