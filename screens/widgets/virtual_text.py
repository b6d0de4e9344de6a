"""Text of any length in foldable blocks: conversations, logs, raw JSON. Only what is on screen is laid out and drawn."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from textual import events
from textual.geometry import Offset
from textual.message import Message
from textual.reactive import var

from screens.widgets import text_blocks
from screens.widgets.key_table import bindings
from screens.widgets.text_blocks import Part, Spot, TextBlock
from screens.widgets.text_log import KEPT, LogLines
from screens.widgets.text_search import Hit, Search
from screens.widgets.text_view import SLICE, TextView

SEARCH_NOW = 1_500_000
"""A search goes this far before it returns, in characters; the rest follows in slices."""
SEARCH_SLICE = 400_000


class VirtualText(TextView, can_focus=True, inherit_bindings=False):
    """Blocks one below the other, with a cursor on blocks, folds, search, selection by mouse, and following of a growing end."""

    BINDINGS = bindings("text")
    HELP = (
        "Text: `j` `k` go from part to part, arrows and pages scroll, `enter` folds or shows more, `e` folds all, `W` wraps. "
        "A click on a head folds, dragging selects and `ctrl+c` copies, a double click selects a word."
    )

    pending: var[int] = var(0)
    """Lines of a log that have arrived below since following stopped."""

    class Sent(Message):
        """Something has happened in a text."""

        def __init__(self, sender: VirtualText) -> None:
            super().__init__()
            self.text = sender

        @property
        def control(self) -> VirtualText:
            return self.text

    class CursorMoved(Sent):
        """The cursor is on another block."""

        def __init__(self, sender: VirtualText, index: int, key: Hashable) -> None:
            super().__init__(sender)
            self.index = index
            self.key = key

    class FoldToggled(Sent):
        """A block was folded or unfolded; `index` and `key` are None when all were."""

        def __init__(self, sender: VirtualText, index: int | None, key: Hashable | None, folded: bool) -> None:
            super().__init__(sender)
            self.index = index
            self.key = key
            self.folded = folded

    class Chosen(Sent):
        """A head without a body was opened: by enter, or by a click."""

        def __init__(self, sender: VirtualText, key: Hashable) -> None:
            super().__init__(sender)
            self.key = key

    class Scrolled(Sent):
        """Other rows are in view."""

        def __init__(self, sender: VirtualText, at_end: bool) -> None:
            super().__init__(sender)
            self.at_end = at_end

    class Searched(Sent):
        """A search has found more, has ended, or another hit is the current one."""

        def __init__(self, sender: VirtualText, number: int, total: int, finished: bool) -> None:
            super().__init__(sender)
            self.number = number
            self.total = total
            self.finished = finished

    def __init__(self, blocks: Sequence[TextBlock] = (), *, id: str | None = None, kept_lines: int = KEPT) -> None:
        super().__init__(id=id)
        self._document.replace(blocks, keep=False)
        self._cursor = 0
        self._on_more = False
        self._target: Hit | None = None
        self._kept_lines = kept_lines
        self._log_lines: LogLines | None = None
        self._pressed: Offset | None = None

    @property
    def blocks(self) -> list[TextBlock]:
        """The blocks of the document."""
        return [layout.block for layout in self._document.layouts]

    def set_blocks(self, blocks: Sequence[TextBlock], keep_place: bool = True) -> None:
        """Show other blocks. With `keep_place`, cursor, folds, cuts and scroll offset stay with the keys of the blocks."""
        if self._log_lines is not None:
            self._log_lines = None
            self.follow = False
        self._replace(blocks, keep_place)

    def set_lines(self, lines: Iterable[str]) -> None:
        """Show the lines of a log instead of blocks, and follow its end.

        Only the last lines are kept, and one at the top says how many are not. Scrolling up stops following, scrolling to the end starts
        it again.
        """
        self._log_lines = LogLines(self._kept_lines)
        self._log_lines.append(lines)
        self.pending = 0
        self._replace(self._log_lines.blocks(), False)
        self.follow = True

    def append_lines(self, lines: Iterable[str]) -> None:
        """Add lines to a log."""
        self.append_kinds((("plain", lines),))

    def append_kinds(self, groups: Iterable[tuple[str, Iterable[str]]]) -> None:
        """Add lines to a log, drawn by their kind: one of `KINDS`, and the lines."""
        if self._log_lines is None:
            self.set_lines(())
        log = self._log_lines
        assert log is not None
        added = sum([log.append(lines, kind) for kind, lines in groups])
        if added:
            self.pending = 0 if self.follow else self.pending + added
            self._replace(log.blocks(), True)

    @property
    def cursor(self) -> int:
        """The index of the block under the cursor."""
        return self._cursor

    @property
    def cursor_key(self) -> Hashable | None:
        """The key of the block under the cursor; None when there is none."""
        return self._document.layouts[self._cursor].block.key if self._cursor < len(self._document) else None

    def move_to(self, index: int) -> None:
        """Put the cursor on a block and bring its head into view."""
        if self._document.layouts:
            self._move(Spot(max(0, min(index, len(self._document) - 1)), 0))

    def move_to_key(self, key: Hashable) -> bool:
        """Put the cursor on the block with a key; False when there is none."""
        index = self._document.index_of(key)
        if index is not None:
            self.move_to(index)
        return index is not None

    def is_folded(self, index: int) -> bool:
        """Whether a block is folded."""
        return not self._document.layouts[index].opened

    def plain_text(self, index: int | None = None) -> str:
        """A block, without `index` the one under the cursor, as plain text without folds and cuts."""
        index = self._cursor if index is None else index
        return text_blocks.plain_text(self._document.layouts[index].block) if index < len(self._document) else ""

    def search(self, pattern: str) -> int:
        """Light all places of a plain text; case counts if `pattern` has a capital letter, and an empty one ends the search.

        Returns how many there are; in a large document how many were found so far, and `Searched` tells more.
        """
        place = self._place_now()
        self._target = None
        self._search = Search(self.blocks, pattern) if pattern else None
        if self._search is not None:
            self._search.step(SEARCH_NOW)
        self._rearrange(place)
        self._tell_search()
        return self.hit_position[1]

    def next_hit(self) -> bool:
        """Go to the next hit, at first the one nearest below the top of the view; False when there is none."""
        return self._step_hit(True)

    def previous_hit(self) -> bool:
        """Go to the hit before; False when there is none."""
        return self._step_hit(False)

    @property
    def hit_position(self) -> tuple[int, int]:
        """The number of the current hit, from 1 (0: none yet), and how many hits are known."""
        if self._search is None:
            return 0, 0
        current = self._search.current
        return (0 if current is None else current + 1), len(self._search.hits)

    @property
    def search_finished(self) -> bool:
        """Whether the number of hits is final."""
        return self._search is None or (self._search.finished and not self._search.cut)

    def _replace(self, blocks: Sequence[TextBlock], keep: bool) -> None:
        place = self._place_now() if keep else None
        key, before = self.cursor_key, [layout.block.key for layout in self._document.layouts]
        self._document.replace(blocks, keep=keep)
        after = [layout.block.key for layout in self._document.layouts]
        if before != after[: len(before)]:
            self._clear_selection()
        found = self._document.index_of(key) if keep and key is not None else 0
        self._cursor = max(0, min(self._cursor, len(after) - 1)) if found is None else found
        self._on_more = self._on_more and found is not None and keep
        if self._search is not None:
            self._target = None
            self._search = self._search.again(blocks)
            self._search.step(SEARCH_NOW)
        self._rearrange(place)
        if self.cursor_key != key and after:
            self.post_message(self.CursorMoved(self, self._cursor, self.cursor_key))

    def _step_hit(self, forward: bool) -> bool:
        search = self._search
        number = search.step_to(forward, self._first_visible()) if search is not None else None
        if search is None or number is None:
            return False
        self._target = search.hits[number]
        index = self._target.block
        place = self._place_now()
        if self._target.in_body:
            self._document.layouts[index].folded = False
            self._document.changed(index)
        self._rearrange(place)
        self._approach_target(SLICE)
        self._go_on()
        self._tell_search()
        return True

    def _first_visible(self) -> Hit:
        """The first character in view, in the form of a hit."""
        place = self._place_now()
        if place is None:
            return Hit(0, False, 0, 0)
        in_body = self._document.layouts[place.block].part(place.row) is not Part.HEAD
        return Hit(place.block, in_body, place.offset or 0, 0)

    def _approach_target(self, budget: int) -> int:
        """Find the line of the hit that is to be shown, and show it once it is known; returns what is left of the budget."""
        hit = self._target
        if hit is None or not self.is_mounted:
            return budget
        layout = self._document.layouts[hit.block]
        row = 0
        if hit.in_body:
            if layout.wrapped is None or not layout.wrapped.covers(hit.start):
                budget -= layout.extend(1 << 62, budget)
                self._document.changed(hit.block)
            if layout.wrapped is None or not layout.wrapped.covers(hit.start):
                return budget
            row = layout.body_row + layout.wrapped.line_of(hit.start)
            layout.show_line(row - layout.body_row)
            self._document.changed(hit.block)
        self._target = None
        self.follow = False
        self._set_cursor(Spot(hit.block, 0))
        self._set_size()
        y, top = self._document.y_of(hit.block, row), self.scroll_offset.y
        if not top <= y < top + self._rows:
            self._place(y - self._rows // 3)
        budget = self._settle_view(max(budget, 1))
        self.refresh()
        return budget

    def _tell_search(self) -> None:
        self.post_message(self.Searched(self, *self.hit_position, self.search_finished))

    def _unfinished(self) -> bool:
        searching = self._search is not None and not self._search.finished
        return searching or self._target is not None or super()._unfinished()

    def _run_slice(self) -> None:
        if self._target is not None:
            self._approach_target(SLICE)
        elif super()._unfinished():
            super()._run_slice()
        elif self._search is not None:
            self._search.step(SEARCH_SLICE)
            self._rearrange(self._place_now())
            self._tell_search()

    def watch_follow(self) -> None:
        if self.follow:
            self.pending = 0
        super().watch_follow()

    def _scrolled(self, by_layout: bool) -> None:
        super()._scrolled(by_layout)
        if self.at_end:
            self.pending = 0
            if self._log_lines is not None and not by_layout:
                self.follow = True
        self.post_message(self.Scrolled(self, self.at_end))

    def action_page_down(self) -> None:
        self.scroll_to(y=self.scroll_offset.y + max(1, self._rows - 1))

    def action_page_up(self) -> None:
        self.scroll_to(y=self.scroll_offset.y - max(1, self._rows - 1))

    def action_scroll_end(self) -> None:
        for _ in range(3):  # lines that come into view may turn out to be more than was estimated
            self.scroll_to(y=self.max_scroll_y)
        if self._log_lines is not None:
            self.follow = True

    def action_scroll_home(self) -> None:
        self.scroll_to(x=0, y=0)

    def action_scroll_right(self) -> None:
        self.scroll_to(x=self.scroll_offset.x + 8)

    def action_scroll_left(self) -> None:
        self.scroll_to(x=self.scroll_offset.x - 8)

    def action_toggle_wrap(self) -> None:
        self.wrap = not self.wrap

    def action_next_block(self) -> None:
        self._step(1)

    def action_previous_block(self) -> None:
        self._step(-1)

    def _step(self, direction: int) -> None:
        """Go to the next head, or the line that stands for what is cut off; from the view's edge when the cursor is out of view.

        Where there are no heads, and after the last of them, go a line further.
        """
        document, top = self._document, self.scroll_offset.y
        here = self._cursor_spot() or Spot(0, -1)
        if document.height and not top <= document.y_of(*here) < top + self._rows:
            here = document.spot(top)
            if direction > 0:
                here = Spot(here.block, here.row - 1)
        index = here.block if document.has_heads else len(document)
        while 0 <= index < len(document):
            for spot in self._stops(index)[::direction]:
                if (spot > here) if direction > 0 else (spot < here):
                    self._move(spot)
                    return
            index += direction
        self.scroll_to(y=top + direction)

    def _stops(self, index: int) -> list[Spot]:
        layout = self._document.layouts[index]
        heads = [] if layout.block.no_head else [Spot(index, 0)]
        return heads + ([Spot(index, layout.height - 1)] if layout.more else [])

    def _cursor_spot(self) -> Spot | None:
        if self._cursor >= len(self._document):
            return None
        layout = self._document.layouts[self._cursor]
        if self._on_more and layout.more:
            return Spot(self._cursor, layout.height - 1)
        return Spot(self._cursor, -1 if layout.block.no_head else 0)

    def _set_cursor(self, spot: Spot) -> None:
        moved = spot.block != self._cursor
        self._cursor = spot.block
        self._on_more = spot.row > 0
        if moved:
            self.post_message(self.CursorMoved(self, self._cursor, self.cursor_key))

    def _move(self, spot: Spot) -> None:
        """Put the cursor on a head, or on the line that stands for what is cut off, and bring it into view."""
        self._set_cursor(spot)
        self.refresh()
        if not self.is_mounted or not self.size:
            return
        document, place = self._document, self._place_now()
        document.settle(document.y_of(*spot), self._rows, SLICE)
        self._set_size()
        top, _ = document.y_of_anchor(place)
        y = document.y_of(*(self._cursor_spot() or spot))
        bottom = y + 1 if self._on_more else document.tops[spot.block + 1]
        if y < top:
            top = y
        elif bottom > top + self._rows:
            top = min(y, bottom - self._rows)
        self._place(top)
        if self.follow and not self.at_end:
            self.follow = False
        self._settle_view(SLICE)
        self._go_on()

    def action_fold(self) -> None:
        """Fold or unfold the block under the cursor; on a line that stands for what is cut off, show more."""
        if not self._document.layouts:
            return
        layout = self._document.layouts[self._cursor]
        if self._on_more and layout.more:
            self._show_more(self._cursor)
        elif layout.foldable:
            self._toggle(self._cursor)
        elif layout.block.no_head:
            self._show_more(self._first_cut())
        else:
            self.post_message(self.Chosen(self, layout.block.key))

    def _first_cut(self) -> int | None:
        """The first block in view of which something is cut off."""
        first, last = (self._document.spot(self.scroll_offset.y + rows).block for rows in (0, self._rows))
        return next((index for index in range(first, last + 1) if self._document.layouts[index].more), None)

    def _toggle(self, index: int) -> None:
        place = self._place_now()
        layout = self._document.layouts[index]
        layout.folded = not layout.folded
        self._document.changed(index)
        self._rearrange(place)
        self._move(Spot(index, 0))
        self.post_message(self.FoldToggled(self, index, layout.block.key, layout.folded))

    def _show_more(self, index: int | None) -> None:
        layout = self._document.layouts[index] if index is not None else None
        if layout is not None and layout.limit is not None:
            place = self._place_now()
            layout.show_line(layout.limit)
            self._document.changed(index)
            self._rearrange(place)

    def action_fold_all(self) -> None:
        """Fold all blocks, or if all are folded unfold them."""
        foldable = [layout for layout in self._document.layouts if layout.foldable]
        if not foldable:
            return
        folded = any(not layout.folded for layout in foldable)
        for layout in foldable:
            layout.folded = folded
        self._document.changed()
        self._rearrange(None)
        self._move(Spot(self._cursor, 0))
        self.post_message(self.FoldToggled(self, None, None, folded))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._pressed = event.screen_offset

    def on_click(self, event: events.Click) -> None:
        """A click on a head folds, one on the line that stands for the rest shows more; a double click selects a word."""
        event.prevent_default()  # Textual would select everything on a double click
        offset = event.get_content_offset(self)
        if offset is None or event.screen_offset != self._pressed:
            return
        y = self.scroll_offset.y + offset.y
        if y >= self._document.height:
            return
        spot = self._document.spot(y)
        layout = self._document.layouts[spot.block]
        part = layout.part(spot.row)
        if event.chain > 1:
            if part is Part.BODY:
                self._select_word(event.screen_offset)
            return
        self._set_cursor(Spot(spot.block, 0))
        self.refresh()
        if part is Part.HEAD and layout.foldable:
            self._toggle(spot.block)
        elif part is Part.HEAD:
            self.post_message(self.Chosen(self, layout.block.key))
        elif part is Part.MORE:
            self._show_more(spot.block)
