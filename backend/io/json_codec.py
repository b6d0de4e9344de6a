"""JSON in and out of bytes: orjson where it can, the standard library for what it refuses.

orjson refuses integers beyond 64 bits, keys that are not strings, and lone surrogates; none of these may cost a user a rollout.
Numbers that are not finite become null on the way out. What is nested more deeply than the standard library follows is a
ValueError in both directions, never a RecursionError.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

_SURROGATES = re.compile("[\ud800-\udfff]")
_TOO_DEEP = "nested too deeply"


def dumps(value: Any) -> bytes:
    """`value` as compact UTF-8 JSON without a line end; lone surrogates come out as the replacement character."""
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        return _dumps_leniently(value, separators=(",", ":"))


def dumps_ascii(value: Any) -> bytes:
    """`value` as JSON in the form of the standard library's defaults: ASCII escapes, `", "` and `": "`."""
    try:
        return json.dumps(value).encode("ascii")
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def dumps_indented(value: Any) -> bytes:
    """`value` as UTF-8 JSON with two spaces of indentation and no final newline."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2)
    except (TypeError, orjson.JSONEncodeError):
        return _dumps_leniently(value, indent=2)


def loads(data: bytes | str) -> Any:
    """The value of one JSON document; raises `json.JSONDecodeError` (a ValueError with `lineno` and `colno`).

    Accepts what orjson refuses but other writers produce: a byte order mark, and lone surrogate escapes (which become the replacement
    character). Text that is not UTF-8 is an error, so that nobody evaluates mangled words. Integers beyond 64 bits come as floats. `NaN` and `Infinity` are not JSON and stay errors.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as refusal:
        text = data if isinstance(data, str) else _decoded(data)
        try:
            value = json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse_constant)
            return _without_surrogates(value) if "\\u" in text else value
        except json.JSONDecodeError:
            raise
        except RecursionError:
            raise json.JSONDecodeError(_TOO_DEEP, text, refusal.pos) from None
        except ValueError:  # Python's limit on the digits of an integer
            raise json.JSONDecodeError("an integer with too many digits", text, refusal.pos) from None


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise json.JSONDecodeError("not UTF-8 text", data.decode("utf-8", "replace"), error.start) from None


def _dumps_leniently(value: Any, **form: Any) -> bytes:
    try:
        text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, **form)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return _SURROGATES.sub("\ufffd", text).encode()


def _refuse_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    return value
