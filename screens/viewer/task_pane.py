"""The left pane of the viewer: tasks with their repeats, or single rollouts, filtered and sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer
from textual.widgets import Input, Static

from backend.errors import GymError
from backend.io.text import clean_line
from backend.rollouts.rollout_query import Query, Sort, parse_query
from screens.viewer.listing import ROLLOUT_COLUMNS, STRIP_COLUMN, TASK_COLUMNS, Listing, TaskListing
from screens.viewer.loading import Listed, OpenFile, Order, Progress, make_listing
from screens.viewer.repeat_strip import legend, repeat_at
from screens.widgets import glyphs
from screens.widgets.background import Background, Failure, Reported, Reporter
from screens.widgets.filter_box import FilterBox
from screens.widgets.formatting import count
from screens.widgets.pane import Pane
from screens.widgets.text_gate import safe
from screens.widgets.virtual_list import NoRows, VirtualList
from screens.widgets.workbench import workbench_of

SORTS: tuple[str, ...] = ("file", "reward", "tokens", "size")
"""What `s` goes through."""
_REST_FACTOR = 10
"""A listing of a growing file is made again after so many times as long as it took,"""
_LONGEST_REST = 15.0
_NO_REST = 0.05
"""unless it took less than this."""
_SHORTEST_NAME = 8
"""Cells of the file's name below which the border rather goes without it."""


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


