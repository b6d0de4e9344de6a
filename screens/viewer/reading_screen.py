"""The part of the viewer that shows one row of a file: the one that is asked for."""

from __future__ import annotations

from textual import events

from backend.rollouts.rollout_keys import SUPERSEDED
from backend.rollouts.rollout_tasks import TaskGroups, TaskRows
from screens.viewer.conversation import Page, raw_blocks, read_page, repeats_line
from screens.viewer.file_screen import FileScreen
from screens.viewer.listing import outcome_at
from screens.viewer.loading import row_of_line, row_of_task
from screens.viewer.repeat_strip import sign_of, strip_text
from screens.viewer.task_pane import TaskPane
from screens.widgets.background import Failure, Reporter
from screens.widgets.formatting import count, score
from screens.widgets.text_blocks import TextBlock
from screens.widgets.workbench import Target

PAGE_PAUSE = 0.12
"""Seconds between two rollouts that are read while the cursor runs."""
SLOW_ROW = 1 << 20
"""Bytes of a row from which on the border says that it is being read."""
_SQUARES_WIDTH = 24


class ReadingScreen(FileScreen):
    """A file and one of its rows. Verbs are added by the subclass."""

    def __init__(self) -> None:
        super().__init__()
        self._wanted: Target | None = None
        """A place that was asked for and is not found yet."""
        self._wanted_again = False
        """Whether it is only what was on show before the file was read anew."""
        self._groups: TaskGroups | None = None
        self._row: int | None = None
        """The row of the file that is on show, or on its way."""
        self._page: Page | None = None
        self._page_row: int | None = None
        self._raw = False
        self._resting = False
        self._loading_row: int | None = None

    def on_mount(self) -> None:
        self.show_no_file("no file is open")
        (self.conversation.text if self.has_class("-narrow") else self.tasks.rows).focus()

    def on_descendant_focus(self, _event: events.DescendantFocus) -> None:
        """In a narrow terminal the pane with the focus is the one on show."""
        pane = self.current_pane()
        if pane is not None and pane.has_class("-solo"):
            self.bring_forward(pane)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._draw_title)

    # What is asked for

    def show_target(self, target: Target) -> None:
        self._wanted = target if target.line is not None or target.task is not None else None
        self._wanted_again = False
        self.leave_comparison()
        if self.has_class("-narrow") and self._wanted is not None:
            self.show_pane("conversation")
        if self._file is not None and target.path == self._path:
            self._seek()
        else:
            self.open_path(target.path)

    def go_to(self, text: str) -> bool:
        """Go to a line of the rollouts file; False when `text` is no number."""
        if not text.strip().isdecimal():
            return False
        if self._file is None or self._path is None:
            self.workbench.tell("no file is open", "warning")
        else:
            self._wanted, self._wanted_again = Target(self._path, line=int(text)), False
            self._seek()
        return True

    def action_reload(self) -> None:
        if self._path is not None:
            if self._file is not None and self._row is not None:
                self._wanted, self._wanted_again = Target(self._path, line=self._file.rollouts.place(self._row).line), True
            self.open_path(self._path)

    def forget_rows(self) -> None:
        self._row = self._page = self._page_row = self._loading_row = self._groups = None

    def rows_read(self) -> None:
        if self._wanted is not None:
            self._seek()

    # Which rollout is on show

    def on_task_pane_relisted(self, event: TaskPane.Relisted) -> None:
        event.stop()
        self._groups = event.listed.groups
        if self._row is None and self._wanted is None and len(event.listed.listing):
            self.select(event.listed.listing.rows_at(0)[0])
        self._draw_title()
        self.relisted()

    def on_task_pane_chosen(self, event: TaskPane.Chosen) -> None:
        event.stop()
        self.select(event.row)
        if event.open:
            self.show_pane("conversation")

    def select(self, row: int, *, asked_for: bool = False) -> None:
        """Show a row of the file: at once, or when the one before has been on show for a moment.

        A row that was `asked_for` by name is shown although the list leaves it out: the filter is lifted.
        """
        self._row = row
        self.tasks.show_current(row, asked_for=asked_for)
        if not self._resting and row != self._page_row:
            self._load_page(row)

    def _load_page(self, row: int, *, keep_place: bool = False) -> None:
        opened = self._file
        if opened is None:
            return
        file, raw = opened.rollouts, self._raw
        self._loading_row = row
        self._resting = True
        self.workbench.begin_work()
        self.set_timer(PAGE_PAUSE, self._end_rest)
        if file.place(row).size > SLOW_ROW:
            self.conversation.show_loading("reading", keep=self._page is not None)

        def work(_reporter: Reporter) -> tuple[Page, tuple[TextBlock, ...]]:
            page = read_page(file, row)
            return page, raw_blocks(file, row) if raw else page.conversation

        def done(result: tuple[Page, tuple[TextBlock, ...]]) -> None:
            self._show_page(row, *result, raw=raw, keep_place=keep_place)

        self.background.start("page", work, done=done, failed=self._page_failed)

    def _end_rest(self) -> None:
        self._resting = False
        self.workbench.end_work()
        if self._row is not None and self._row != self._loading_row:
            self._load_page(self._row)

    def _show_page(self, row: int, page: Page, blocks: tuple[TextBlock, ...], *, raw: bool, keep_place: bool) -> None:
        self._page, self._page_row = page, row
        self.conversation.show_page(page, blocks, raw=raw, title=self._title(), keep_place=keep_place)
        self._draw_title()
        self.page_shown()

    def _page_failed(self, failure: Failure) -> None:
        self._page = self._page_row = None
        self.conversation.clear_page()
        self.side.show_nothing()
        self.conversation.show_failure(failure, self.how_to_retry)

    def _seek(self) -> None:
        """Look for the place that was asked for; as long as the file is not read to its end it may still come."""
        opened, wanted, progress = self._file, self._wanted, self._progress
        if opened is None or wanted is None or progress is None:
            return
        file = opened.rollouts
        self.conversation.show_loading(f"looking for {_described(wanted)}", keep=self._page is not None)

        def work(_reporter: Reporter) -> int | None:
            if wanted.line is not None:
                return row_of_line(file, wanted.line)
            return None if wanted.task is None else row_of_task(file, wanted.task, wanted.rollout)

        self.background.start(
            "seek", work, done=lambda row: self._sought(row, wanted, progress.complete), failed=self._page_failed
        )

    def _sought(self, row: int | None, wanted: Target, complete: bool) -> None:
        if row is None and not complete:
            return
        self._wanted = None
        if self._page is not None:
            self.conversation.show_ready()
        if row is not None:
            self.select(row, asked_for=not self._wanted_again)
            return
        self.workbench.tell(f"there is no {_described(wanted)} in {self.workbench.shown_path(wanted.path)}", "warning")
        listing = self.tasks.listing
        if self._row is None and listing is not None and len(listing):
            self.select(listing.rows_at(0)[0])

    def relisted(self) -> None:
        """There is another listing."""

    def page_shown(self) -> None:
        """A page has come on screen."""

    def leave_comparison(self) -> bool:
        """Show one rollout; False when there was only one."""
        return False

    def _entry(self) -> TaskRows | None:
        """The task of the present row with its repeats, as far as the file is grouped."""
        group = self._groups.group_of(self._row) if self._groups is not None and self._row is not None else None
        return None if group is None or self._groups is None else self._groups[group]

    # Titles

    def _title(self) -> str:
        page, entry = self._page, self._entry()
        if page is None:
            return "Rollout"
        parts = [f"row {page.place.line}" if page.task is None else str(page.task)]
        if entry is not None and self._page_row in entry.rows and len(entry.rows) > 1:
            parts.append(f"repeat {entry.rows.index(self._page_row) + 1} of {len(entry.rows)}")
        elif page.rollout is not None:
            parts.append(repeat_name(page))
        keys = self._file.rollouts.keys if self._file is not None else None
        if (
            keys is not None
            and self._page_row is not None
            and self._page_row < len(keys)
            and keys.flags[self._page_row] & SUPERSEDED
        ):
            parts.append("superseded by a later row")
        if self.has_class("-narrow"):
            parts.append(outcome_text(page))
        return " · ".join(parts)

    def _draw_title(self) -> None:
        page = self._page
        if page is None or self._page_row != self._row:
            return
        self.conversation.set_heading(title=self._title())
        strip = squares = ""
        entry = self._entry()
        if entry is not None and self._file is not None and self._row in entry.rows and len(entry.rows) > 1:
            current = entry.rows.index(self._row)
            rewards = [self._reward_word(row) for row in entry.rows]
            strip = repeats_line(rewards, current)
            outcomes = [outcome_at(self._file.rollouts.keys, row) for row in entry.rows]
            squares = strip_text(outcomes, current, _SQUARES_WIDTH).strip() if self.has_class("-narrow") else ""
        self.conversation.say_beside(squares)
        self.side.show_page(page, strip)

    def _reward_word(self, row: int) -> str:
        assert self._file is not None
        reward = self._file.rollouts.keys.reward(row)
        return sign_of(outcome_at(self._file.rollouts.keys, row)) if reward is None else f"{reward:g}"


def repeat_name(page: Page) -> str:
    """A repeat as people count them."""
    return f"repeat {page.rollout + 1}" if isinstance(page.rollout, int) else f"repeat {page.rollout}"


def outcome_text(page: Page) -> str:
    """What came of a rollout, in a word or two."""
    return page.failure if page.failure and page.reward is None else f"reward {score(page.reward)}"


def _described(target: Target) -> str:
    if target.line is not None:
        return f"line {count(target.line)}"
    return f"task {target.task}" + (f", repeat {target.rollout + 1}" if target.rollout is not None else "")
