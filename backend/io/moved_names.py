"""Names that existing code still asks for where they used to be."""

from __future__ import annotations

import importlib
import warnings
from typing import Any


def moved(old: str, name: str, new: str, module: str, new_name: str | None = None) -> Any:
    """What `name` of the module `old` is now: `new_name` (by default the same) of `new`, found in our `module`. Warns about it."""
    warnings.warn(f"{old}.{name} has moved to {new}.{new_name or name}", DeprecationWarning, stacklevel=3)
    return getattr(importlib.import_module(module), new_name or name)
