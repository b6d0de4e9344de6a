"""Two repeats of a task side by side."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from screens.viewer.conversation import Page
from screens.viewer.diff_layout import STYLES, DiffLayout, lay_out, plain_rows
from screens.widgets.background import Background, Failure, Reported, Reporter
from screens.widgets.component_style import partial_component_style
from screens.widgets.formatting import count, score
from screens.widgets.pane import Pane

_REST = 0.001
"""Seconds in which the loop draws undisturbed."""


class DiffSide(ScrollView, can_focus=True):
    """One of the two sides; they scroll together."""

    HELP = "Diff: arrows and pages scroll both sides, `{` `}` go from difference to difference, `s` swaps, `e` unfolds what is equal."
    COMPONENT_CLASSES: ClassVar[set[str]] = {"diff--cursor", *(f"diff--{style}" for style in STYLES)}
    DEFAULT_CSS = """
    DiffSide {
        height: 1fr;
        background: transparent;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        & > .diff--plain { color: $foreground; }
        & > .diff--head { text-style: bold; }
        & > .diff--equal { color: $text-muted; }
        & > .diff--differs { color: $text-warning; }
        & > .diff--only { color: $text-error; }
        & > .diff--marked { color: $text-warning; text-style: bold; }
        & > .diff--muted { color: $text-muted; }
        & > .diff--cursor { background: $foreground 12%; text-style: bold; }
    }
    """

    def __init__(self, *, is_left: bool) -> None:
        super().__init__()
        self.layout_shown = DiffLayout()
        self.pair: int | None = None
        """The difference that was gone to."""
        self.partner: DiffSide | None = None
        self._is_left = is_left
        self._brushes: dict[str, Style] = {}

    def show(self, layout: DiffLayout) -> None:
        """Show other rows."""
        self.layout_shown = layout
        size = Size(self.size.width, len(layout.rows))
        if size != self.virtual_size:
            # Assigning it would lay the whole screen out anew; only the scrollbar needs to know.
            self.set_reactive(DiffSide.virtual_size, size)
            self._scroll_update(size)
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self.partner is not None and self.partner.scroll_y != new_value:
            self.partner.scroll_to(y=new_value, animate=False, force=True)

    def text_of(self, index: int) -> str:
        """A row as plain text."""
        row = self.layout_shown.rows[index]
        return "".join(span.text for span in (row.left if self._is_left else row.right))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """What the mouse has selected."""
        return selection.extract("\n".join(map(self.text_of, range(len(self.layout_shown.rows))))), "\n"

    def selection_updated(self, _selection: Selection | None) -> None:
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Lines of the screen; styles are looked up once for all of them."""
        self._brushes = {name: partial_component_style(self, f"diff--{name}") for name in (*STYLES, "cursor")}
        self._brushes["base"] = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        index, base, width = y + self.scroll_offset.y, self._brushes["base"], self.size.width
        if index >= len(self.layout_shown.rows):
            return Strip.blank(width, base)
        row = self.layout_shown.rows[index]
        under = base
        if row.is_head and row.pair == self.pair:
            under = base + self._brushes["cursor"]
        spans = row.left if self._is_left else row.right
        selection = self.text_selection
        span = selection.get_span(index) if selection is not None else None
        if span is not None:
            text, (begin, end) = self.text_of(index), span
            end = len(text) if end == -1 else end
            lit = under + self.screen.get_component_rich_style("screen--selection")
            segments = [Segment(text[:begin], under), Segment(text[begin:end], lit), Segment(text[end:], under)]
        else:
            segments = [Segment(text, under + self._brushes[style]) for text, style in spans]
        return Strip(segments).adjust_cell_length(width, under).apply_offsets(0, index)


