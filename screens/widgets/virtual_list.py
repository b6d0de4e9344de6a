"""A list of any length: only the rows on screen are asked for, and no row is a widget."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from backend.io.text import clean_line
from screens.widgets import glyphs
from screens.widgets.columns import Column, Placed, place
from screens.widgets.component_style import component_style, partial_component_style
from screens.widgets.key_table import bindings
from screens.widgets.text_gate import LONGEST_LINE, fit

STYLES = ("plain", "good", "bad", "warn", "muted", "strong", "accent")


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: untrusted text, one of `STYLES`, and the positions of letters to be lit."""

    text: str
    style: str = "plain"
    lit: tuple[int, ...] = ()
    indent: int = 0
    """Blanks in front of the text, for trees."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row, cells in the order of the columns; `sign` stands in front of it, in `sign_style`."""

    cells: Sequence[Cell | str]
    sign: str = ""
    sign_style: str = "plain"
    muted: bool = False
    heading: Cell | None = None
    """Drawn over all columns, in place of the cells."""
    rest: Cell | None = None
    """Drawn over all columns after the cells that there are."""


class Rows(Protocol):
    """Where a list gets its rows. It is asked on the loop, for visible rows only, and must answer at once."""

    def __len__(self) -> int: ...

    def row(self, index: int) -> Row:
        """One row."""

    def key(self, index: int) -> Hashable:
        """What makes the row itself, so that the cursor stays on it when rows come and go."""

    def index_of(self, key: Hashable) -> int | None:
        """Where a key is now; None when it is gone."""


class NoRows:
    """Nothing to show."""

    def __len__(self) -> int:
        return 0

    def row(self, index: int) -> Row:
        raise IndexError(index)

    def key(self, index: int) -> Hashable:
        raise IndexError(index)

    def index_of(self, key: Hashable) -> int | None:
        return None


