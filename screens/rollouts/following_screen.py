"""A screen that follows one run: it reads, takes what the reading thread tells, and draws or waits."""

from __future__ import annotations

from backend.rollouts.run_entry import RUNNING, RunEntry
from screens.rollouts.chart_panes import RewardPane, TokensPane
from screens.rollouts.following import Handshake, follow_run
from screens.rollouts.log_pane import LogPane
from screens.rollouts.previews import Previews, Wanted
from screens.rollouts.snapshot import Reading, RunSnapshot
from screens.rollouts.stream_panes import FinishedPane
from screens.rollouts.stream_rows import Preview
from screens.widgets.background import Failure
from screens.widgets.formatting import count, share
from screens.widgets.pane import Pane
from screens.widgets.workbench_screen import WorkbenchScreen


class FollowingScreen(WorkbenchScreen):
    """Follows a run; subclasses choose the run, have the panes, and draw `shot`."""

    def __init__(self) -> None:
        super().__init__()
        self.entry: RunEntry | None = None
        self.shot: RunSnapshot | None = None
        """What is drawn; None while no run is followed and while the events that are there are being read."""
        self.paused = False
        self.previews = Previews()
        self._handshake = Handshake()
        self._waiting: RunSnapshot | None = None
        self._awaited = False
        """Whether the workbench waits for the first snapshot."""

    @property
    def going_on(self) -> bool:
        """Whether the run that is followed goes on, as far as is known; none, and one of which nothing was read, may."""
        if self.shot is not None:
            return self.shot.running
        return self.entry is None or self.entry.state == RUNNING

    def draw(self) -> None:
        """Draw the newest snapshot."""

    def say_equal_command(self) -> None:
        """Say which command the run is."""

    def content_panes(self) -> list[Pane]:
        """The panes that show what the events tell."""
        return [self.query_one(f"#{name}", Pane) for name in ("run", "rewards", "failures", "tokens", "finished", "flight")]

    def follow(self, entry: RunEntry) -> None:
        """Follow another run from its first event on."""
        if self.entry is not None and entry.paths == self.entry.paths and self.shot is not None:
            return
        self._end_waiting()
        self.entry, self.shot, self._waiting, self.paused = entry, None, None, False
        self.draw_keys()
        self.previews = previews = Previews()
        self._handshake = handshake = Handshake()
        self.workbench.begin_work()
        self._awaited = True

        def failed(failure: Failure) -> None:
            self._end_waiting()
            self.say_failure(failure)

        clock = self.workbench.clock
        self.background.start(
            "follow", lambda reporter: follow_run(entry, clock, handshake, reporter), done=lambda _none: None,
            failed=failed, partly=self._take, endless=True,
        )  # fmt: skip
        rollouts = entry.paths.rollouts
        self.background.start(
            "previews", lambda reporter: previews.read(lambda: rollouts, reporter), done=lambda _none: None,
            failed=lambda _failure: None, partly=self._take_previews, endless=True,
        )  # fmt: skip
        self.query_one(LogPane).follow_logs(entry.paths.logs)
        self.say_equal_command()

    def say_failure(self, failure: Failure) -> None:
        """The run cannot be read."""
        for pane in self.content_panes():
            pane.show_failure(failure, "ctrl+p open: another run")

    def action_pause(self) -> None:
        self.paused = not self.paused
        if not self.paused and self._waiting is not None:
            shot, self._waiting = self._waiting, None
            self._handshake.drawn()
            self._show(shot)
        else:
            self.draw()

    def _end_waiting(self) -> None:
        if self._awaited:
            self._awaited = False
            self.workbench.end_work()

    def _take(self, told: RunSnapshot | Reading) -> None:
        if isinstance(told, Reading):
            self._handshake.drawn()
            self._say_reading(told)
            return
        self._end_waiting()
        if self.paused:
            self._waiting = told
            self._say_paused()
            return
        self._show(told)
        self.call_after_refresh(self._handshake.drawn)

    def _show(self, shot: RunSnapshot) -> None:
        bar = self.key_bar()
        self.shot, self.entry = shot, shot.entry
        self.draw()
        if self.key_bar() != bar:
            self.draw_keys()

    def _say_reading(self, reading: Reading) -> None:
        """Nothing of what has been read so far is drawn: it would pass for the present state of the run."""
        if self.paused or self.entry is None:
            return
        self.shot = None
        self.query_one(RewardPane).forget()
        self.query_one(TokensPane).forget()
        for pane in self.content_panes():
            pane.set_heading(right="", foot="")
            pane.show_loading(f"reading the events of the run {share(reading.share, 1, 0)}")
        self.query_one("#run", Pane).set_heading(self.workbench.shown_path(self.entry.paths.rollouts))

    def _say_paused(self) -> None:
        if self.shot is not None and self._waiting is not None:
            more = self._waiting.finished_count - self.shot.finished_count
            self.query_one("#finished", Pane).set_heading(right=f"{count(more)} more have finished")

    def _take_previews(self, found: dict[Wanted, Preview]) -> None:
        self.previews.add(found)
        self.query_one(FinishedPane).stream.refresh()
