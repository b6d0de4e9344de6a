"""Keys that come while an input is being opened: they belong to it, not to the screen that still has the focus.

`:list runs` typed quickly, or pasted, would otherwise sort, write or quit with the letters behind the colon.
"""

from __future__ import annotations

from typing import Any

from textual import events
from textual.app import App
from textual.timer import Timer
from textual.widgets import Input

_OPENS_AN_INPUT = ("command", "palette", "filter", "search", "find")
"""Verbs of the key table that open one; which screens have them does not matter here."""
_LOOK_SECONDS = 0.005
_MOST_LOOKS = 100


class TypedAhead:
    """Keeps keys from the one that opens an input until the input has the focus, or half a second has passed."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._kept: list[events.Key] | None = None
        self._timer: Timer | None = None
        self._looks = 0

    def keeps(self, event: events.Key) -> bool:
        """Whether a key is kept for later. Notices the keys that open an input."""
        if self._kept is not None:
            self._kept.append(event)
            return True
        if not isinstance(self._app.focused, Input) and self._opens_an_input(event.key):
            self._kept = []
            self._looks = 0
            self._timer = self._app.set_interval(_LOOK_SECONDS, self._look)
        return False

    def _opens_an_input(self, key: str) -> bool:
        bound = self._app.screen.active_bindings.get(key)
        return bound is not None and (bound.binding.id or "").rpartition(".")[2] in _OPENS_AN_INPUT

    async def _look(self) -> None:
        self._looks += 1
        if not isinstance(self._app.focused, Input) and self._looks < _MOST_LOOKS:
            return
        kept, self._kept = self._kept or [], None
        if self._timer is not None:
            self._timer.stop()
        for event in kept:
            self._app.post_message(event)