class VirtualList(ScrollView, can_focus=True):
    """Rows in columns with a cursor, marks and lit letters.

    `show` gives it rows; cursor, marks and scroll offset follow the keys of the rows. With `newest_first`, rows that arrive above do
    not move what is on screen unless the cursor is at the top; `arrived` counts them.
    """

    BINDINGS = bindings("list")
    HELP = "Rows: `j` `k` and the arrows move, `enter` opens, `space` marks. A click moves the cursor, a second one opens."
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "list--header", "list--cursor", "list--lit", "list--mark", *(f"list--{style}" for style in STYLES),
    }  # fmt: skip
    DEFAULT_CSS = """
    VirtualList {
        height: 1fr;
        background: transparent;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0;
        & > .list--header { color: $text-muted; text-style: bold; }
        & > .list--cursor { background: $foreground 12%; }
        & > .list--lit { color: $text-accent; text-style: bold underline; }
        & > .list--mark { color: $text-accent; text-style: bold; }
        & > .list--plain { color: $foreground; }
        & > .list--good { color: $text-success; }
        & > .list--bad { color: $text-error; }
        & > .list--warn { color: $text-warning; }
        & > .list--muted { color: $text-muted; }
        & > .list--strong { color: $foreground; text-style: bold; }
        & > .list--accent { color: $text-accent; }
        &:focus > .list--cursor { background: $block-cursor-background; color: $block-cursor-foreground; text-style: bold; }
    }
    """

    class Highlighted(Message):
        """The cursor is on another row, or on the same one with other content."""

        def __init__(self, sender: VirtualList, index: int) -> None:
            super().__init__()
            self.list = sender
            self.index = index

        @property
        def control(self) -> VirtualList:
            return self.list

    class Opened(Highlighted):
        """A row was opened."""

    class HeaderClicked(Message):
        """A column's title was clicked."""

        def __init__(self, sender: VirtualList, column: str) -> None:
            super().__init__()
            self.list = sender
            self.column = column

        @property
        def control(self) -> VirtualList:
            return self.list

    class MarksChanged(Message):
        """A row was marked, or a mark taken away."""

        def __init__(self, sender: VirtualList) -> None:
            super().__init__()
            self.list = sender

        @property
        def control(self) -> VirtualList:
            return self.list

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        id: str | None = None,
        header: bool = True,
        markable: bool = False,
        newest_first: bool = False,
    ) -> None:
        super().__init__(id=id)
        self.columns = tuple(columns)
        self.rows: Rows = NoRows()
        self.cursor = 0
        self.marks: set[Hashable] = set()
        self.arrived = 0
        self._header = header
        self._markable = markable
        self._newest_first = newest_first
        self._placed: list[Placed] = []
        self._placed_for: tuple[object, ...] = ()
        self._sorted_by: tuple[str, bool] | None = None

    @property
    def cursor_key(self) -> Hashable | None:
        """The key of the row under the cursor."""
        return self.rows.key(self.cursor) if 0 <= self.cursor < len(self.rows) else None

    def show(self, rows: Rows, *, keep_place: bool = True) -> None:
        """Show other rows, or the same source with other content. With `keep_place` the cursor stays on its key."""
        key, before, offset = self.cursor_key, self.cursor, self.scroll_offset.y
        at_top = before == 0 and offset == 0
        old_length = len(self.rows)
        self.rows = rows
        target = 0
        if keep_place and key is not None and not (self._newest_first and at_top):
            found = rows.index_of(key)
            target = min(before, max(0, len(rows) - 1)) if found is None else found
        self.cursor = target
        self._set_size()
        if not keep_place:
            self.scroll_to(y=0, animate=False, force=True)
            self.arrived = 0
        elif self._newest_first and at_top:
            self.arrived = 0
        else:
            moved = target - before
            if self._newest_first and moved > 0:
                self.arrived += moved
            # At the very top, rows that arrive above the cursor come into view instead of pushing the list out of it.
            stays = offset == 0 and target < self._row_space and not self._newest_first
            self.scroll_to(y=0 if stays else max(0, offset + moved), animate=False, force=True)
        self.refresh()
        if self.cursor_key != key or (old_length == 0 and len(rows)):
            self.post_message(self.Highlighted(self, self.cursor))

    def show_columns(self, columns: Sequence[Column]) -> None:
        """Change the columns."""
        self.columns = tuple(columns)
        self._set_size()
        self.refresh()

    def show_order(self, column: str | None, *, descending: bool = False) -> None:
        """Show in the header by which column the rows are sorted."""
        self._sorted_by = (column, descending) if column else None
        self.refresh()

    def move_to(self, index: int, *, center: bool = False) -> None:
        """Put the cursor on a row and make it visible."""
        if not len(self.rows):
            return
        index = max(0, min(index, len(self.rows) - 1))
        old = self.cursor
        self.cursor = index
        if index == 0:
            self.arrived = 0
        visible = self._row_space
        top = self.scroll_offset.y
        if index < top or index >= top + visible:
            wanted = index - visible // 2 if center else (index if index < top else index - visible + 1)
            self.scroll_to(y=max(0, wanted), animate=False, force=True)
        self._refresh_row(old)
        self._refresh_row(index)
        if old != index:
            self.post_message(self.Highlighted(self, index))

    def move_to_key(self, key: Hashable, *, center: bool = True) -> bool:
        """Put the cursor on the row with a key; False when there is none."""
        index = self.rows.index_of(key)
        if index is None:
            return False
        self.move_to(index, center=center)
        return True

    def visible_text(self) -> list[str]:
        """The lines as they are drawn, without styles: for tests and for writing to a file."""
        return [self.render_line(y).text.rstrip() for y in range(self.size.height)]

    @property
    def _row_space(self) -> int:
        return max(1, self.size.height - self._header)

    def _set_size(self) -> None:
        size = Size(self.size.width, len(self.rows) + self._header)
        if size != self.virtual_size:
            # Assigning it would lay the whole screen out anew; only the scrollbar needs to know.
            self.set_reactive(VirtualList.virtual_size, size)
            self._scroll_update(size)

    def on_resize(self, _event: events.Resize) -> None:
        self._set_size()
        top = self.scroll_offset.y
        if self.cursor >= top + self._row_space:
            self.scroll_to(y=self.cursor - self._row_space + 1, animate=False, force=True)

    def _refresh_row(self, index: int) -> None:
        y = index - self.scroll_offset.y + self._header
        self.refresh(Region(0, y, self.size.width, 1))

    def _place_columns(self) -> None:
        """Fit the columns into the present width, when it is another one."""
        wanted = (self.columns, self.scrollable_content_region.width or self.size.width)
        if wanted != self._placed_for:
            self._placed_for = wanted
            self._placed = place(*wanted)

    def render_line(self, y: int) -> Strip:
        """One line of the screen: the header, a row, or nothing."""
        width = self.size.width
        self._place_columns()
        base = self.get_visual_style().rich_style
        if self._header and y == 0:
            return self._header_strip(width, base)
        index = y - self._header + self.scroll_offset.y
        if not 0 <= index < len(self.rows):
            return Strip.blank(width, base)
        return self._row_strip(index, width, base)

    def _header_strip(self, width: int, base: Style) -> Strip:
        style = base + component_style(self, "list--header")
        text = " " * (self._placed[0].left if self._placed else 0)
        for number, entry in enumerate(self._placed):
            title = entry.column.title
            if self._sorted_by and self._sorted_by[0] == entry.column.name and not glyphs.is_ascii():
                title += "▼" if self._sorted_by[1] else "▲"
            text += fit(title, entry.width, right=entry.column.right)
            text += "  " if number < len(self._placed) - 1 else ""
        return Strip([Segment(fit(text, width), style)], width)

    def _row_strip(self, index: int, width: int, base: Style) -> Strip:
        row = self.rows.row(index)
        here = index == self.cursor
        cursor = component_style(self, "list--cursor") if here else Style.null()
        under = cursor if self.has_focus else Style(bgcolor=cursor.bgcolor)
        signs = glyphs.current()
        marked = bool(self.marks) and self.rows.key(index) in self.marks

        def styled(name: str) -> Style:
            if here and self.has_focus:  # the cursor's own colours, or a text of a theme's colour could vanish on it
                return base + under
            component = component_style(self, f"list--{'muted' if row.muted and name == 'plain' else name}")
            return base + component + under

        first = signs.mark if marked else (clean_line(row.sign, 2)[:1] or (signs.cursor if here else " "))
        segments = [Segment(first + " ", styled("mark" if marked else row.sign_style))]
        at = 2
        if row.heading is not None:
            room = max(0, (self.scrollable_content_region.width or width) - at)
            text = fit(" " * row.heading.indent + clean_line(row.heading.text, LONGEST_LINE), room)
            return Strip([*segments, Segment(text, styled(row.heading.style))]).adjust_cell_length(width, base + under)
        for entry in self._placed:
            if entry.left > at:
                segments.append(Segment(" " * (entry.left - at), base + under))
            if row.rest is not None and entry.index >= len(row.cells):
                room = max(0, (self.scrollable_content_region.width or width) - entry.left)
                text = fit(clean_line(row.rest.text, LONGEST_LINE), room)
                segments.append(Segment(text, styled(row.rest.style)))
                break
            cell = row.cells[entry.index] if entry.index < len(row.cells) else ""
            cell = Cell(cell) if isinstance(cell, str) else cell
            segments += self._cell_segments(cell, entry, styled(cell.style), here)
            at = entry.left + entry.width
        strip = Strip(segments, None)
        return strip.adjust_cell_length(width, base + under)

    def _cell_segments(self, cell: Cell, entry: Placed, style: Style, here: bool) -> list[Segment]:
        text = " " * cell.indent + clean_line(cell.text, LONGEST_LINE)
        fitted = fit(text, entry.width, right=entry.column.right, keep_end=entry.column.keep_end)
        if not cell.lit or text[cell.indent :] != cell.text:
            return [Segment(fitted, style)]
        shift = len(fitted) - len(text) if entry.column.right or (entry.column.keep_end and not fitted.startswith(text)) else 0
        lit_style = style + partial_component_style(self, "list--lit") if not here else style + Style(underline=True)
        segments, begin = [], 0
        for position in cell.lit:
            at = position + cell.indent + shift
            if position < len(cell.text) and begin <= at < len(fitted) and fitted[at] == cell.text[position]:
                segments += [Segment(fitted[begin:at], style), Segment(fitted[at], lit_style)]
                begin = at + 1
        segments.append(Segment(fitted[begin:], style))
        # Letters that are drawn as one sign are wider apart than together.
        return segments if sum(segment.cell_length for segment in segments) == entry.width else [Segment(fitted, style)]

    def action_cursor_down(self) -> None:
        self.move_to(self.cursor + 1)

    def action_cursor_up(self) -> None:
        self.move_to(self.cursor - 1)

    def action_page_down(self) -> None:
        self.move_to(self.cursor + self._row_space)

    def action_page_up(self) -> None:
        self.move_to(self.cursor - self._row_space)

    def action_first(self) -> None:
        self.move_to(0)

    def action_last(self) -> None:
        self.move_to(len(self.rows) - 1)

    def action_open(self) -> None:
        if len(self.rows):
            self.post_message(self.Opened(self, self.cursor))

    def action_mark(self) -> None:
        key = self.cursor_key
        if not self._markable or key is None:
            return
        self.marks ^= {key}
        self.move_to(self.cursor + 1)
        self.refresh()
        self.post_message(self.MarksChanged(self))

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor; one on the row under the cursor, or a double click, opens it."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if self._header and offset.y == 0:
            for entry in self._placed:
                if entry.left <= offset.x < entry.left + entry.width + 1:
                    self.post_message(self.HeaderClicked(self, entry.column.name))
            return
        index = offset.y - self._header + self.scroll_offset.y
        if not 0 <= index < len(self.rows):
            return
        if index == self.cursor or event.chain == 2:
            self.move_to(index)
            self.action_open()
        else:
            self.move_to(index)