class TaskPane(Pane):
    """What there is in a file. Says which row of it somebody has chosen; which one is on show it is told.

    What is on show follows the list: when a filter hides it, the row under the cursor is chosen in its place.
    """

    class Chosen(Message):
        """A rollout should be shown; `open` when it was asked for by name and not only passed."""

        def __init__(self, row: int, open: bool) -> None:
            super().__init__()
            self.row = row
            self.open = open

    class Relisted(Message):
        """There is another listing."""

        def __init__(self, listed: Listed) -> None:
            super().__init__()
            self.listed = listed

    def __init__(self, *, id: str, classes: str) -> None:
        super().__init__("Rollouts", id=id, classes=classes)
        self.file: OpenFile | None = None
        self.listing: Listing | None = None
        self.order = Order()
        self.current: int | None = None
        self._asked_for = False
        """Whether what is on show was asked for by name: the filter gives way to it, unless somebody has typed one since."""
        self._background = Background[Listed](self)
        self._progress: Progress | None = None
        self._listed: Listed | None = None
        self._sort = Sort("file")
        self._listing_begun = False
        self._overdue = False
        self._rest: Timer | None = None
        self._shown_name = ""
        self._complaint = ""
        self._searched = ""
        self._problem_word = ""

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield FilterBox("reward<1 task:3 fail:timeout end:length sort:-tokens word", id="task-filter")
        yield TaskList(TASK_COLUMNS, id="task-list")
        yield Static(legend(), id="task-legend", markup=False)

    @property
    def rows(self) -> TaskList:
        """The list itself."""
        return self.query_one(TaskList)

    @property
    def box(self) -> FilterBox:
        return self.query_one(FilterBox)

    def open_file(self, file: OpenFile | None, name: str) -> None:
        """Begin with another file."""
        self._background.stop_all()
        self.file, self._shown_name, self.current = file, name, None
        self._progress = self._listed = self.listing = None
        self._listing_begun, self._overdue, self._searched = False, False, ""
        self._rest_for(0)
        self.rows.show(NoRows(), keep_place=False)
        self.set_heading(name, "", "")

    def read_so_far(self, progress: Progress, *, final: bool = False) -> None:
        """The file was read further: list what there is, at once the first time and when all is read, otherwise when it is time."""
        before = self._progress
        if before is not None and before.generation != progress.generation:
            self._listed, self.listing, self.current = None, None, None
        self._progress = progress
        self._overdue = self._overdue or final or self._listed is None
        self._relist_if_due()
        self._draw_borders()

    def _relist_if_due(self) -> None:
        outdated = self._listed is None or self._listed.progress != self._progress
        if not self._listing_begun and outdated and (self._overdue or self._rest is None):
            self.relist()

    def _rest_for(self, seconds: float) -> None:
        """Leave a growing file alone for a while, so that listing it takes a small part of the time."""
        if self._rest is not None:
            self._rest.stop()
            self._rest = None
        if seconds > _NO_REST:
            self._rest = self.set_timer(min(seconds * _REST_FACTOR, _LONGEST_REST), self._end_rest)

    def _end_rest(self) -> None:
        self._rest = None
        self._relist_if_due()

    def relist(self) -> None:
        """Make the listing anew."""
        if self.file is None or self._progress is None:
            return
        file, progress = self.file.rollouts, self._progress
        order = replace(self.order, sort=None if self._sort == Sort("file") else self._sort)
        self._listing_begun, self._overdue = True, False

        def work(reporter: Reporter) -> Listed:
            return make_listing(file, order, progress, reporter)

        self._background.start("listing", work, done=self._show_listed, failed=self._listing_failed, partly=self._searched_so_far)

    def _show_listed(self, listed: Listed) -> None:
        self._listing_begun, self._searched = False, ""
        if self._progress is None or listed.progress.generation != self._progress.generation:
            self._overdue = True
            self._relist_if_due()
            return
        before = self._listed
        self._listed, self.listing = listed, listed.listing
        listed.listing.current = self.current
        if before is None or before.order.by_task != listed.order.by_task:
            self.rows.show_columns(TASK_COLUMNS if listed.order.by_task else ROLLOUT_COLUMNS)
        sort = listed.sort
        self.rows.show_order(sort.field if sort else None, descending=bool(sort and sort.descending))
        is_hidden = self.current is not None and self.hides(self.current)
        with self.prevent(VirtualList.Highlighted):
            self.rows.show(listed.listing, keep_place=not is_hidden or before is None or before.order == listed.order)
            if is_hidden:
                self._go_near_current(listed)
            elif self.current is not None and listed.listing.index_of(self.current) != self.rows.cursor:
                self.follow_current()
        if is_hidden and self._asked_for:
            self.lift_filter()
        elif is_hidden:
            self._choose(self.rows.cursor, open=False)
        self._draw_borders()
        self.post_message(self.Relisted(listed))
        self._rest_for(listed.seconds)
        self._relist_if_due()

    def _listing_failed(self, failure: Failure) -> None:
        self._listing_begun = False
        self._complain(f"{glyphs.current().failed} {failure.message}")

    def _searched_so_far(self, share: float) -> None:
        self._searched = f"searching {share:.0%}"
        self._draw_borders()

    @property
    def is_narrowed(self) -> bool:
        """Whether the list leaves rows out."""
        return self._listed is not None and self._listed.is_narrowed

    @property
    def noun(self) -> str:
        """What there are so many of in the list."""
        by_task = self.order.by_task if self._listed is None else self._listed.order.by_task
        return "tasks" if by_task else "rollouts"

    def hides(self, row: int) -> bool:
        """Whether the list leaves a row out; one that was read after the list was made is only late."""
        listed = self._listed
        return listed is not None and row not in listed.listing and row < listed.progress.scanned

    def lift_filter(self) -> None:
        """List everything again, and say so."""
        with self.prevent(Input.Changed):
            self.box.clear_and_close()
        self._complain("")
        self.order = replace(self.order, query=Query())
        self.relist()
        workbench_of(self).tell("the filter hides this rollout and is lifted")

    def _go_near_current(self, listed: Listed) -> None:
        """Put the cursor on another repeat of the task on show, if the list has one."""
        group = listed.groups.group_of(self.current) if self.current is not None else None
        near = next((row for row in listed.groups[group].rows if row in listed.listing), None) if group is not None else None
        if near is not None:
            self.rows.move_to_key(near)

    def show_current(self, row: int | None, *, asked_for: bool = False) -> None:
        """Another rollout is on show; when it was `asked_for` by name, a filter that hides it is lifted."""
        self.current, self._asked_for = row, asked_for
        if asked_for and row is not None and self.hides(row):
            self.lift_filter()
        if self.listing is not None:
            self.listing.current = row
        self.follow_current()
        self.rows.refresh()

    def follow_current(self) -> None:
        """Put the cursor on what is on show, if the list has it."""
        if self.current is not None:
            with self.prevent(VirtualList.Highlighted):
                self.rows.move_to_key(self.current)

    def count_problems_as(self, word: str) -> None:
        """What the foot says about problems."""
        self._problem_word = word
        self._draw_borders()

    # What the user asks for

    def toggle_group(self) -> None:
        """Tasks, or single rollouts."""
        self.order = replace(self.order, by_task=not self.order.by_task)
        self.relist()

    def next_sort(self) -> None:
        """The next order."""
        self._sort = Sort(SORTS[(SORTS.index(self._sort.field) + 1) % len(SORTS)])
        self.relist()

    def reverse(self) -> None:
        """The other way round."""
        self._sort = Sort(self._sort.field, not self._sort.descending)
        self.relist()

    def on_filter_box_filtered(self, event: FilterBox.Filtered) -> None:
        event.stop()
        try:
            query = parse_query(event.text)
        except GymError as error:
            self._complain(f"{glyphs.current().warning} {error.message}" + (f"\n{error.hint}" if error.hint else ""))
            return
        self._complain("")
        if query != self.order.query:
            self.order = replace(self.order, query=query)
            self._asked_for = False
            self.relist()
        self._draw_borders()

    def _complain(self, text: str) -> None:
        """Say what is wrong with the filter, in the place of the legend."""
        if text != self._complaint:
            self._complaint = text
            self.query_one("#task-legend", Static).update(safe(text, "$text-error") if text else safe(legend()))
        self._draw_borders()

    def on_filter_box_left(self, event: FilterBox.Left) -> None:
        event.stop()
        self.rows.focus()

    def on_virtual_list_header_clicked(self, event: VirtualList.HeaderClicked) -> None:
        event.stop()
        if event.column in SORTS:
            self._sort = Sort(event.column, self._sort == Sort(event.column, False))
            self.relist()

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        event.stop()
        self._choose(event.index, open=False)

    def on_virtual_list_opened(self, event: VirtualList.Opened) -> None:
        event.stop()
        self._choose(event.index, open=True)

    def on_task_list_repeat_clicked(self, event: TaskList.RepeatClicked) -> None:
        event.stop()
        self.post_message(self.Chosen(event.row, False))

    def _choose(self, index: int, *, open: bool) -> None:
        """An entry stands for the repeat that is on show, else for its first."""
        if self.listing is None or not 0 <= index < len(self.listing):
            return
        rows = self.listing.rows_at(index)
        row = self.current if self.current in rows else rows[0]
        assert row is not None
        if open or row != self.current:
            self.post_message(self.Chosen(row, open))

    # The border

    def _draw_borders(self) -> None:
        progress, listed = self._progress, self._listed
        if progress is None:
            return
        name, right = self._shown_name, ""
        if listed is not None:
            shown, total = len(listed.listing), listed.listing.total
            of = f"{count(shown)} of {count(total)}" if listed.is_narrowed else count(total)
            sort = listed.sort
            by = f" by {sort.field}" if sort is not None and sort.field not in ("reward", "tokens") else ""
            noun = self.noun.removesuffix("s" if total == 1 else "")
            name, right = _titles(self._shown_name, (f"{of} {noun}{by}", f"{of}{by}"), self.outer_size.width - 6)
        self.set_heading(name, right, self._foot_text(progress, listed))

    def _foot_text(self, progress: Progress, listed: Listed | None) -> str:
        if self._complaint:
            return "the list is as it was before"
        if progress.indexed < 1:
            return f"indexing {progress.indexed:.0%}"
        if not progress.complete:
            return f"reading {progress.scanned / max(1, progress.rows):.0%}"
        if self._searched:
            return self._searched
        if listed is not None and listed.is_narrowed and not len(listed.listing):
            return "nothing matches; esc clears"
        torn = f", {count(progress.torn_bytes)} bytes unfinished" if progress.torn_bytes else ""
        return self._problem_word or f"{count(progress.rows)} rows{torn}"

    def on_resize(self, _event: events.Resize) -> None:
        self._draw_borders()

    def on_reported(self, message: Reported) -> None:
        self._background.receive(message)

    def on_unmount(self) -> None:
        self._background.stop_all()


def _titles(name: str, counts: Sequence[str], width: int) -> tuple[str, str]:
    """The name and the first of `counts`, the longest one, as far as they fit into `width` cells: the name goes before the count is shortened."""
    room = width - cell_len(counts[0]) - 2
    if width <= 0 or room >= min(cell_len(clean_line(name)), _SHORTEST_NAME):
        return name, counts[0]
    return "", next((text for text in counts if cell_len(text) <= width), counts[-1])
