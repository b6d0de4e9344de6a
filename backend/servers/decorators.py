"""Marks for authors' code; importable as `nemo_gym.decorators`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["experimental"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def experimental(fn: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Warn, at each place that calls it, that `fn` may still change."""

    @functools.wraps(fn)
    def warning(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        warnings.warn(f"{fn.__qualname__} is experimental and may change", UserWarning, stacklevel=2)
        return fn(*args, **kwargs)

    return warning
