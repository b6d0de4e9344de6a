"""What commands share; importable as `nemo_gym.cli.utils`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import ParamSpec, TypeVar

from backend.catalog.fuzzy import fuzzy_match
from backend.cli.console import print_error, say
from backend.cli.tables import table
from backend.config.errors import ConfigError
from backend.errors import did_you_mean

__all__ = ["did_you_mean", "exit_cleanly_on_config_error", "fuzzy_matches", "print_rich_table"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def fuzzy_matches(wanted: str, candidates: Iterable[str]) -> list[str]:
    """The candidates in which the letters of `wanted` occur in their order, best match first."""
    scored = [(match.score, candidate) for candidate in candidates if (match := fuzzy_match(wanted, candidate)) is not None]
    return [candidate for _, candidate in sorted(scored, key=lambda pair: (-pair[0], pair[1]))]


def print_rich_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows below their headers, as wide as the terminal."""
    say(table(headers, rows))


def exit_cleanly_on_config_error(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Turn a `ConfigError` that leaves `function` into its message and SystemExit, without a traceback."""

    @functools.wraps(function)
    def guarded(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except ConfigError as error:
            print_error(error)
            raise SystemExit(int(error.exit_code)) from None

    return guarded
