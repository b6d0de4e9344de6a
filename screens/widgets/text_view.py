"""The part of a text widget that lays out and draws what is in view of a document."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Offset, Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.worker import Worker

from screens.widgets import glyphs
from screens.widgets.background import Background, Failure, Reported, Reporter
from screens.widgets.component_style import partial_component_style
from screens.widgets.text_blocks import KINDS, UNWRAPPED_WIDTH, Anchor, BlockLayout, Document, Part, Spot, can_draw_markdown
from screens.widgets.text_drawing import Pen, restyle, row_segments
from screens.widgets.text_search import Search
from screens.widgets.text_selection import row_of, selected_text, spot_offset, word_at
from screens.widgets.workbench import workbench_of

SLICE = 250_000
"""What is spent on the loop at a time, in the unit of `WrappedText.extend`: about 5 ms."""
FEW_BLOCKS = 500
"""Documents of so many blocks get their exact height as soon as they are shown, if they are short as well."""


class TextView(ScrollView):
    """A document, drawn row by row.

    What is in view is laid out at once as far as a slice of work goes, and the rest of it in further slices between which the loop is
    free; rows that are not known yet are dots meanwhile. Whatever changes, the rows in view stay where they are.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"virtual-text--{name}" for name in ("head", "head-right", "gutter", "more", "cursor", "hit", "hit-current")),
        *(f"virtual-text--{kind}" for kind in KINDS),
    }
    DEFAULT_CSS = """
    TextView {
        height: 1fr;
        background: transparent;
        overflow-x: hidden;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 1;
        &.-unwrapped { overflow-x: auto; }
        & > .virtual-text--head { text-style: bold; }
        & > .virtual-text--head-right { color: $text-muted; }
        & > .virtual-text--gutter { color: $text-muted; }
        & > .virtual-text--more { color: $text-accent; text-style: italic; }
        & > .virtual-text--cursor { background: $foreground 12%; text-style: bold; }
        & > .virtual-text--hit { background: $warning 40%; text-style: underline; }
        & > .virtual-text--hit-current { text-style: bold reverse; }
        & > .virtual-text--plain { color: $foreground; }
        & > .virtual-text--system { color: $text-muted; }
        & > .virtual-text--user { color: $text-primary; }
        & > .virtual-text--assistant { color: $text-success; }
        & > .virtual-text--reasoning { color: $text-muted; }
        & > .virtual-text--tool { color: $text-accent; }
        & > .virtual-text--result { color: $text-secondary; }
        & > .virtual-text--error { color: $text-error; }
        & > .virtual-text--warning { color: $text-warning; }
        & > .virtual-text--muted { color: $text-muted; }
        &:focus > .virtual-text--cursor { background: $block-cursor-background; color: $block-cursor-foreground; text-style: bold; }
    }
    """

    wrap: reactive[bool] = reactive(True, init=False)
    """Whether long lines are wrapped; otherwise the text scrolls sideways."""
    markdown: reactive[bool] = reactive(True, init=False)
    """Whether bodies that are Markdown are drawn as such."""
    follow: reactive[bool] = reactive(False, init=False)
    """Whether the end stays in view while the text grows."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._document = Document()
        self._search: Search | None = None
        self._background: Background[None] = Background(self)
        self._drawing = False
        self._slices: Worker[None] | None = None
        self._placing = False
        self._pen: Pen | None = None

    @property
    def at_end(self) -> bool:
        """Whether the last row is in view."""
        return self.scroll_offset.y >= self.max_scroll_y

    def visible_text(self) -> list[str]:
        """The lines as they are drawn, without styles."""
        return [self.render_line(y).text.rstrip() for y in range(self._rows)]

    def _cursor_spot(self) -> Spot | None:
        """The row under the cursor."""
        return None

    @property
    def _rows(self) -> int:
        return max(1, self.size.height - self.scrollbar_size_horizontal)

    @property
    def _columns(self) -> int:
        return max(1, self.size.width - self.scrollbar_size_vertical)

    def _place_now(self) -> Anchor | None:
        """What stands at the top of the view, to be given to `_rearrange` after a change."""
        return self._document.anchor(self.scroll_offset.y)

    def _rearrange(self, place: Anchor | None) -> None:
        """Lay out what is in view after a change, with `place` at its top."""
        if not self.is_mounted or not self.size:
            return
        self._undraw()
        document = self._document
        y, left = document.y_of_anchor(place, SLICE)
        y, left = document.settle(y, self._rows, max(left, 1))
        if left > 0 and 0 < len(document) <= FEW_BLOCKS and document.height:
            spot = document.spot(y)
            document.settle(0, 1 << 40, left)
            y = document.y_of(*spot)
        self._set_size()
        self._place(y)
        if self.follow:
            self._settle_view(SLICE)
        self.refresh()
        self._go_on()

    def _settle_view(self, budget: int) -> int:
        """Find the lines in view; the rows on screen stay where they are. Returns what is left of the budget."""
        if self.follow:
            self._place(self.max_scroll_y)
        top = self.scroll_offset.y
        y, left = self._document.settle(top, self._rows, budget)
        self._set_size()
        if self.follow:
            y = self.max_scroll_y
        if y != top:
            self._place(y)
        if left != budget:
            self.refresh()
        return left

    def _set_size(self) -> None:
        width = self._columns if self.wrap else max(self._columns, self._document.widest)
        size = Size(width, self._document.height)
        if size != self.virtual_size:
            self.virtual_size = size

    def _place(self, y: int) -> None:
        self._placing = True
        try:
            self.scroll_to(y=max(0, min(y, self.max_scroll_y)), force=True)
        finally:
            self._placing = False

    def _go_on(self) -> None:
        """Start whatever is left to do: slices on the loop, Markdown in a thread."""
        self._draw_markdown()
        if (self._slices is None or self._slices.is_finished) and self._unfinished():
            self._slices = self.run_worker(self._run_slices(), group="slices", exit_on_error=False)

    def _unfinished(self) -> bool:
        """Whether slices are left."""
        return self._document.unsettled(self.scroll_offset.y, self._rows)

    async def _run_slices(self) -> None:
        workbench = workbench_of(self)
        workbench.begin_work()
        try:
            while self.is_attached and self._unfinished():
                self._run_slice()
                await asyncio.sleep(0.002)
        finally:
            workbench.end_work()

    def _run_slice(self) -> None:
        self._settle_view(SLICE)
        self._draw_markdown()

    def _undraw(self) -> None:
        """Take back Markdown where it is not wanted: hits can only be lit in plain text."""
        for index, layout in enumerate(self._document.layouts):
            if layout.drawn is not None and not self._wants_markdown(index, layout):
                layout.drawn = None
                self._document.changed(index)

    def _wants_markdown(self, index: int, layout: BlockLayout) -> bool:
        if not self.markdown or layout.undrawable or not layout.opened:
            return False
        return self._search is None or not self._search.has_hits(index)

    def _draw_markdown(self) -> None:
        """Have the bodies in view and a page around it drawn by a thread; they are plain until then."""
        if self._drawing or not self.markdown or not self._document.height or not self.size:
            return
        first = self._document.spot(self.scroll_offset.y - self._rows).block
        last = self._document.spot(self.scroll_offset.y + 2 * self._rows).block
        tasks = []
        for index in range(first, last + 1):
            layout = self._document.layouts[index]
            if layout.drawn is None and self._wants_markdown(index, layout):
                layout.undrawable = not can_draw_markdown(layout.block.body)
                if not layout.undrawable:
                    tasks.append(
                        (index, layout, layout.width, layout.block.body, min(layout.width, self._columns) - layout.indent)
                    )
        if tasks:
            self._drawing = True
            draw = partial(_draw_all, tasks, glyphs.is_ascii())
            self._background.start("markdown", draw, partly=self._take_drawn, done=self._end_drawing, failed=self._end_drawing)

    def _take_drawn(self, drawn: tuple[int, BlockLayout, int, list[list[Segment]]]) -> None:
        index, layout, width, lines = drawn
        layout.undrawable = not lines
        if lines and layout.width == width:
            place = self._place_now()
            layout.drawn = lines
            is_there = index < len(self._document) and self._document.layouts[index] is layout
            self._document.changed(index if is_there else None)
            self._rearrange(place)

    def _end_drawing(self, _outcome: Failure | None) -> None:
        self._drawing = False
        self._draw_markdown()

    def on_reported(self, message: Reported) -> None:
        self._background.receive(message)

    def on_unmount(self) -> None:
        self._background.stop_all()

    def on_resize(self, _event: events.Resize) -> None:
        self._relayout()

    def _relayout(self) -> None:
        """Lay everything out anew if the width has changed."""
        place = self._place_now()
        width = self._columns if self.wrap else UNWRAPPED_WIDTH
        if self._document.width != width and self.size:
            self._document.resize(width)
            self._clear_selection()
        self._rearrange(place)

    def watch_wrap(self) -> None:
        self.set_class(not self.wrap, "-unwrapped")
        self.scroll_to(x=0, force=True)
        self._relayout()

    def watch_markdown(self) -> None:
        self._rearrange(self._place_now())

    def watch_follow(self) -> None:
        if self.follow:
            self._rearrange(self._place_now())

    def scroll_to(self, x: float | None = None, y: float | None = None, **options: object) -> None:
        """Scroll at once: lines that pass by would all have to be laid out."""
        super().scroll_to(x, y, **{**options, "animate": False})  # type: ignore[arg-type]

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self._scrolled(self._placing)

    def _scrolled(self, by_layout: bool) -> None:
        """The view shows other rows, because of the user or because of what `by_layout` happened above them."""
        if not by_layout:
            if self.follow and not self.at_end:
                self.follow = False
            self._settle_view(SLICE)
            self._go_on()

    def _select_word(self, screen_offset: Offset) -> None:
        widget, offset = self.screen.get_widget_and_offset_at(*screen_offset)
        word = word_at(self._drawn_text(row_of(offset)), offset.x) if widget is self and offset is not None else None
        if word is not None and offset is not None:
            self.screen.selections = {self: Selection(Offset(word[0], offset.y), Offset(word[1], offset.y))}

    def _clear_selection(self) -> None:
        if self.is_mounted and self in self.screen.selections:
            self.screen.clear_selection()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, without the line breaks and indents of the layout."""
        return selected_text(self._document, selection, self._drawn_text), "\n"

    def _drawn_text(self, spot: Spot) -> str:
        pen = self._new_pen()
        if self._document.layouts[spot.block].part(spot.row) is Part.BODY:
            pen = replace(pen, width=UNWRAPPED_WIDTH, shift=0)
        return "".join(segment.text for segment in self._segments(spot, pen)[0])

    def _new_pen(self) -> Pen:
        return Pen(self._columns, self.rich_style, self._component, self._search, 0 if self.wrap else self.scroll_offset.x)

    def _component(self, name: str) -> Style:
        return partial_component_style(self, f"virtual-text--{name}")

    def _segments(self, spot: Spot, pen: Pen) -> tuple[list[Segment], int]:
        under = self._component("cursor") if spot == self._cursor_spot() else None
        return row_segments(self._document.layouts[spot.block], spot.block, spot.row, pen, under)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Some lines of the screen, with the styles looked up once."""
        self._pen = self._new_pen()
        try:
            return super().render_lines(crop)
        finally:
            self._pen = None

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        width = self.size.width
        pen = self._pen or self._new_pen()
        y += self.scroll_offset.y
        if y >= self._document.height:
            return Strip.blank(width, pen.base)
        spot = self._document.spot(y)
        is_body = self._document.layouts[spot.block].part(spot.row) is Part.BODY
        segments, left = self._segments(spot, pen)
        selection = self.text_selection
        span = selection.get_span(spot_offset(spot)) if selection is not None else None
        if span is not None:
            end = sum(len(segment.text) for segment in segments) if span[1] == -1 else span[1] - left
            segments = restyle(segments, max(0, span[0] - left), end, self.screen.get_component_rich_style("screen--selection"))
        beyond = pen.base if is_body or not segments or segments[-1].style is None else segments[-1].style
        return Strip(segments).adjust_cell_length(width, beyond).apply_offsets(left, spot_offset(spot))


def _draw_all(tasks: Sequence[tuple[int, BlockLayout, int, str, int]], ascii_only: bool, reporter: Reporter) -> None:
    """Draw bodies one by one; runs in a thread, and only reads their texts."""
    for index, layout, width, body, room in tasks:
        if reporter.cancelled:
            return
        lines: list[list[Segment]] = []
        try:
            from screens.widgets.text_markdown import markdown_lines  # 0.1 s, so it is imported here, beside the loop

            lines = markdown_lines(body, room, ascii_only=ascii_only, cancelled=lambda: reporter.cancelled)
        except Exception:  # what the parser stumbles over is shown as it stands
            pass
        reporter.tell((index, layout, width, lines))
