"""The middle pane of the viewer: one rollout as a conversation or as JSON, and the search in it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.message import Message

from screens.viewer.conversation import Page
from screens.widgets.filter_box import FilterBox
from screens.widgets.formatting import count
from screens.widgets.pane import Pane
from screens.widgets.text_blocks import TextBlock
from screens.widgets.virtual_text import VirtualText

_NO_PAGE = "Rollout"
"""What the border says when there is none."""
_FOOT = "j k turn · enter fold · e fold all"


class ConversationPane(Pane):
    """Shows a page. `raw` tells whether it is shown as JSON."""

    class SearchAll(Message):
        """A text is to be looked for in all rollouts."""

        def __init__(self, pattern: str) -> None:
            super().__init__()
            self.pattern = pattern

    def __init__(self, *, id: str, classes: str) -> None:
        super().__init__(_NO_PAGE, id=id, classes=classes)
        self.page: Page | None = None
        self.raw = False
        self.everywhere = False
        """Whether the search goes on in other rollouts."""
        self._state_of_search = ""
        self._beside = ""

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield FilterBox("search", id="conversation-search", anew=True)
        yield VirtualText(id="conversation-text")

    @property
    def text(self) -> VirtualText:
        """The text itself."""
        return self.query_one(VirtualText)

    @property
    def box(self) -> FilterBox:
        return self.query_one(FilterBox)

    @property
    def pattern(self) -> str:
        """What is searched; empty for nothing."""
        return self.box.value

    def show_page(self, page: Page, blocks: Sequence[TextBlock], *, raw: bool, title: str, keep_place: bool) -> None:
        """Show a page: its conversation, or the record as JSON."""
        self.page, self.raw = page, raw
        self.show_ready()
        self.text.set_blocks(blocks, keep_place=keep_place)
        self.set_heading(title=title)
        self._draw_turn()

    def clear_page(self) -> None:
        """Forget the page, and what the border says of it."""
        self.page, self._beside, self._state_of_search = None, "", ""
        self.text.set_blocks((), keep_place=False)
        self.set_heading(_NO_PAGE, "", "")

    def say_beside(self, text: str) -> None:
        """What stands at the right of the border, before the turn."""
        if text != self._beside:
            self._beside = text
            self._draw_turn()

    def open_search(self, *, everywhere: bool, among: str = "all") -> None:
        """Open the search box, for this rollout or for all of those that `among` names."""
        self.everywhere = everywhere
        self.box.placeholder = f"search in {among} rollouts, enter starts" if everywhere else "search in this rollout"
        self._state_of_search = ""
        self.box.open()

    def say_search(self, text: str) -> None:
        """What the foot says of a search in all rollouts; empty for nothing."""
        self._state_of_search = text
        self._draw_foot()

    def on_filter_box_filtered(self, event: FilterBox.Filtered) -> None:
        event.stop()
        if event.done and self.everywhere and event.text:
            self.post_message(self.SearchAll(event.text))
        elif event.done:
            self.text.next_hit()
        elif not self.everywhere or not event.text:
            self.text.search(event.text)
            self._draw_foot()

    def on_filter_box_left(self, event: FilterBox.Left) -> None:
        event.stop()
        self.text.focus()
        self._draw_foot()

    def on_virtual_text_cursor_moved(self, event: VirtualText.CursorMoved) -> None:
        event.stop()
        self._draw_turn()

    def on_virtual_text_searched(self, event: VirtualText.Searched) -> None:
        event.stop()
        self._draw_foot()

    def _draw_turn(self) -> None:
        page, key = self.page, self.text.cursor_key
        if page is None:
            return
        right = "JSON" if self.raw else ""
        if not self.raw and page.transcript.turns:
            turns = len(page.transcript.turns)
            right = f"turn {key + 1}/{turns}" if isinstance(key, int) else f"{turns} turns"
        self.set_heading(right=" · ".join(part for part in (self._beside, right) if part))
        self._draw_foot()

    def _draw_foot(self) -> None:
        number, total = self.text.hit_position
        foot = _FOOT
        if self._state_of_search:
            foot = self._state_of_search
        elif self.page is None:
            foot = ""
        elif self.pattern:
            more = "" if self.text.search_finished else "+"
            foot = f"hit {count(number)} of {count(total)}{more} · n N" if total else f"not found{' yet' if more else ''}"
        self.set_heading(foot=foot)
