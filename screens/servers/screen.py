"""The Servers screen: the stacks of this machine, how their servers are, and what they write."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widget import Widget

from backend.servers.stack_record import StackRecord
from screens.servers import stopping
from screens.servers.board import Board, ServerView, Snapshot, StackView
from screens.servers.detail_blocks import CALLS
from screens.servers.detail_pane import DetailPane
from screens.servers.log_pane import LogPane
from screens.servers.restarting import Restart, Restarts
from screens.servers.stack_rows import COLUMNS, ORDERS, StackRows, columns_for, is_descending, state_of
from screens.servers.watching import wait_until_gone, watch_stacks
from screens.widgets import formatting, glyphs
from screens.widgets.background import Failure
from screens.widgets.key_table import bindings
from screens.widgets.outside import opening, pager_command, run_outside
from screens.widgets.pane import Pane
from screens.widgets.virtual_list import VirtualList
from screens.widgets.virtual_text import VirtualText
from screens.widgets.workbench import Target
from screens.widgets.workbench_screen import WorkbenchScreen

FIRST_STACK = "env start --benchmark first_steps --model-type llama_cpp_model"
"""A command for somebody who has chosen nothing yet: it needs no key and no address."""
CONFIRM_SECONDS = 5.0
FOLLOW_SECONDS = 0.12
STALE_SECONDS = 5.0
"""What is younger is not called so: after a look at the help it is as good as new."""
_AGE_SECONDS = 1.0


class ServersScreen(WorkbenchScreen):
    """Watches all stacks while it is in front and the terminal has the focus; the list keeps the last known state otherwise."""

    SCREEN_NAME = "servers"
    CSS_PATH = "servers.tcss"
    BINDINGS = bindings("servers")
    KEY_BAR: ClassVar[tuple[str, ...]] = (
        "servers.start", "servers.stop", "servers.restart", "servers.search", "servers.follow", "servers.errors",
    )  # fmt: skip
    PANES: ClassVar[tuple[str, ...]] = ("servers", "log", "detail")

    def __init__(self) -> None:
        super().__init__()
        self.snapshot: Snapshot | None = None
        self.paused = False
        self.order = "configured"
        self.upside_down = False
        self._board = Board()
        self._forgotten: set[str] = set()
        self._in_front = False
        self._watching = False
        self._not_watched = ""
        """Why watching failed: what is shown stays old until something is read again."""
        self._first_pending = False
        self._seen_at = 0.0
        self._asked: tuple[str, ...] = ()
        self._asked_at = float("-inf")
        self._question = ""
        self._restarts = Restarts()
        self._timer: Timer | None = None

    def compose_body(self) -> Iterable[Widget]:
        with Pane("Servers", id="servers"):
            yield VirtualList(COLUMNS, id="server-list")
        with Horizontal(id="lower"):
            yield LogPane(id="log", classes="-solo -current")
            yield DetailPane(id="detail", classes="-solo")

    def on_mount(self) -> None:
        self._pane.show_loading("Looking for stacks")
        self._log_pane.show_empty("The log of the server under the cursor is shown here.")
        self._detail.show_empty("Nothing under the cursor")
        self.say_command("gym env status")
        self._list.focus()
        self.watch(self.app, "app_focus", self._watch_or_not, init=False)
        self.set_interval(_AGE_SECONDS, self._look_at_clock)

    def on_unmount(self) -> None:
        super().on_unmount()
        self._board.close()

    @property
    def _pane(self) -> Pane:
        return self.query_one("#servers", Pane)

    @property
    def _list(self) -> VirtualList:
        return self.query_one("#server-list", VirtualList)

    @property
    def _log_pane(self) -> LogPane:
        return self.query_one("#log", LogPane)

    @property
    def _detail(self) -> DetailPane:
        return self.query_one("#detail", DetailPane)

    @property
    def current(self) -> tuple[StackView | None, ServerView | None]:
        """The stack and the server under the cursor."""
        rows, cursor = self._list.rows, self._list.cursor
        return rows.line(cursor) if isinstance(rows, StackRows) and cursor < len(rows) else (None, None)

    # Watching

    @on(events.ScreenResume)
    def _come_to_front(self) -> None:
        self._in_front = True
        self._watch_or_not()

    @on(events.ScreenSuspend)
    def _go_to_back(self) -> None:
        self._in_front = False
        self._watch_or_not()

    def _watch_or_not(self) -> None:
        """Watch only where somebody can see it: asking every server once a second is no use otherwise."""
        wanted = self._in_front and not self.paused and self.app.app_focus
        if wanted and not self._watching:
            self._begin_watching()
        elif not wanted and self._watching:
            self._watching = False
            self.background.stop("watch")
            self._first_arrived()
            self._say_stale()

    def _begin_watching(self) -> None:
        self._watching = True
        self._first_pending = True
        self.workbench.begin_work()
        board, clock = self._board, self.workbench.clock
        self.background.start(
            "watch", lambda reporter: watch_stacks(board, clock, reporter), done=lambda _none: None, failed=self._fail,
            partly=self._have_read, endless=True,
        )  # fmt: skip

    def _first_arrived(self) -> None:
        if self._first_pending:
            self._first_pending = False
            self.workbench.end_work()

    def _have_read(self, snapshot: Snapshot) -> None:
        self._not_watched = ""
        self._take(snapshot)

    def _take(self, snapshot: Snapshot) -> None:
        self._first_arrived()
        self._seen_at = snapshot.at
        back = self._restarts.come_back(snapshot)
        self._forgotten.update(old for old, _new in back)
        stacks = tuple(stack for stack in snapshot.stacks if stack.record.id not in self._forgotten)
        self.snapshot = Snapshot(snapshot.at, stacks)
        self.draw()
        if back:
            self._list.move_to_key(back[-1][1])

    def _fail(self, failure: Failure) -> None:
        self._watching = False
        self._first_arrived()
        if self.snapshot is None:
            self._pane.show_failure(failure, "p twice tries again")
        else:
            self._not_watched = failure.message
            self._say_counts()
            self._say_stale()

    def _look_at_clock(self) -> None:
        """Ages go on while nothing is read, and a question is forgotten."""
        if self._question and self.workbench.clock() - self._asked_at > CONFIRM_SECONDS:
            self._question, self._asked = "", ()
            self._say_counts()
        self._say_stale()

    def _say_stale(self) -> None:
        if self._watching or self.snapshot is None or not self.snapshot.stacks:
            return
        seconds = self.workbench.clock() - self._seen_at
        word = "paused" if self.paused else "stale" if seconds >= STALE_SECONDS else ""
        old = "old" if self._not_watched else ""
        self._pane.show_stale(f"{word} {formatting.age(seconds)}" if word else old)

    # Drawing

    def draw(self) -> None:
        """Draw the newest snapshot; the cursor stays on its server."""
        snapshot = self.snapshot
        if snapshot is None:
            return
        rows = StackRows(snapshot, snapshot.at, self._shown_runs(snapshot), self.order, upside_down=self.upside_down)
        columns = columns_for(snapshot, narrow=self.has_class("-narrow"))
        if columns != self._list.columns:
            self._list.show_columns(columns)
        was_empty = not len(self._list.rows)
        self._list.show(rows)
        if was_empty and len(rows):
            self._list.cursor = _first_server(rows)  # it has no size yet, so moving to it would scroll
        if snapshot.stacks:
            self._pane.show_ready()
            self._say_stale()
        else:
            self._pane.show_empty("Nothing runs.", self._how_to_start())
        self._say_counts()
        self._draw_current()

    def _draw_current(self) -> None:
        stack, view = self.current
        if self.snapshot is not None:
            self._detail.draw(stack, view)
        self.say_command(stopping.typed_command(stack.record) if stack is not None else "gym env status")
        self._follow_soon()

    def _shown_runs(self, snapshot: Snapshot) -> dict[str, str]:
        return {stack.record.id: stopping.run_name(stack.record) for stack in snapshot.stacks if stack.record.run}

    def _say_counts(self) -> None:
        snapshot = self.snapshot
        if snapshot is None:
            return
        states = [state_of(view, stack).sign for stack in snapshot.stacks for view in stack.servers]
        signs = glyphs.current()
        words = {signs.up: "up", signs.starting: "starting", signs.warning: "silent", signs.failed: "failed"}
        counts = [f"{states.count(sign)} {word}" for sign, word in words.items() if sign in states]
        running = len(snapshot.running)
        stacks = f"{running} stacks" if running > 1 else ""
        nothing = "nothing runs" if snapshot.stacks and not running else ""
        self._pane.set_heading(
            right=" · ".join(filter(None, (nothing, stacks, *counts))), foot=self._question or self._not_watched
        )

    def _how_to_start(self) -> str:
        chosen = self.workbench.chosen_words()
        return (
            f"r starts what is chosen in Config: {shlex.join(chosen)}"
            if chosen
            else "r puts a command that starts servers on the command line"
        )

    def _follow_soon(self) -> None:
        """Show the log of the server under the cursor, once the cursor rests."""
        if self._timer is None and self._wanted_log() != self._log_pane.shown_log:
            self.workbench.begin_work()
            self._timer = self.set_timer(FOLLOW_SECONDS, self._follow)

    def _follow(self) -> None:
        self._timer = None
        self._log_pane.show_log(*self._wanted_log())
        self.workbench.end_work()

    def _wanted_log(self) -> tuple[str, str]:
        """The server under the cursor and its log, both empty where there is none."""
        _, view = self.current
        return (view.server.name, view.server.log) if view is not None else ("", "")

    @on(VirtualList.Highlighted, "#server-list")
    def _highlighted(self, message: VirtualList.Highlighted) -> None:
        message.stop()
        if self._timer is not None:
            self._timer.reset()
        self._draw_current()

    @on(VirtualList.Opened, "#server-list")
    def _opened(self, message: VirtualList.Opened) -> None:
        message.stop()
        self.show_pane("detail")

    @on(VirtualText.Chosen, "#detail-text")
    def _link_chosen(self, message: VirtualText.Chosen) -> None:
        """Go to the server that a link in the details leads to."""
        message.stop()
        stack, _ = self.current
        key = message.key
        if stack is not None and isinstance(key, tuple) and key[0] == CALLS:
            self._list.move_to_key((stack.record.id, key[1]))

    @on(VirtualList.HeaderClicked, "#server-list")
    def _header_clicked(self, message: VirtualList.HeaderClicked) -> None:
        message.stop()
        again = message.column == self.order
        self._sort_by(message.column, not self.upside_down if again else False)

    def action_sort(self) -> None:
        """The next order."""
        index = ORDERS.index(self.order) if self.order in ORDERS else -1
        self._sort_by(ORDERS[(index + 1) % len(ORDERS)], False)

    def action_reverse(self) -> None:
        self._sort_by(self.order, not self.upside_down)

    def _sort_by(self, order: str, upside_down: bool) -> None:
        self.order, self.upside_down = order, upside_down
        descending = is_descending(order, upside_down=upside_down)
        self._list.show_order(None if order == "configured" else order, descending=descending)
        self.draw()

    def action_pause(self) -> None:
        """Stop looking, or look again."""
        self.paused = not self.paused
        self._watch_or_not()

    # What can be done with a stack

    def action_start(self) -> None:
        """Put a command that starts servers on the command line: what is chosen in Config, else a first one."""
        chosen = self.workbench.chosen_words()
        self.workbench.prefill_command(shlex.join(["env", "start", *chosen]) if chosen else FIRST_STACK)

    def action_stop(self) -> None:
        stack, view = self.current
        if stack is None or self.snapshot is None:
            self.workbench.tell("there is no stack under the cursor", "warning")
        elif stack.ended_at is not None:
            self.workbench.tell("this stack has ended already; delete takes it off the list", "warning")
        else:
            words = stopping.stop_words(stack, self.snapshot)
            question = f"x again stops {stopping.what_stops(stack, view)}"
            self._ask(("stop", stack.record.id), question, lambda: self.workbench.start_command(words))

    def action_stop_all(self) -> None:
        running = self.snapshot.running if self.snapshot is not None else ()
        if not running:
            self.workbench.tell("nothing runs", "warning")
            return
        question = f"X again stops {stopping.what_stops_with_all(running)}"
        ids = tuple(stack.record.id for stack in running)
        self._ask(("stop all", *ids), question, lambda: self.workbench.start_command(["env", "stop", "--all"]))

    def action_restart(self) -> None:
        stack, view = self.current
        if stack is None or self.snapshot is None:
            self.workbench.tell("there is no stack under the cursor", "warning")
            return
        words = stopping.start_words(stack.record)
        folder = stack.record.folder or None
        if (restart := self._restarts.of(stack.record)) is not None:
            self._question_another_start(restart, words, folder)
            return
        if stack.ended_at is not None:
            self._start_again(stack.record, view.server.name if view is not None else "", words, folder)
            return
        stop = stopping.stop_words(stack, self.snapshot)
        question = f"R again stops {stopping.what_stops(stack, view)}; then it starts again as a job of this workbench"
        self._ask(("restart", stack.record.id), question, lambda: self._restart(stack, view, stop, words, folder))

    def _restart(self, stack: StackView, view: ServerView | None, stop: list[str], start: list[str], folder: str | None) -> None:
        record, server = stack.record, view.server.name if view is not None else ""
        self._restarts.wait_for_end(record, server)
        self.workbench.start_command(stop)

        def failed(failure: Failure) -> None:
            self._restarts.give_up(record)
            self.workbench.tell(failure.message, "error")

        self.background.start(
            f"restart {record.id}", lambda reporter: wait_until_gone(record, reporter),
            done=lambda _none: self._start_again(record, server, start, folder), failed=failed,
        )  # fmt: skip

    def _start_again(self, record: StackRecord, server: str, words: list[str], folder: str | None) -> None:
        running = self.snapshot.running if self.snapshot is not None else ()
        self._restarts.started(record, server, self.workbench.clock(), (stack.record.id for stack in running))
        self.workbench.start_command(words, folder)

    def _question_another_start(self, restart: Restart, words: list[str], folder: str | None) -> None:
        """A stack that has not come back may have failed to start, or take its time: after a while it can be started once more."""
        record, title = restart.record, restart.record.name or restart.record.id
        if restart.started_at is None:
            self.workbench.tell(f"the stack {title} starts again as soon as it has ended", "warning")
            return
        seconds = self.workbench.clock() - restart.started_at
        if seconds <= CONFIRM_SECONDS:
            self.workbench.tell(f"the stack {title} is being started again; J shows its job", "warning")
            return
        question = (
            f"R again starts the stack {title} once more: it was started {formatting.age(seconds)} ago and is not there yet"
        )
        self._ask(("restart", record.id), question, lambda: self._start_again(record, restart.server, words, folder))

    def _ask(self, key: tuple[str, ...], question: str, do: Callable[[], object]) -> None:
        """Do it when it is asked for twice within 5 s; the first time say what it means."""
        now = self.workbench.clock()
        confirmed = self._asked == key and now - self._asked_at <= CONFIRM_SECONDS
        self._asked, self._asked_at = ((), now) if confirmed else (key, now)
        self._question = "" if confirmed else question
        self._say_counts()
        if confirmed:
            do()
        else:
            self.workbench.tell(question, "warning")

    def action_forget(self) -> None:
        """Take a stack that has ended off the list."""
        stack, _ = self.current
        if stack is None or stack.ended_at is None:
            self.workbench.tell("only stacks that have ended can be taken off the list; x stops one", "warning")
            return
        self._forgotten.add(stack.record.id)
        if self.snapshot is not None:
            self._take(self.snapshot)

    def action_configure(self) -> None:
        """Open the stack's words in Config."""
        stack, _ = self.current
        words = stopping.config_words(stack.record) if stack is not None else ()
        if stack is None or not words:
            self.workbench.tell("there is no stack of `gym env start` under the cursor", "warning")
        else:
            self.workbench.open_screen("config", Target(Path(stack.record.folder), words=words))

    def action_open_run(self) -> None:
        """Follow the run that the stack serves."""
        stack, _ = self.current
        if stack is None or not stack.record.run:
            self.workbench.tell("this stack serves no run; runs with servers of their own are shown in Rollouts", "warning")
        else:
            self.workbench.open_screen("rollouts", Target(Path(stack.record.run)))

    def action_copy_url(self) -> None:
        stack, view = self.current
        url = view.server.url if view is not None else stack.record.head_url if stack is not None else ""
        if url:
            self.workbench.copy_text(url, "the address")
        else:
            self.workbench.tell("there is no server under the cursor", "warning")

    # The log

    def action_log(self) -> None:
        self.show_pane("log")

    def action_search(self) -> None:
        self.show_pane("log")
        self._log_pane.search_box.open()

    def action_filter(self) -> None:
        self.show_pane("log")
        self._log_pane.filter_box.open()

    def action_next_hit(self) -> None:
        self._step_hit(self._log_pane.text.next_hit)

    def action_previous_hit(self) -> None:
        self._step_hit(self._log_pane.text.previous_hit)

    def _step_hit(self, step: Callable[[], bool]) -> None:
        if not step():
            self.workbench.tell("there is no hit; / searches the log", "warning")

    def action_follow(self) -> None:
        self._log_pane.follow_end()

    def action_toggle_errors(self) -> None:
        self._log_pane.change_filter(only_errors=not self._log_pane.filter.only_errors)

    def action_toggle_wrap(self) -> None:
        self._log_pane.text.action_toggle_wrap()

    def action_toggle_times(self) -> None:
        self._log_pane.toggle_times()

    def action_window(self) -> None:
        self._log_pane.next_window()

    def action_pager(self) -> None:
        """The whole log in the user's pager."""
        path = self._log_pane.path
        if path is None:
            self.workbench.tell("this server has no log", "warning")
        else:
            run_outside(self.app, "pager", opening(pager_command(), path))

    def close_innermost(self) -> bool:
        if super().close_innermost():
            return True
        if self._log_pane.close_innermost():
            return True
        if self.has_class("-narrow") and self._detail.has_class("-current"):
            self.show_pane("log")
            return True
        return False

    def action_write_text(self) -> None:
        """Save the log as it is narrowed; where there is none, what is on screen."""
        lines = self._log_pane.shown_lines()
        if lines and self.current_pane() is not self._detail:
            _, view = self.current
            self.workbench.write_text("\n".join(lines) + "\n", view.server.name if view is not None else self.SCREEN_NAME)
        else:
            super().action_write_text()

    def thing_to_copy(self) -> tuple[str, str] | None:
        stack, view = self.current
        if self._detail.text.has_focus and (part := self._detail.part_under_cursor()) is not None:
            return part
        if self._log_pane.text.has_focus and self._log_pane.path is not None:
            return str(self._log_pane.path), "the path of the log"
        if view is not None:
            return view.server.url, "the address"
        return (stack.title, "the name") if stack is not None else None


def _first_server(rows: StackRows) -> int:
    """The first row that is neither a heading nor a head server."""
    for index in range(len(rows)):
        _, view = rows.line(index)
        if view is not None and not view.is_head:
            return index
    return 0
