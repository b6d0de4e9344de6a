"""Configurations as text and JSON: values, where they come from, what they beat."""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.config.findings import Finding
from backend.config.nodes import PASSING_ON, Origin

if TYPE_CHECKING:
    from backend.config.resolve_view import Entry, Layer, Step

_MOST_CHARACTERS = 160
_BARE = re.compile(r"[A-Za-z_./~$*-][^\n\"'#]*")
_WORDS_WITH_A_MEANING = frozenset({"null", "true", "false", "yes", "no", "on", "off", "~"})


def short_path(file: str) -> str:
    """A path below the working directory without that directory, any other as it is."""
    try:
        here = os.getcwd()
    except OSError:
        return file
    return _below(file, here)


@functools.cache
def _below(file: str, here: str) -> str:
    """The same few files stand in thousands of lines."""
    return str(Path(file).relative_to(here)) if Path(file).is_relative_to(here) else file


def origin_text(origin: Origin | None) -> str:
    """Who set a value, in a few words: `env.yaml:4`, `--model`, `++limit=3`, `default`."""
    if origin is None:
        return "nobody"
    if origin.file:
        place = short_path(origin.file) + (f":{origin.line}" if origin.line else "")
        return f"{place} {origin.text}".strip()
    return origin.text.strip("()") or origin.kind


def value_text(value: Any) -> str:
    """A plain value on one line; texts that could be taken for something else are quoted."""
    if isinstance(value, str) and _BARE.fullmatch(value) and value.lower() not in _WORDS_WITH_A_MEANING:
        text = value
    else:
        text = json.dumps(jsonable(value), ensure_ascii=False)
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


def held_text(shape: str, value: Any) -> str:
    """What a key held: its value, or the kind and size of a mapping or list."""
    if shape == "value":
        return value_text(value)
    noun = "key" if shape == "mapping" else "element"
    return f"a {shape} of {value} {noun}{'' if value == 1 else 's'}" if value else {"mapping": "{}", "list": "[]"}[shape]


def entry_lines(entry: Entry) -> Iterator[str]:
    """One key with its value and origin, then what brought the value here and what it beat."""
    yield f"{entry.key}: {held_text(entry.shape, entry.value)}  <- {origin_text(entry.origin)}"
    winner = entry.winner
    if winner is not None and winner.effect:
        yield f"    {winner.effect}"
    for step in _after(winner, entry.chain):
        if step.origin.kind in PASSING_ON:
            yield f"    {passed_on(step.origin)}"
    for step in entry.beaten:
        yield f"    beats {held_text(step.shape, step.value)}  <- {origin_text(step.origin)}"


def _after(winner: Step | None, chain: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps by which the winning value came here; what brought a beaten one is of no interest."""
    position = next((index for index, step in enumerate(chain) if step is winner), -1)
    return chain[position + 1 :]


def passed_on(origin: Origin) -> str:
    """How a value came to a key that did not write it down."""
    where = f" ({short_path(origin.file)}{f':{origin.line}' if origin.line else ''})" if origin.file else ""
    if origin.kind == "interpolation":
        return f"from {origin.text}{where}"
    if origin.kind == "variable":
        return f"from the environment variable {origin.text}"
    return f"through {origin.text}{where}"


def layer_line(layer: Layer) -> str:
    """One layer of the list of layers."""
    title = short_path(layer.title)
    included = f"  (included by L{layer.included_by})" if layer.included_by else ""
    return f"L{layer.number}  {title}{included}{f'  cannot be read: {layer.error}' if layer.error else ''}"


def is_telling(entry: Entry) -> bool:
    """Whether an entry says something that its children do not say: plain values, empty containers, replaced ones."""
    return entry.shape == "value" or entry.value == 0 or any(step.effect for step in entry.chain)


def origin_json(origin: Origin | None) -> dict[str, Any] | None:
    """An origin for `--json`."""
    if origin is None:
        return None
    return {"kind": origin.kind, "text": origin.text, "file": origin.file, "line": origin.line, "column": origin.column}


def entry_json(entry: Entry) -> dict[str, Any]:
    """One key for `--json`; a mapping or list has its `size` instead of a `value`."""
    winner = entry.winner
    return {
        "key": entry.key,
        **_held_json(entry.shape, entry.value),
        "secret": entry.secret,
        "origin": origin_json(entry.origin),
        "chain": [
            {
                **(origin_json(step.origin) or {}),
                "layer": step.layer,
                **_held_json(step.shape, step.value),
                "effect": step.effect or None,
                "wins": step is winner,
            }
            for step in entry.chain
        ],
        "changes": [
            {"stage": change.stage, "kind": change.kind, "before": jsonable(change.before), "after": jsonable(change.after)}
            for change in entry.changes
        ],
    }


def layer_json(layer: Layer) -> dict[str, Any]:
    """One layer for `--json`."""
    return {
        "number": layer.number,
        "kind": layer.kind,
        "title": layer.title,
        "file": str(layer.file) if layer.file else None,
        "included_by": layer.included_by,
        "error": layer.error,
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding for `--json`."""
    place = finding.place
    return {
        "severity": finding.severity,
        "message": finding.message,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "key": place.key if place else None,
        "nearest": finding.nearest,
        "hint": finding.hint,
        "fix": finding.fix,
    }


def jsonable(value: Any) -> Any:
    """`value` in the types of JSON: what that has no words for (`.nan`, `.inf`, bytes) as text."""
    if isinstance(value, Mapping):
        return {_key(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _held_json(shape: str, value: Any) -> dict[str, Any]:
    return {"shape": shape, "value": jsonable(value)} if shape == "value" else {"shape": shape, "value": None, "size": value}


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(key).lower() if isinstance(key, bool) or key is None else str(key)
