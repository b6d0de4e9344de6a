"""The box that narrows a list or searches a text: one line, opened by `/`, closed by `esc`."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widgets import Input

from screens.widgets import glyphs
from screens.widgets.component_style import component_style
from screens.widgets.key_table import bindings


class FilterBox(Input):
    """Hidden while empty and without the focus. Tells every change at once: filtering is never delayed.

    A sign in its margin tells it from the lines that it stands below.
    """

    BINDINGS = [  # noqa: RUF012 - the type is Textual's
        *bindings("filter"),
        Binding("escape", "leave_filter", show=False),
        Binding("down", "to_list", show=False),
    ]
    DEFAULT_CSS = """
    FilterBox, FilterBox:focus { display: none; height: 1; border: none; padding: 0 1 0 2; background: transparent; }
    FilterBox.-open { display: block; }
    FilterBox > .filter-box--prompt { color: $text-accent; text-style: bold; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"filter-box--prompt"}

    class Filtered(Message):
        """The text is another one; `done` when it was confirmed."""

        def __init__(self, sender: FilterBox, text: str, done: bool) -> None:
            super().__init__()
            self.box = sender
            self.text = text
            self.done = done

        @property
        def control(self) -> FilterBox:
            return self.box

    class Left(Message):
        """The focus should go back to what is filtered."""

        def __init__(self, sender: FilterBox) -> None:
            super().__init__()
            self.box = sender

        @property
        def control(self) -> FilterBox:
            return self.box

    def __init__(self, placeholder: str, *, id: str | None = None, anew: bool = False) -> None:
        super().__init__(placeholder=placeholder, id=id, select_on_focus=False)
        self._anew = anew
        """Whether what is typed after opening takes the place of the text, as in a search, and is not added to it, as in a filter."""

    def open(self) -> None:
        """Show the box and take the focus."""
        self.add_class("-open")
        self.focus()
        if self._anew:
            self.action_select_all()

    def render_lines(self, crop: Region) -> list[Strip]:
        """The line as Textual draws it, with the sign in its left margin."""
        strips = super().render_lines(crop)
        if strips and (crop.x, crop.y) == (0, 0):
            sign = Segment(glyphs.current().prompt, component_style(self, "filter-box--prompt"))
            strips[0] = Strip.join([Strip([sign], 1), strips[0].crop(1)])
        return strips

    def clear_and_close(self) -> bool:
        """Take the filter away; False when there was none."""
        was_open = self.has_class("-open")
        self.value = ""
        self.remove_class("-open")
        return was_open

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Filtered(self, event.value, done=False))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Filtered(self, event.value, done=True))
        self.action_to_list()

    def on_blur(self, _event: events.Blur) -> None:
        self.set_class(bool(self.value), "-open")

    def action_to_list(self) -> None:
        self.post_message(self.Left(self))

    def action_leave_filter(self) -> None:
        self.clear_and_close()
        self.post_message(self.Left(self))
