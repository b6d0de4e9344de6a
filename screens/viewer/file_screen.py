"""The part of the viewer that has a file: opens it, reads it to its end, follows it, and waits for one that is not there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from textual.binding import Binding
from textual.containers import Horizontal
from textual.widget import Widget

from screens.viewer.conversation_pane import ConversationPane
from screens.viewer.diff_view import DiffView
from screens.viewer.loading import OpenFile, Progress, open_or_miss, wait_for
from screens.viewer.missing import NoRolloutYet, NotThere
from screens.viewer.side_panes import SidePanes
from screens.viewer.task_pane import TaskPane
from screens.widgets import glyphs
from screens.widgets.background import Failure
from screens.widgets.formatting import count
from screens.widgets.workbench_screen import WorkbenchScreen

_HOW_TO_OPEN = ":open FILE opens a file of rollouts or a run folder; on the Results screen enter opens a run"


class FileScreen(WorkbenchScreen):
    """A file. What is shown of it is added by the subclass."""

    CSS_PATH = "viewer.tcss"
    AUTO_FOCUS = ""
    PANES = ("tasks", "conversation", "reward", "facts")

    def __init__(self) -> None:
        super().__init__()
        self._path: Path | None = None
        self._file: OpenFile | None = None
        self._awaited: Path | None = None
        """What is waited for while there is nothing to open."""
        self._was_open: Path | None = None
        """The path that was opened last: when nothing is there later, something is gone."""
        self._progress: Progress | None = None

    def compose_body(self) -> Iterable[Widget]:
        with Horizontal(id="viewer-main"):
            yield TaskPane(id="tasks", classes="-solo")
            yield ConversationPane(id="conversation", classes="-solo -current")
            yield SidePanes(id="side")
        yield DiffView(id="diff")

    @property
    def tasks(self) -> TaskPane:
        return self.query_one(TaskPane)

    @property
    def conversation(self) -> ConversationPane:
        return self.query_one(ConversationPane)

    @property
    def side(self) -> SidePanes:
        return self.query_one(SidePanes)

    @property
    def diff(self) -> DiffView:
        return self.query_one(DiffView)

    @property
    def is_reading(self) -> bool:
        """Whether the file is being opened, or has rows that are not listed yet."""
        return self.background.works_on("open") or self.tasks.is_behind

    def forget_rows(self) -> None:
        """Numbers of rows mean nothing any more."""

    def rows_read(self) -> None:
        """The file was read further."""

    def open_path(self, path: Path) -> None:
        """Open a file or a run in place of what is open."""
        if path != self._path:
            self.side.show_nothing()
        self._close()
        self._path = path
        self._say_file()
        self.tasks.show_loading(f"opening {self.workbench.shown_path(path)}")
        self.conversation.show_loading("opening")
        self.background.start("open", lambda _reporter: open_or_miss(path), done=self._opened, failed=self._open_failed)

    def _close(self) -> None:
        """Forget the file, and what the borders of list and text say of it."""
        self.background.stop_all()
        self._file = self._progress = self._awaited = None
        self.forget_rows()
        self.tasks.open_file(None, "")
        self.conversation.clear_page()

    def _say_file(self) -> None:
        if self._path is not None:
            self.say_command(
                note=f"reading {self.workbench.shown_path(self._path)} {glyphs.current().nothing} this screen starts nothing"
            )

    def _opened(self, file: OpenFile | NoRolloutYet | NotThere | None) -> None:
        if file is None:
            self.show_no_file("this folder is no run")
        elif isinstance(file, NotThere):
            self._await_path(file)
        elif isinstance(file, NoRolloutYet):
            self._await_rollouts(file)
        else:
            self._file, self._was_open = file, self._path
            self.tasks.open_file(file, file.rollouts.paths.rollouts.name)
            self.tasks.show_ready()
            self.background.start("index", file.read_all, done=self._all_read, failed=self._open_failed, partly=self._read_so_far)

    def show_no_file(self, why: str) -> None:
        """Nothing is open, and nothing is waited for."""
        self._path = self._file = self._awaited = None
        self.tasks.show_empty(why, _HOW_TO_OPEN)
        self.conversation.show_empty(why, _HOW_TO_OPEN)
        self.side.show_nothing()
        self.say_command(note="this screen reads files and starts nothing")

    def _open_failed(self, failure: Failure) -> None:
        self._close()
        self.tasks.show_failure(failure, self.how_to_retry)
        self.conversation.show_empty("nothing is open", f"{self.how_to_retry}\n{_HOW_TO_OPEN}")
        self.side.show_nothing()

    # What is not there

    def _await_path(self, nothing: NotThere) -> None:
        """Say that there is nothing, or nothing any more, and open what comes."""
        self._awaited = nothing.awaited
        if self._path == self._was_open:
            self._say_gone(nothing.awaited)
        else:
            self.tasks.show_failure(Failure.of(nothing), self._how_it_opens("there"))
            self.conversation.show_empty("nothing is open", f"{self._how_it_opens('there')}\n{_HOW_TO_OPEN}")
            self.side.show_nothing()
        self._wait_for_file()

    def _await_rollouts(self, early: NoRolloutYet) -> None:
        """Say that a run has no rollout, yet or any more, or that it ended without one, and open it when it has: it may be resumed."""
        self._awaited = early.rollouts
        if early.is_lost or (early.is_over and self._path == self._was_open):
            self._say_gone(early.rollouts, early.what_was)
        elif early.is_over:
            self.tasks.show_empty(early.message, f"{self._shown_key('app.results')} tells more of it")
            self.conversation.show_empty(early.message, early.reason)
        else:
            self.tasks.show_empty(early.message, f"rollouts appear as they are written; {self._how_to_follow()}")
            self.conversation.show_empty("there is no rollout yet", self._how_to_follow())
        self.side.show_nothing()
        self._wait_for_file()

    def _say_gone(self, path: Path, cause: str = "") -> None:
        gone = Failure(f"the file {self.workbench.shown_path(path)} is gone", cause)
        self.tasks.show_failure(gone, self._how_it_opens("back"))
        self.conversation.show_empty(gone.message, self._how_it_opens("back"))
        self.side.show_nothing()

    def _how_it_opens(self, when: str) -> str:
        return f"it is opened when it is {when}; {self._shown_key('viewer.reload')} looks again"

    @property
    def how_to_retry(self) -> str:
        """Says the key."""
        return f"{self._shown_key('viewer.reload')} reads it again"

    def _how_to_follow(self) -> str:
        return f"{self._shown_key('app.rollouts')} follows the run live"

    def _shown_key(self, name: str) -> str:
        key = self._first_key(name)
        return key if key.startswith("ctrl+") else self.app.get_key_display(Binding(key, ""))

    def _wait_for_file(self) -> None:
        path, awaited = self._path, self._awaited
        if path is not None and awaited is not None and self.is_current:
            self.background.start(
                "follow", lambda reporter: wait_for(awaited, reporter), done=lambda _none: self.open_path(path),
                failed=self._open_failed, endless=True,
            )  # fmt: skip

    # Reading on

    def _read_so_far(self, progress: Progress) -> None:
        before, self._progress = self._progress, progress
        if before is not None and before.generation != progress.generation and self._path is not None:
            self.workbench.tell(f"{self.workbench.shown_path(self._path)} was replaced and is read anew", "warning")
            self.open_path(self._path)
            return
        self.tasks.read_so_far(progress, final=progress.complete and not (before is not None and before.complete))
        if progress.gone:
            self.tasks.show_stale("the file is gone")
        elif not progress.rows and progress.complete:
            self._say_no_rows(progress)
        else:
            self.tasks.show_ready()
        self.rows_read()

    def _say_no_rows(self, progress: Progress) -> None:
        assert self._path is not None
        unfinished = f", {count(progress.torn_bytes)} bytes of an unfinished row" if progress.torn_bytes else ""
        live = f"; {self._how_to_follow()}" if self._file is not None and self._file.is_run else ""
        self.tasks.show_empty(
            f"0 rows in {self.workbench.shown_path(self._path)}{unfinished}", f"new rows appear as they are written{live}"
        )
        self.conversation.show_empty("there is no rollout yet")
        self.side.show_nothing()

    def _all_read(self, progress: Progress) -> None:
        self._read_so_far(progress)
        self._follow()

    def _follow(self) -> None:
        file, progress = self._file, self._progress
        if file is not None and progress is not None and progress.complete and self.is_current:
            self.background.start(
                "follow", lambda reporter: file.follow(reporter, progress), done=lambda _none: None, failed=self._follow_failed,
                partly=self._read_so_far, endless=True,
            )  # fmt: skip

    def _follow_failed(self, failure: Failure) -> None:
        self.tasks.show_stale(failure.message)

    def on_screen_suspend(self) -> None:
        self.background.stop("follow")

    def on_screen_resume(self) -> None:
        self._follow()
        self._wait_for_file()
