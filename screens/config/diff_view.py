"""The widget that shows two configurations: side by side, or in one column."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from textual.app import ComposeResult
from textual.containers import Horizontal

from screens.config.comparing import INLINE_COLUMNS, SIDE_COLUMNS, Comparison, LineRows, as_text, inline_rows, side_rows
from screens.widgets.background import Failure
from screens.widgets.pane import Pane
from screens.widgets.virtual_list import VirtualList


class PairedList(VirtualList):
    """A list that scrolls, and moves its cursor, together with its partner."""

    HELP = "Diff: `{` `}` go from change to change, `i` shows one column, `c` all keys, `A` and `B` choose a side, `s` swaps, `esc` closes."
    partner: PairedList | None = None

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self.partner is not None and self.partner.scroll_y != new_value:
            self.partner.scroll_to(y=new_value, animate=False, force=True)

    def move_to(self, index: int, *, center: bool = False) -> None:
        super().move_to(index, center=center)
        if self.partner is not None and self.partner.cursor != self.cursor:
            self.partner.move_to(self.cursor, center=center)


class DiffView(Horizontal):
    """Both sides, or one column with `inline`."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.comparison: Comparison | None = None
        self.inline = False

    def compose(self) -> ComposeResult:
        with Pane("", id="side-a"):
            yield PairedList(SIDE_COLUMNS, id="side-a-list")
        with Pane("", id="side-b"):
            yield PairedList(SIDE_COLUMNS, id="side-b-list")

    def on_mount(self) -> None:
        left, right = self.lists
        left.partner, right.partner = right, left

    @property
    def lists(self) -> tuple[PairedList, PairedList]:
        """Left and right."""
        left, right = self.query(PairedList)
        return left, right

    @property
    def panes(self) -> tuple[Pane, ...]:
        """The panes on show."""
        left, right = self.query(Pane)
        return (left,) if self.inline else (left, right)

    @property
    def rows(self) -> LineRows | None:
        """What the left list shows."""
        rows = self.lists[0].rows
        return rows if isinstance(rows, LineRows) else None

    def make_room(self, sides: tuple[str, str], *, inline: bool) -> None:
        """Make room for a comparison of two sides."""
        self.inline = inline
        left, right = self.lists
        left.partner, right.partner = (None, None) if inline else (right, left)
        self.query_one("#side-b").display = not inline
        if self.comparison is None:
            for pane, name, side in zip(self.query(Pane), "AB", sides, strict=True):
                pane.set_heading(f"{name}  {side}")

    def show(self, comparison: Comparison, *, inline: bool, keep_place: bool) -> None:
        """Show a comparison."""
        self.comparison = comparison
        self.make_room((comparison.left, comparison.right), inline=inline)
        left, right = self.lists
        left.show_columns(INLINE_COLUMNS if inline else SIDE_COLUMNS)
        left.show(inline_rows(comparison) if inline else side_rows(comparison, 0), keep_place=keep_place)
        right.show(side_rows(comparison, 1), keep_place=keep_place)
        self._say(comparison)
        rows = self.rows
        if not keep_place and rows is not None and rows.changes:
            left.move_to(rows.changes[0])

    def show_loading(self, what: str) -> None:
        """A comparison is being made; the old one stays."""
        for pane in self.query(Pane):
            pane.show_loading(what, keep=self.comparison is not None)

    def show_failure(self, failure: Failure) -> None:
        """There is nothing to compare."""
        for pane in self.panes:
            pane.show_failure(failure, "A and B choose other sides, esc closes")

    def step(self, by: int) -> bool:
        """Go to the next (1) or previous (-1) change; False when there is none."""
        rows = self.rows
        if rows is None:
            return False
        left = self.lists[0]
        found = bisect_right(rows.changes, left.cursor) if by > 0 else bisect_left(rows.changes, left.cursor) - 1
        if not 0 <= found < len(rows.changes):
            return False
        left.move_to(rows.changes[found], center=True)
        return True

    def as_text(self) -> str:
        """The comparison as text."""
        return as_text(self.comparison) if self.comparison is not None else ""

    def _say(self, comparison: Comparison) -> None:
        diff = comparison.diff
        changed, added, removed = (len(diff.of_kind(kind)) for kind in ("changed", "added", "removed"))
        left, right = self.query(Pane)
        for pane in (left, right):
            pane.show_ready()
        counts = f"~{changed} +{added} -{removed}"
        foot = "no difference" if not diff.differences else ""
        if diff.incomparable:
            foot = f"{len(diff.incomparable)} masked in a run record, not comparable"
        remarks = "; ".join(comparison.remarks)
        if self.inline:
            left.set_heading(f"A  {comparison.left}   B  {comparison.right}", counts, remarks or foot)
        else:
            left.set_heading(f"A  {comparison.left}", f"~{changed} -{removed}", remarks)
            right.set_heading(f"B  {comparison.right}", f"~{changed} +{added}", foot)
