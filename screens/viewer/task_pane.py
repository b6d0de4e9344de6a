"""The left pane of the viewer: tasks with their repeats, or single rollouts, filtered and sorted."""

from __future__ import annotations

from dataclasses import replace

from textual import events
from textual.app import ComposeResult
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, Static

from backend.errors import GymError
from backend.rollouts.rollout_query import Query, Sort, parse_query
from screens.viewer.list_titles import count_texts, foot_text, titles
from screens.viewer.listing import ROLLOUT_COLUMNS, TASK_COLUMNS, Listing
from screens.viewer.loading import Listed, OpenFile, Order, Progress, make_listing
from screens.viewer.repeat_strip import legend
from screens.viewer.task_list import TaskList
from screens.widgets import glyphs
from screens.widgets.background import Background, Failure, Reported, Reporter
from screens.widgets.filter_box import FilterBox
from screens.widgets.pane import Pane, PaneState
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
_AROUND_LEGEND = 4
"""Cells of the pane's width that its border and the legend's padding take."""
_NO_FILE = "Rollouts"
"""What the border says when there is none."""


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
        super().__init__(_NO_FILE, id=id, classes=classes)
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
        self._given_up: Progress | None = None
        """What was read when a listing failed."""
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
        """Begin with another file, or without one."""
        self._background.stop_all()
        self.file, self._shown_name, self.current = file, name, None
        self._progress = self._listed = self.listing = None
        self._listing_begun, self._overdue, self._searched, self._given_up = False, False, "", None
        self._rest_for(0)
        self.rows.show(NoRows(), keep_place=False)
        self.set_heading(name or _NO_FILE, "", "")

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

    @property
    def is_behind(self) -> bool:
        """Whether rows may come that are not listed yet: the file is not read to its end, or has grown since."""
        progress, listed = self._progress, self._listed
        if self.file is None or (progress is not None and progress == self._given_up):
            return False
        return progress is None or not progress.complete or listed is None or listed.progress != progress

    @property
    def is_in_file_order(self) -> bool:
        """Whether rows that are read later come at the end of the list."""
        return self._listed is not None and not self._listed.order.by_task and self._listed.sort is None

    def hurry(self) -> None:
        """Somebody waits for rows that are not listed yet: do without the rest before the next listing."""
        if self.is_behind:
            self._overdue = True
            self._relist_if_due()

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
        file, progress, before = self.file.rollouts, self._progress, self._listed.tally if self._listed is not None else None
        order = replace(self.order, sort=None if self._sort == Sort("file") else self._sort)
        self._listing_begun, self._overdue = True, False

        def work(reporter: Reporter) -> Listed:
            return make_listing(file, order, progress, reporter, before)

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
        self._listing_begun, self._given_up = False, self._progress
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
        self._complaint = text
        self._draw_borders()
        self._draw_legend()

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

    def show_ready(self) -> None:
        super().show_ready()
        self._draw_borders()

    def show_stale(self, word: str) -> None:
        super().show_stale(word)
        self._draw_borders()

    def _draw_borders(self) -> None:
        progress, listed = self._progress, self._listed
        if progress is None:
            return
        name, right = self._shown_name, ""
        if listed is not None:
            is_stale = self.state is PaneState.STALE  # the border says why, which takes room
            name, right = titles(name, count_texts(listed, brief=is_stale), self.outer_size.width - 6)
        foot = "the list is as it was before" if self._complaint else ""
        self.set_heading(name, right, foot or foot_text(progress, listed, self._searched, self._problem_word))
        self._draw_legend()

    def _draw_legend(self) -> None:
        """What the squares mean, or what is wrong with the filter."""
        if self._complaint:
            shown = safe(self._complaint, "$text-error")
        else:
            tally = self._listed.tally if self._listed is not None else None
            width = self.outer_size.width - _AROUND_LEGEND
            shown = safe(
                legend(width, more=tally.has_more_than_one, negative=tally.has_negative, unscored=tally.has_unscored)
                if tally is not None
                else legend(width)
            )
        static = self.query_one("#task-legend", Static)
        if static.content != shown:
            static.update(shown)

    def on_resize(self, _event: events.Resize) -> None:
        self._draw_borders()

    def on_reported(self, message: Reported) -> None:
        self._background.receive(message)

    def on_unmount(self) -> None:
        self._background.stop_all()
