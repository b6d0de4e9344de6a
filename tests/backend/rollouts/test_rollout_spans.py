"""Values out of objects that are not parsed whole, against a parser that does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.rollouts import rollout_spans
from backend.rollouts.rollout_spans import SpanScan

WANTED = (("reward",), ('a"b',), ("response", "usage"), ("response", "status"))
KEYS = ["reward", 'a"b', "response", "usage", "status", "other", "\\", '"reward":', "k" * 40]

texts = st.sampled_from(["", "\\", '"', '\\"{[', '"reward":1', "}]" * 20, "é漢", "x" * 90, 'ends in \\\\"'])
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=25,
)


def scanned(data: bytes, wanted: tuple[tuple[str, ...], ...] = WANTED) -> SpanScan:
    scan = SpanScan(lambda offset, size: data[offset : offset + size], len(data), wanted)
    while not scan.advance(0):
        pass
    return scan


def picked(value: dict[str, Any]) -> dict[str, Any]:
    """What the scan ought to find, from the whole value."""
    found: dict[str, Any] = {}
    for path in WANTED:
        inner = value if len(path) == 1 else value.get(path[0])
        if isinstance(inner, dict) and path[-1] in inner:
            (found if len(path) == 1 else found.setdefault(path[0], {}))[path[-1]] = inner[path[-1]]
    return found


@given(
    st.dictionaries(st.sampled_from(KEYS), values, max_size=7), st.sampled_from([None, 1]), st.booleans(), st.integers(60, 400)
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_values_are_those_of_a_parser(
    monkeypatch: pytest.MonkeyPatch, value: dict[str, Any], indent: int | None, ascii_only: bool, piece: int
) -> None:
    monkeypatch.setattr(rollout_spans, "_PIECE_BYTES", piece)
    monkeypatch.setattr(rollout_spans, "_LOOK_AHEAD", 50)
    scan = scanned(json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode())
    assert scan.balanced
    assert scan.record() == picked(value)


def test_of_keys_that_occur_twice_the_last_counts() -> None:
    scan = scanned(b'{"response":{"usage":{"a":1},"status":"x"},"reward":1,"reward":0,"response":{"status":"y"}}')
    assert scan.record() == {"reward": 0, "response": {"status": "y"}}


def test_keys_written_with_escapes_are_found() -> None:
    assert scanned(b'{"\\u0072eward" : 2}').record() == {"reward": 2}


@pytest.mark.parametrize(
    "data", [b'{"reward":1', b'{"reward":"x', b'{"reward":"x\\', b"{}}", b'{"x":[1,2}', b'{"a":{"b":{"c":"' + b"y" * 1000]
)
def test_what_is_cut_off_is_not_balanced(data: bytes) -> None:
    assert not scanned(data).balanced


def test_a_value_beyond_its_limit_is_left_out() -> None:
    scan = scanned(json.dumps({"reward": "x" * 20_000, 'a"b': 1}).encode())
    assert (scan.value("reward"), scan.value('a"b'), scan.value("response", "usage")) == (None, 1, None)


def test_a_file_that_shrinks_meanwhile_ends_the_scan() -> None:
    data = b'{"other":"' + b"x" * 1000
    scan = SpanScan(lambda offset, size: data[offset : offset + size], 1_000_000, WANTED)
    while not scan.advance(0):
        pass
    assert not scan.balanced
