"""JSON in and out of bytes, with everything that orjson alone refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.io.json_codec import dumps, dumps_ascii, dumps_indented, loads

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
WRITERS = [dumps, dumps_ascii, dumps_indented]


def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


@given(VALUES)
def test_every_writer_is_undone_by_reading(value: Any) -> None:
    assert all(loads(writer(value)) == value for writer in WRITERS)


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_reading_anything_gives_a_value_or_the_documented_error(data: bytes | str) -> None:
    try:
        loads(data)
    except json.JSONDecodeError as error:
        assert error.lineno >= 1 and error.colno >= 1


def test_the_three_forms() -> None:
    value = {"a": [1, "é"]}
    assert dumps(value) == '{"a":[1,"é"]}'.encode()
    assert dumps_ascii(value) == b'{"a": [1, "\\u00e9"]}'
    assert dumps_indented(value) == '{\n  "a": [\n    1,\n    "é"\n  ]\n}'.encode()


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (2**64, b"18446744073709551616"),
        ({1: 2**64, "x": float("nan")}, b'{"1":18446744073709551616,"x":null}'),
        ([float("inf"), -float("inf")], b"[null,null]"),
        ({"a": "\ud800"}, '{"a":"\ufffd"}'.encode()),
        ((1, (2**70,)), b"[1,[1180591620717411303424]]"),
    ],
)
def test_writing_what_orjson_refuses(value: Any, written: bytes) -> None:
    assert dumps(value) == written
    assert json.loads(dumps_indented(value)) == json.loads(written)


def test_writing_what_is_no_json_at_all_stays_a_type_error() -> None:
    for writer in WRITERS:
        with pytest.raises(TypeError):
            writer({"a": object()})


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\xef\xbb\xbf[1]", [1]),
        ("\ufeff[1]", [1]),
        (b'{"a":"\\ud800"}', {"a": "\ufffd"}),
        (b'{"\\udc00":["\\ud800x"]}', {"\ufffd": ["\ufffdx"]}),
        (b'["\\ud83d\\ude00"]', ["😀"]),
        (b"18446744073709551616", 18446744073709551616.0),
    ],
)
def test_reading_what_orjson_refuses(data: bytes | str, value: Any) -> None:
    assert loads(data) == value


@pytest.mark.parametrize("data", ["", "NaN", '{"a": Infinity}', "[1,]", "{'a': 1}", '{"a": 1} x', "1" * 5000])
@pytest.mark.parametrize("as_bytes", [True, False])
def test_what_is_not_json_has_a_place(data: str, as_bytes: bool) -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        loads(data.encode() if as_bytes else data)
    assert caught.value.lineno == 1


@pytest.mark.parametrize("opening,closing", [("[", "]"), ('{"a":', "}"), ('[{"a":\n', "}]"), ('["\\ud800",', "]")])
@pytest.mark.parametrize("as_bytes", [True, False])
@pytest.mark.parametrize("depth", [200_000])
def test_reading_what_is_nested_too_deeply(opening: str, closing: str, as_bytes: bool, depth: int) -> None:
    for text in (opening * depth + "1" + closing * depth, opening * depth):
        with pytest.raises(json.JSONDecodeError, match="nested too deeply") as caught:
            loads(text.encode() if as_bytes else text)
        assert caught.value.lineno >= 1 and 0 <= caught.value.pos <= len(text)


def test_reading_names_the_place_of_too_deep_nesting() -> None:
    # orjson allows 1024 levels: the 1025th bracket is at position 1024, what follows it at 1025.
    with pytest.raises(json.JSONDecodeError) as caught:
        loads("[" * 200_000 + "]" * 200_000)
    assert caught.value.pos == 1025


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"a": v}, lambda v: {1: v}])
@pytest.mark.parametrize("depth", [200_000])
@pytest.mark.parametrize("writer", WRITERS)
def test_writing_what_is_nested_too_deeply(writer: Callable[[Any], bytes], wrap: Callable[[Any], Any], depth: int) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        writer(nested(depth, wrap))


def test_nesting_beyond_orjsons_own_limit_for_writing_is_fine() -> None:
    # orjson writes 254 levels.
    value = nested(300, lambda inner: {"a": inner})
    assert dumps(value) == b'{"a":' * 300 + b"1" + b"}" * 300
    assert loads(dumps_indented(value)) == value


@pytest.mark.parametrize("writer", WRITERS)
def test_a_value_that_contains_itself_is_a_value_error(writer: Callable[[Any], bytes]) -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ValueError):
        writer(value)


def test_text_that_is_not_utf8_is_refused_with_its_place() -> None:
    with pytest.raises(json.JSONDecodeError, match="not UTF-8 text") as error:
        loads(b'{"city": "Besan\xe7on"}')
    assert error.value.colno == 16
