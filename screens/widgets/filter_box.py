"""The box that narrows a list or searches a text: one line, opened by `/`, closed by `esc`."""

from __future__ import annotations

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Input

from screens.widgets.key_table import bindings


class FilterBox(Input):
    """Hidden while empty and without the focus. Tells every change at once: filtering is never delayed."""

    BINDINGS = [  # noqa: RUF012 - the type is Textual's
        *bindings("filter"),
        Binding("escape", "leave_filter", show=False),
        Binding("down", "to_list", show=False),
    ]
    DEFAULT_CSS = """
    FilterBox, FilterBox:focus { display: none; height: 1; border: none; padding: 0 1; background: transparent; }
    FilterBox.-open { display: block; }
    """

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

    def __init__(self, placeholder: str, *, id: str | None = None) -> None:
        super().__init__(placeholder=placeholder, id=id, select_on_focus=False)

    def open(self) -> None:
        """Show the box and take the focus."""
        self.add_class("-open")
        self.focus()

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
