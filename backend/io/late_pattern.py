"""Regular expressions that are compiled when they are first used: what only lists components imports many and uses few."""

from __future__ import annotations

import re
from typing import Any, cast


class _LatePattern:
    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, found)
        return found


def late(source: str, flags: int = 0) -> re.Pattern[str]:
    """The pattern that `re.compile` would give, with all its methods; a mistake in it raises `re.error` at the first use."""
    return cast("re.Pattern[str]", _LatePattern(source, flags))
