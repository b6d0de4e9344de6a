"""The list itself in the left pane of the viewer, with squares that can be clicked."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.strip import Strip

from screens.viewer.listing import STRIP_COLUMN, TaskListing
from screens.viewer.repeat_strip import repeat_at
from screens.widgets.virtual_list import VirtualList


class TaskList(VirtualList):
    """The list; a click on a square of a task's strip goes to that repeat."""

    class RepeatClicked(Message):
        """A square was clicked."""

        def __init__(self, row: int) -> None:
            super().__init__()
            self.row = row

    def on_click(self, event: events.Click) -> None:
        row = self._row_under(event)
        if row is not None:
            event.prevent_default()
            self.post_message(self.RepeatClicked(row))

    def _row_under(self, event: events.Click) -> int | None:
        offset = event.get_content_offset(self)
        if offset is None or not isinstance(self.rows, TaskListing):
            return None
        index = offset.y - self._header + self.scroll_offset.y
        if not 0 <= index < len(self.rows) or (self._header and offset.y == 0):
            return None
        strip = next((entry for entry in self._placed if entry.column.name == STRIP_COLUMN), None)
        if strip is None:
            return None
        entry = self.rows.entry(index)
        repeat = repeat_at(offset.x - strip.left, len(entry.rows), self.rows.current_repeat(entry), strip.width)
        return None if repeat is None else entry.rows[repeat]

    def render_line(self, y: int) -> Strip:
        if isinstance(self.rows, TaskListing):
            self.rows.strip_width = next((entry.width for entry in self._placed if entry.column.name == STRIP_COLUMN), 0)
        return super().render_line(y)