class DiffView(Horizontal):
    """Both sides with their titles. Laid out in a thread for the width there is."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.pages: tuple[Page, Page] | None = None
        self.show_equal = False
        self._background = Background[DiffLayout](self)
        self._layout_width = 0

    def compose(self) -> ComposeResult:
        with Pane("", id="diff-left"):
            yield DiffSide(is_left=True)
        with Pane("", id="diff-right"):
            yield DiffSide(is_left=False)

    def on_mount(self) -> None:
        left, right = self.sides
        left.partner, right.partner = right, left

    @property
    def sides(self) -> tuple[DiffSide, DiffSide]:
        """Left and right."""
        left, right = self.query(DiffSide)
        return left, right

    @property
    def _panes(self) -> tuple[Pane, Pane]:
        left, right = self.query(Pane)
        return left, right

    def show(self, left: Page, right: Page) -> None:
        """Compare two pages."""
        self.pages = (left, right)
        for side in self.sides:
            side.pair = None
            side.scroll_to(y=0, animate=False, force=True)
        self._lay_out()

    def swap(self) -> None:
        """Left becomes right."""
        if self.pages is not None:
            self.show(self.pages[1], self.pages[0])

    def toggle_equal(self) -> None:
        """Fold or unfold what is equal."""
        self.show_equal = not self.show_equal
        self._lay_out()

    def step(self, by: int) -> bool:
        """Go to the next (1) or previous (-1) difference; False when there is none."""
        left, right = self.sides
        layout = left.layout_shown
        here = (
            layout.heads[left.pair]
            if left.pair is not None and left.pair < len(layout.heads)
            else left.scroll_offset.y - (by > 0)
        )
        found = bisect_right(layout.differences, here) if by > 0 else bisect_left(layout.differences, here) - 1
        if not 0 <= found < len(layout.differences):
            return False
        at = layout.differences[found]
        for side in (left, right):
            side.pair = layout.rows[at].pair
            side.refresh()
        left.scroll_to(y=max(0, at - 1), animate=False, force=True)
        self._say_position()
        return True

    def as_text(self) -> str:
        """Both sides as text of two columns."""
        return plain_rows(self.sides[0].layout_shown)

    def on_resize(self, _event: events.Resize) -> None:
        if self.pages is not None and self.sides[0].size.width != self._layout_width:
            self.call_after_refresh(self._lay_out)

    def _lay_out(self) -> None:
        if self.pages is None or not self.display:
            return
        self._layout_width = self.sides[0].size.width
        if not self._layout_width:
            return  # not on screen yet: the first size comes as a resize
        left, right = (page.transcript for page in self.pages)
        width, show_equal = max(10, min(side.size.width for side in self.sides)), self.show_equal

        def work(reporter: Reporter) -> DiffLayout:
            return lay_out(left, right, width, show_equal=show_equal, rest=lambda: reporter.wait(_REST))

        for pane, page in zip(self._panes, self.pages, strict=True):
            pane.set_heading(title=_title(page))
            pane.show_loading("comparing", keep=True)
        self._background.start("diff", work, done=self._show_layout, failed=self._fail)

    def _show_layout(self, layout: DiffLayout) -> None:
        for pane in self._panes:
            pane.show_ready()
        for side in self.sides:
            side.show(layout)
        differences = len(layout.differences)
        turns = f"{count(differences)} of {count(len(layout.heads))} turns differ" if differences else "no difference"
        self._panes[1].set_heading(foot=turns)
        if differences and self.sides[0].pair is None:
            self.step(1)
        else:
            self._say_position()

    def _say_position(self) -> None:
        side = self.sides[0]
        layout, foot = side.layout_shown, ""
        if side.pair is not None and side.pair < len(layout.heads) and layout.heads[side.pair] in layout.differences:
            number = layout.differences.index(layout.heads[side.pair]) + 1
            foot = f"difference {count(number)} of {count(len(layout.differences))}"
        self._panes[0].set_heading(foot=foot)

    def _fail(self, failure: Failure) -> None:
        for pane in self._panes:
            pane.show_failure(failure)

    def on_reported(self, message: Reported) -> None:
        self._background.receive(message)

    def on_unmount(self) -> None:
        self._background.stop_all()


def _title(page: Page) -> str:
    what = f"repeat {page.rollout + 1}" if isinstance(page.rollout, int) else f"repeat {page.rollout}"
    outcome = page.failure if page.failure and page.reward is None else f"reward {score(page.reward)}"
    return f"{page.task} · {what} · {outcome}"
