"""A pane: a frame with what it shows in its border, in exactly one of five states."""

from __future__ import annotations

from enum import Enum

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from backend.io.text import clean_line
from screens.widgets import glyphs
from screens.widgets.background import Failure
from screens.widgets.text_gate import LONGEST_LINE, MUTED, fit, safe, safe_line


class PaneState(Enum):
    """What a pane is doing."""

    LOADING = "loading"
    EMPTY = "empty"
    READY = "ready"
    STALE = "stale"
    FAILED = "failed"


class Pane(Vertical):
    """A framed part of a screen: title and right title above, a hint in the foot.

    Children stay visible while new content loads or when it is stale; only without content a message takes their place. A list
    or text that has the focus keeps it then, without a size, so that the keys go on to mean the same.
    """

    DEFAULT_CSS = """
    Pane {
        border: round $foreground 30%;
        border-title-color: $text;
        border-subtitle-color: $text-muted;
        height: 1fr;
        width: 1fr;
        padding: 0;
        &:focus-within { border: round $primary; }
        & > .pane--message { display: none; padding: 1 2; height: 1fr; overflow: hidden; }
        &.-message > * { display: none; }
        &.-message > .pane--message { display: block; }
        &.-message > VirtualList:focus, &.-message > VirtualText:focus { display: block; min-height: 0; max-height: 0; }
        &.-message > FilterBox:focus { max-height: 1; }
        &.-stale > * { tint: $background 40%; }
    }
    """

    def __init__(self, title: str, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.state = PaneState.READY
        self.heading = title
        self.right = ""
        self._foot = ""
        self._state_word = ""

    def compose(self) -> ComposeResult:
        yield Static(classes="pane--message", markup=False)

    def on_mount(self) -> None:
        self._draw_border()

    def on_resize(self, _event: events.Resize) -> None:
        self._draw_border()

    def set_heading(self, title: str | None = None, right: str | None = None, foot: str | None = None) -> None:
        """Change what the border says; untrusted text is fine."""
        old = (self.heading, self.right, self._foot)
        new = tuple(now if wanted is None else wanted for now, wanted in zip(old, (title, right, foot), strict=True))
        if new != old:
            self.heading, self.right, self._foot = new
            self._draw_border()

    def show_loading(self, what: str, *, keep: bool = False) -> None:
        """Something is being read: what, since when, how much. With `keep`, the present content stays and the border says it."""
        self._enter(PaneState.LOADING, what if keep else "")
        if not keep:
            self._show_message(safe(what, MUTED))

    def show_empty(self, why: str, help_text: str = "") -> None:
        """There is nothing to show: why, and the key that helps."""
        self._enter(PaneState.EMPTY)
        self._show_message(Content("\n").join([safe(why), *([safe(help_text, MUTED)] if help_text else [])]))

    def show_ready(self) -> None:
        """The content is what it says."""
        self._enter(PaneState.READY)
        self._show_content()

    def show_stale(self, word: str) -> None:
        """The content is old: `word` says how old, or why."""
        self._enter(PaneState.STALE, word)
        self._show_content()
        self.add_class("-stale")

    def show_failure(self, failure: Failure, retry: str = "") -> None:
        """Nothing can be shown: message, hint, and the key to try again. Other panes are not touched."""
        self._enter(PaneState.FAILED)
        lines = [safe(f"{glyphs.current().failed} {failure.message}", "$text-error")]
        lines += [safe(text, MUTED) for text in (failure.hint, retry) if text]
        self._show_message(Content("\n").join(lines))

    @property
    def message_text(self) -> str:
        """What the message says when one is shown; for tests and copies."""
        return str(self._message.content) if self.has_class("-message") else ""

    @property
    def _message(self) -> Static:
        return self.query_one("Static.pane--message", Static)

    def _enter(self, state: PaneState, word: str = "") -> None:
        changed = (state, word) != (self.state, self._state_word)
        self.state, self._state_word = state, word
        if state is not PaneState.STALE:
            self.remove_class("-stale")
        if changed:
            self._draw_border()

    def _show_content(self) -> None:
        if self.has_class("-message"):
            self.remove_class("-message")

    def _show_message(self, content: Content) -> None:
        if self._message.content != content:
            self._message.update(content)
        self.add_class("-message")

    def _draw_border(self) -> None:
        """Textual's border has one title above; the right one is set apart by a rule of our own."""
        width = self.outer_size.width - 6
        right = clean_line(" · ".join(part for part in (self._state_word, self.right) if part), LONGEST_LINE)
        heading = clean_line(self.heading, LONGEST_LINE)
        if width <= 8:
            self.border_title = safe_line(heading)
        else:
            right = fit(right, min(len(right) * 2, width - (6 if heading else 0))).rstrip() if right else ""
            room = width - (Content(right).cell_length + 2 if right else 0)
            left = fit(heading, min(room, Content(heading).cell_length))
            rule = glyphs.current().rule * max(0, room - Content(left).cell_length)
            between = f" {rule} " if heading else f"{rule}{glyphs.current().rule} "[-max(0, width - Content(right).cell_length) :]
            end = [(between, "$foreground 30%"), (right, "")] if right else []
            self.border_title = Content.assemble(left, *end)
        self.border_subtitle = safe_line(self._foot)
