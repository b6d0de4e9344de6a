"""`gym env diff A B`: what differs between two configurations, and who set it on either side."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from backend.cli.console import print_json, say, warn
from backend.cli.env_resolve import resolve_request
from backend.cli.parser import Parsed, ParserError, VersionAsked, parse
from backend.cli.render_config import held_text, jsonable, origin_json, origin_text, passed_on, value_text
from backend.config.diff_view import Diff, Difference, Held, Side, compare, side_of, side_of_record
from backend.config.request import ConfigRequest
from backend.config.resolve_view import resolve_view
from backend.errors import ExitCode, GymError, UsageError, closest
from backend.io.redact import Redactor, mask_command
from backend.io.result_paths import ResultPaths

_YAML = (".yaml", ".yml")
_SIDES = "name a run's folder, its run.json or rollouts file, or a configuration file"
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def run(parsed: Parsed) -> int:
    """Print the differences; 0 whether or not there are any, 1 where a side cannot be resolved."""
    search_dirs = parsed.given("search_dir", ())
    left, right = (read_side(parsed.values[name.lower()], name, search_dirs) for name in ("A", "B"))
    diff = compare(left, right)
    if parsed.json:
        print_json(_as_json(diff))
    else:
        _show(diff)
    return ExitCode.OK


def read_side(text: str, name: str, search_dirs: Sequence[str] = (), tell: Callable[[str], None] = warn) -> Side:
    """The side that `text` stands for: a configuration file, a run, or arguments of `gym env resolve`.

    Remarks go to `tell`, which call the side `name`. Raises `GymError` for what is none of these, and for files with holes.
    """
    path = Path(text)
    if text and os.path.exists(path):
        record = _run_record(path)
        if record is not None:
            return side_of_record(record, text)
        words, title = ["--config", text], text
    else:
        words = _words(text)
        title = shlex.join(mask_command(words, Redactor()))
    search = [word for folder in search_dirs for word in ("--search-dir", folder)]
    view = resolve_view(_request([*search, *words], name, tell))
    if view.error is not None:
        if view.damaged:
            raise view.error
        tell(f"{name} is not complete, it is compared as far as it goes: {view.error.message}")
    return side_of(view, view.masker.redactor.text(title))


def _run_record(path: Path) -> Path | None:
    """The run.json that a path stands for; None for a configuration file."""
    if os.path.isdir(path):
        if os.path.isfile(path / "run.json"):
            return path / "run.json"
        raise GymError(f"the folder {path} is not a run's: it has no run.json", hint=_SIDES)
    if path.suffix in _YAML:
        return None
    if path.suffix == ".jsonl":
        record = ResultPaths(path).run_record
        if os.path.isfile(record):
            return record
        raise GymError(f"{path} has no record of a run beside it: there is no {record}", hint=_SIDES)
    return path if path.suffix == ".json" else None


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"cannot split the arguments into words: {error}", hint="close the quotes") from None
    if len(words) == 1 and "=" not in text and not words[0].startswith(("-", "+", "~")):
        folder = Path(text).parent
        names = os.listdir(folder) if os.access(folder, os.R_OK) and os.path.isdir(folder) else []
        near = closest(Path(text).name, names)
        raise GymError(
            f"there is no file or folder {text}",
            hint=f"Did you mean `{folder / near}`?" if near else "name one that exists, or quote arguments: '--benchmark NAME'",
        )
    return words


def _request(words: list[str], name: str, tell: Callable[[str], None]) -> ConfigRequest:
    try:
        parsed = parse(["env", "resolve", *words])
    except ParserError as error:
        raise UsageError(
            f"{name} is neither a path nor arguments of `gym env resolve`: {error.message}", hint=error.hint
        ) from None
    assert not isinstance(parsed, VersionAsked)
    return replace(resolve_request(parsed, tell), handed_down=False)  # two sides, of which the environment knows one at most


def _show(diff: Diff) -> None:
    say(f"A  {diff.left or '(no arguments)'}")
    say(f"B  {diff.right or '(no arguments)'}")
    say()
    for difference in diff.differences:
        say("\n".join(_lines(difference)))
    counts = [f"{len(diff.of_kind(kind))} {kind}" for kind in _SIGNS]
    say(f"{', '.join(counts)}, {diff.equal} equal")
    if diff.incomparable:
        say(f"not comparable, because a run record masks them: {', '.join(diff.incomparable)}")


def _lines(difference: Difference) -> list[str]:
    left, right = difference.left, difference.right
    line = f"{_SIGNS[difference.kind]} {difference.key}: "
    if difference.secret:
        line += f"{difference.kind}, secret"
    elif left is not None and right is not None:
        line += f"{_held(left)} -> {_held(right)}" + (f"  ({difference.effect})" if difference.effect else "")
    else:
        line += _held(left or right)
    return [line, *(f"    {name}  {_setter(held)}" for name, held in (("A", left), ("B", right)) if held is not None)]


def _setter(held: Held) -> str:
    return ", ".join([origin_text(held.origin), *map(passed_on, held.passed_on)])


def _held(held: Held | None) -> str:
    if held is None:
        return ""
    return value_text(held.value) if isinstance(held.value, list) else held_text(held.shape, held.value)


def _as_json(diff: Diff) -> dict[str, Any]:
    return {
        "a": diff.left,
        "b": diff.right,
        "same": not diff.differences,
        **{kind: [_difference_json(item) for item in diff.of_kind(kind)] for kind in _SIGNS},
        "incomparable": list(diff.incomparable),
        "equal": diff.equal,
    }


def _difference_json(difference: Difference) -> dict[str, Any]:
    return {
        "key": difference.key,
        "a": _held_json(difference.left, secret=difference.secret),
        "b": _held_json(difference.right, secret=difference.secret),
        "secret": difference.secret,
        "effect": difference.effect or None,
    }


def _held_json(held: Held | None, *, secret: bool) -> dict[str, Any] | None:
    if held is None:
        return None
    plain = held.shape == "value" or isinstance(held.value, list)
    return {
        "shape": held.shape,
        "value": jsonable(held.value) if plain and not secret else None,
        "size": None if held.shape == "value" else len(held.value) if isinstance(held.value, list) else held.value,
        "origin": origin_json(held.origin),
        "passed_on": [origin_json(origin) for origin in held.passed_on],
    }
