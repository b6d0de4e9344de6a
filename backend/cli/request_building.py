"""From parsed flags to a configuration request."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from backend.cli.commands import Command, Flag, Kind
from backend.cli.parser import Parsed
from backend.config.request import ConfigRequest, FlagValue
from backend.errors import UsageError
from backend.io.roots import search_roots

SELECTOR_ORDER = ("benchmark", "environment", "resources_server", "model_type", "agent_type")
"""Later ones win, whatever the order typed; `--config` comes before all of them."""

_ADDED_PATHS = "+config_paths=["
_DELETED_PATHS = "~config_paths"

Warn = Callable[[str], None]


def config_request(parsed: Parsed, warn: Warn) -> ConfigRequest:
    """The request that flags, selectors and overrides make; tells `warn` about shadowed names.

    Raises `UsageError` for a name that no root has, a value that is no number, and a `--config` without a path.
    """
    search_dirs = tuple(str(Path(folder).absolute()) for folder in parsed.given("search_dir", ()))
    paths, words = _settled(tuple(_config_paths(parsed, search_dirs, warn)), parsed.overrides)
    return ConfigRequest(
        config_paths=paths,
        flag_values=tuple(_flag_values(parsed)),
        overrides=words,
        search_dirs=search_dirs,
    )


def roots_of(parsed: Parsed, warn: Warn) -> tuple[Path, ...]:
    """The search roots, for commands that resolve no configuration; tells `warn` about each `--search-dir` that is not there."""
    folders = parsed.given("search_dir", ())
    for folder in folders:
        if not os.path.isdir(folder):
            warn(f"search folder '{folder}' does not exist")
    return search_roots(folders)


def export_search_dirs(request: ConfigRequest) -> None:
    """Hand `--search-dir` on to child processes."""
    if request.search_dirs:
        inherited = os.environ.get("NEMO_GYM_EXTRA_ROOTS")
        os.environ["NEMO_GYM_EXTRA_ROOTS"] = os.pathsep.join([*request.search_dirs, *([inherited] if inherited else [])])


def _config_paths(parsed: Parsed, search_dirs: tuple[str, ...], warn: Warn) -> Iterator[str]:
    for value in parsed.given("config", ()):
        # One flag may name several files; a file that really has a comma in its name is taken as it is.
        pieces = [value] if os.path.exists(value) else [piece for piece in value.split(",") if piece.strip()]
        if not pieces:
            raise UsageError(f"argument --config: there is no path in {value!r}")
        yield from pieces
    roots = search_roots(search_dirs)
    for destination in SELECTOR_ORDER:
        given = parsed.given(destination, ())
        for name in [given] if isinstance(given, str) else given:
            from backend.catalog.selectors import select

            selection = select(destination.replace("_", "-"), name, roots)
            for warning in selection.warnings:
                warn(warning)
            yield str(selection.path)


def _settled(paths: tuple[str, ...], words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths of flags, unless `~config_paths` takes them away as it does those of earlier words; and the words that are left."""
    if not paths or _DELETED_PATHS not in words:
        return paths, words
    position = words.index(_DELETED_PATHS)
    added = any(word.startswith(_ADDED_PATHS) for word in words[:position])
    return (), words if added else (*words[:position], *words[position + 1 :])


def _flag_values(parsed: Parsed) -> Iterator[FlagValue]:
    for flag in _keyed_flags(parsed.command):
        if flag.destination in parsed.values:
            yield FlagValue(flag.key, _typed(flag, parsed.values[flag.destination]), flag.names[0])
    if parsed.verbose:
        yield FlagValue("verbose", True, "--verbose")


def _keyed_flags(command: Command) -> list[Flag]:
    return [flag for flag in command.flags if flag.key]


def _typed(flag: Flag, value: Any) -> Any:
    if flag.kind is Kind.INTEGER:
        return _number(flag, value, int, "a whole number")
    if flag.kind is Kind.NUMBER:
        return _number(flag, value, float, "a number")
    if flag.kind is Kind.YAML:
        try:
            return int(value)
        except ValueError:
            return _mapping(flag, value)
    return value


def _number(flag: Flag, value: str, convert: Callable[[str], Any], what: str) -> Any:
    if value.lower() in ("null", "none"):
        return None
    try:
        number = convert(value)
        if not math.isfinite(number):
            raise ValueError
        return number
    except ValueError:
        raise UsageError(f"invalid configuration: {flag.key} ({flag.names[0]} needs {what}, not `{value}`)") from None


def _mapping(flag: Flag, value: str) -> Any:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException, OverrideParseException

    try:
        parsed = OverridesParser.create().parse_override(f"{flag.key}={value}").value()
    except (OverrideParseException, HydraException, ValueError):
        parsed = value
    if parsed is None or (isinstance(parsed, dict) and parsed):
        return {str(key): item for key, item in parsed.items()} if parsed else None
    raise UsageError(
        f"invalid configuration: {flag.key} ({flag.names[0]} needs a whole number or a mapping, not `{value}`)",
        hint=f"for example {flag.names[0]} 4, or {flag.names[0]} '{{my_agent: 4, _default: 1}}'",
    )
