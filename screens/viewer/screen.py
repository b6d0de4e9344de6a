"""The viewer: any rollout of a file of any size, its reward and facts, and two repeats side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from backend.errors import GymError
from backend.io.text import clean_line
from screens.viewer.conversation import Page, json_text, read_page
from screens.viewer.conversation_pane import ConversationPane
from screens.viewer.diff_view import DiffSide
from screens.viewer.loading import Searched, search_all, search_listed
from screens.viewer.pager import run_pager, write_record
from screens.viewer.reading_screen import outcome_text, repeat_name
from screens.viewer.stepping_screen import SteppingScreen
from screens.widgets.background import Failure, Reporter
from screens.widgets.formatting import count
from screens.widgets.key_table import KEYS, bindings
from screens.widgets.pane import Pane
from screens.widgets.text_blocks import plain_text
from screens.widgets.virtual_text import VirtualText

_DIFF_KEYS = ("diff.next", "diff.swap", "diff.fold_equal", "viewer.diff", "screen.back")
_DIFF_ACTIONS = frozenset(key.action for key in KEYS if key.scope == "diff")


class ViewerScreen(SteppingScreen):
    """Reads; starts nothing."""

    SCREEN_NAME = "viewer"
    BINDINGS = [*bindings("diff"), *bindings("viewer")]  # noqa: RUF012 - the type is Textual's
    KEY_BAR = ("viewer.next", "viewer.next_problem", "viewer.next_repeat", "viewer.diff", "viewer.raw", "viewer.search")

    def __init__(self) -> None:
        super().__init__()
        self._other: int | None = None
        """The row beside which the present one is compared."""
        self._copied_from: object = None
        self._copies = 0
        self._sought_hit: tuple[int, str] | None = None
        """The row that is on its way because a text was found in it, and the text."""
        self._hits_to_go = 0
        """Steps asked for while a hit is looked for or its row on its way; below 0 back."""

    @property
    def is_comparing(self) -> bool:
        """Whether two repeats are on show."""
        return self.diff.display

    def panes(self) -> list[Pane]:
        return list(self.diff.query(Pane)) if self.is_comparing else super().panes()

    def key_bar(self) -> tuple[str, ...]:
        return _DIFF_KEYS if self.is_comparing else self.KEY_BAR

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While two repeats are compared, the keys of the diff come before those of the viewer that are the same."""
        return self.is_comparing if action in _DIFF_ACTIONS else super().check_action(action, parameters)

    def forget_rows(self) -> None:
        super().forget_rows()
        self._sought_hit, self._hits_to_go = None, 0

    def page_shown(self) -> None:
        super().page_shown()
        if self._sought_hit is None or self._page_row != self._row:
            return
        row, pattern = self._sought_hit
        self._sought_hit = None
        if row == self._row:
            self._go_to_hit(pattern)
        else:  # somebody has gone elsewhere meanwhile
            self._hits_to_go = 0

    def _page_failed(self, failure: Failure) -> None:
        self._sought_hit, self._hits_to_go = None, 0
        super()._page_failed(failure)

    def close_innermost(self) -> bool:
        if super().close_innermost() or self.leave_comparison():
            return True
        box = self.conversation.box
        for opened in (box, self.tasks.box):
            if opened.value:
                self.background.stop("search")
                self._hits_to_go = 0
                self.conversation.say_search("")
                return opened.clear_and_close()
        return False

    # The list

    def action_group(self) -> None:
        self.tasks.toggle_group()

    def action_sort(self) -> None:
        self.tasks.next_sort()

    def action_reverse(self) -> None:
        self.tasks.reverse()

    # The conversation

    def action_markdown(self) -> None:
        text = self.conversation.text
        text.markdown = not text.markdown
        self.workbench.tell("markdown is drawn" if text.markdown else "markdown is shown as written")

    def action_raw(self) -> None:
        self._raw = not self._raw
        if self._row is not None and self._page is not None:
            self._load_page(self._row)

    def action_fold_all(self) -> None:
        self.conversation.text.action_fold_all()

    def action_search(self) -> None:
        if self.current_pane() is self.tasks:
            self.tasks.box.open()
        elif not self.is_comparing:
            self.show_pane("conversation")
            self.conversation.open_search(everywhere=False)

    def action_search_all(self) -> None:
        if self._file is not None and not self.is_comparing:
            self.show_pane("conversation")
            self.conversation.open_search(everywhere=True, among="listed" if self.tasks.is_narrowed else "all")

    def on_conversation_pane_search_all(self, event: ConversationPane.SearchAll) -> None:
        event.stop()
        self._hits_to_go = 0
        self._search_from(self._row or 0, 1)

    def action_next_hit(self) -> None:
        self._step_hit(1)

    def action_previous_hit(self) -> None:
        self._step_hit(-1)

    def _step_hit(self, by: int) -> None:
        if self._sought_hit is not None or self.background.works_on("search"):
            self._hits_to_go += by
            return
        pane = self.conversation
        number, total = pane.text.hit_position
        further = number < total if by > 0 else number > 1
        if pane.everywhere and pane.pattern and not further and self._row is not None:
            self._search_from(self._row + by, by)
        elif not (pane.text.next_hit() if by > 0 else pane.text.previous_hit()):
            self.workbench.tell("nothing is searched for" if not pane.pattern else f"{pane.pattern} was not found", "warning")

    def _search_from(self, start: int, by: int) -> None:
        opened, pattern, listing = self._file, self.conversation.pattern, self.tasks.listing
        if opened is None:
            return
        file = opened.rollouts
        total = max(1, len(file))
        among, narrowed = f"{count(total)} rows", listing if self.tasks.is_narrowed else None
        if narrowed is not None:
            among = f"the {self.tasks.noun} listed: {count(len(narrowed))}"

        def say(searched: Searched) -> None:
            self.conversation.say_search(f"searching {searched.looked_at / total:.0%} of {among}; esc gives up")

        def done(searched: Searched) -> None:
            if searched.row is None:
                self._hits_to_go = 0
                self.conversation.say_search(f"not found in {among}")
                return
            if self.tasks.hides(searched.row):  # another filter has come since
                self._search_from(searched.row, by)
                return
            self.conversation.say_search("")
            if searched.row == self._page_row:
                self._go_to_hit(pattern)
            else:
                self._sought_hit = searched.row, pattern
                self.select(searched.row)

        def work(reporter: Reporter) -> Searched:
            if narrowed is not None:
                return search_listed(file, narrowed, pattern, start, by, reporter)
            return search_all(file, pattern, start, by, reporter)

        self.background.start("search", work, done=done, failed=self.tell_failure, partly=say)

    def _go_to_hit(self, pattern: str) -> None:
        text = self.conversation.text
        text.search(pattern)
        if not text.next_hit() and text.search_finished:
            self.conversation.say_search("found in another part of the record; v shows it as JSON")
        steps, self._hits_to_go = self._hits_to_go, 0
        for _ in range(abs(steps)):
            self._step_hit(1 if steps > 0 else -1)

    # Two repeats side by side

    def action_diff(self) -> None:
        entry = self._entry()
        rows = [row for row in entry.rows if row != self._row] if entry is not None else []
        if entry is None or self._row not in entry.rows or not rows:
            self.workbench.tell(f"this task has no other repeat to compare with{self.so_far}", "warning")
            return
        if self.is_comparing and self._other in rows:
            self._other = rows[(rows.index(self._other) + 1) % len(rows)]
        else:
            place = entry.rows.index(self._row)
            self._other = entry.rows[place - 1] if place else entry.rows[1]
        self._compare(self._row, self._other)

    def action_next_difference(self) -> None:
        self._step_difference(1)

    def action_previous_difference(self) -> None:
        self._step_difference(-1)

    def _step_difference(self, by: int) -> None:
        if not self.diff.step(by):
            self.workbench.tell("no further difference" if by > 0 else "no difference before this one")

    def action_swap_sides(self) -> None:
        self.diff.swap()

    def action_fold_equal(self) -> None:
        self.diff.toggle_equal()

    def _compare(self, row: int, other: int) -> None:
        assert self._file is not None
        file = self._file.rollouts

        def work(_reporter: Reporter) -> tuple[Page, Page]:
            return read_page(file, row), read_page(file, other)

        def done(pages: tuple[Page, Page]) -> None:
            opening = not self.is_comparing
            self._show_diff(True)
            self.draw_keys()
            if opening:
                self.query(DiffSide).first().focus()
            task = pages[0].task
            self.say_command(note=f"diff of {repeat_name(pages[0])} and {repeat_name(pages[1])} of task {task}")
            self.call_after_refresh(self.diff.show, *pages)

        self.background.start("compare", work, done=done, failed=self.tell_failure)

    def _show_diff(self, shown: bool) -> None:
        """Change places without a class of the screen, for which all of it would be styled anew."""
        self.diff.display = shown
        self.query_one("#viewer-main").display = not shown

    def leave_comparison(self) -> bool:
        if not self.is_comparing:
            return False
        self.background.stop("compare")
        self._show_diff(False)
        self.draw_keys()
        self._other = None
        self.conversation.text.focus()
        self._say_file()
        return True

    # Copies

    def action_copy_thing(self) -> None:
        """Copy what the cursor is on; again: the conversation, then the record as JSON, then where it is."""
        page, opened, row = self._page, self._file, self._page_row
        if page is None or opened is None or row is None:
            self.workbench.tell("there is nothing to copy yet", "warning")
            return
        if self.is_comparing:
            self.workbench.copy_text(self.diff.as_text(), "the diff")
            return
        focused = self.focused
        text = focused if isinstance(focused, VirtualText) else self.conversation.text
        part = text.blocks[text.cursor : text.cursor + 1]
        here = (row, text.id, text.cursor)
        self._copies = self._copies + 1 if here == self._copied_from else 0
        self._copied_from = here
        file = opened.rollouts
        choices: list[tuple[str, Callable[[], str]]] = [
            ("this part", lambda: "".join(map(plain_text, part))),
            ("the conversation", lambda: conversation_text(page)),
            ("the record as JSON", lambda: json_text(file, row)),
            ("the place", lambda: f"{page.place.path}:{page.place.line}"),
        ]
        what, make = choices[self._copies % len(choices)]
        following = choices[(self._copies + 1) % len(choices)][0]
        self.background.start(
            "copy",
            lambda _reporter: make(),
            done=lambda made: self.workbench.copy_text(made, f"{what} (again: {following})"),
            failed=self.tell_failure,
        )

    def text_to_write(self) -> str:
        if self.is_comparing:
            return self.diff.as_text()
        return conversation_text(self._page) if self._page is not None else super().text_to_write()

    def action_pager(self) -> None:
        opened, row = self._file, self._page_row
        if opened is None or row is None:
            self.workbench.tell("there is no rollout to show", "warning")
            return
        file = opened.rollouts

        def done(path: Path) -> None:
            try:
                run_pager(self.app, path)
            except GymError as error:
                self.tell_failure(Failure.of(error))

        self.background.start("pager", lambda reporter: write_record(file, row, reporter), done=done, failed=self.tell_failure)


def conversation_text(page: Page) -> str:
    """A rollout as plain text, with a line that says which one it is."""
    name = f"task {page.task}, {repeat_name(page)}, {outcome_text(page)}, {page.place.path.name}:{page.place.line}"
    return "\n\n".join([clean_line(name), *map(plain_text, page.conversation)]) + "\n"
