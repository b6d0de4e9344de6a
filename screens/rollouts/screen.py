"""The Rollouts screen."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from textual import events, on
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from backend.rollouts.run_entry import RUNNING, RunEntry
from backend.rollouts.run_list import RunCache
from screens.rollouts.chart_panes import FailuresPane, RewardPane, TokensPane
from screens.rollouts.following import entry_of_path, newest_run, runs_by_age
from screens.rollouts.following_screen import FollowingScreen
from screens.rollouts.histograms import filter_of
from screens.rollouts.log_pane import LogPane
from screens.rollouts.run_pane import RunPane
from screens.rollouts.steering import Cancelling, run_beside
from screens.rollouts.stream_filter import StreamFilter
from screens.rollouts.stream_panes import FinishedPane, FlightPane
from screens.widgets.background import Failure
from screens.widgets.filter_box import FilterBox
from screens.widgets.key_table import bindings
from screens.widgets.pane import Pane
from screens.widgets.virtual_list import VirtualList
from screens.widgets.workbench import Target, first_run

LOOK_SECONDS = 2.0


class RolloutsScreen(FollowingScreen):
    """Follows one run. Without a target it takes the newest run that goes on, and changes to a newer one when the followed one is over."""

    SCREEN_NAME = "rollouts"
    CSS_PATH = "rollouts.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("rollouts")]
    KEY_BAR: ClassVar[tuple[str, ...]] = (
        "rollouts.run", "rollouts.pause", "rollouts.cancel", "rollouts.failures", "list.open", "rollouts.log",
    )  # fmt: skip
    KEY_BAR_WHEN_OVER: ClassVar[tuple[str, ...]] = (
        "rollouts.run", "rollouts.resume", "rollouts.failures", "rollouts.filter", "list.open", "rollouts.log",
    )  # fmt: skip
    PANES: ClassVar[tuple[str, ...]] = ("finished", "flight", "rewards", "failures", "tokens", "logs")

    def __init__(self) -> None:
        super().__init__()
        self.chosen = False
        """Whether the user has said which run to follow."""
        self.filter = StreamFilter()
        self._cache = RunCache()
        self._cancelling = Cancelling()
        self._in_front = False

    def compose_body(self) -> Iterable[Widget]:
        yield RunPane("Run", id="run")
        with Horizontal(id="charts"):
            yield RewardPane("Reward", id="rewards", classes="-solo")
            yield FailuresPane("Failures", id="failures", classes="-solo")
            yield TokensPane("Tokens and time", id="tokens", classes="-solo")
        with Horizontal(id="streams"):
            yield FinishedPane("Finished", id="finished", classes="-solo -current")
            with Vertical(id="side"):
                yield FlightPane("In flight", id="flight", classes="-solo")
                yield LogPane("Log", id="logs", classes="-solo")

    def on_mount(self) -> None:
        self.query_one(FinishedPane).stream.focus()
        for pane in self.content_panes():
            pane.show_loading("looking for a run")
        self.set_interval(LOOK_SECONDS, self._look_for_newer)

    @on(events.ScreenResume)
    def _come_to_front(self) -> None:
        self._in_front = True
        if self.entry is None:
            self._look_for_newer()

    @on(events.ScreenSuspend)
    def _go_to_back(self) -> None:
        self._in_front = False

    def show_target(self, target: Target) -> None:
        """Follow the run that a path means; a folder of runs lets the screen choose."""
        if target.path.is_dir() and not target.path.name.endswith("_run"):
            return
        self.chosen = True
        self.background.stop("look")
        path, now, shown = target.path, self.workbench.clock(), self.workbench.shown_path

        def failed(failure: Failure) -> None:
            self.say_failure(replace(failure, message=failure.message.replace(str(path), shown(path))))

        self.background.start("locate", lambda _reporter: entry_of_path(path, shown, now), done=self.follow, failed=failed)

    def _look_for_newer(self) -> None:
        """Choose a run, unless the user did or the chosen one still runs."""
        followed = self.entry is not None and self.going_on
        if not self._in_front or self.chosen or followed or self.background.works_on("look"):
            return
        root, cache, now = self.workbench.root, self._cache, self.workbench.clock()
        self.background.start(
            "look", lambda reporter: newest_run(root, cache, now, reporter), done=self._take_newest, failed=self.say_failure
        )

    def _take_newest(self, entry: RunEntry | None) -> None:
        if entry is None:
            if self.entry is None:
                where = self.workbench.shown_path(self.workbench.root)
                for pane in self.content_panes():
                    pane.show_empty(f"No run below {where} yet.", "r starts one; :open FILE follows one elsewhere")
            return
        if self.entry is None or (entry.state == RUNNING and (entry.when or 0) > (self.entry.when or 0)):
            self.follow(entry)

    def draw(self) -> None:
        """Draw the newest snapshot."""
        shot = self.shot
        if shot is None:
            return
        name = self.workbench.shown_path(shot.entry.paths.rollouts)
        self.query_one(RunPane).draw(shot, name, narrow=self.has_class("-narrow"))
        self.query_one(RewardPane).draw(shot)
        self.query_one(FailuresPane).draw(shot)
        self.query_one(TokensPane).draw(shot)
        self.query_one(FinishedPane).draw(shot, self.filter, self.previews, paused=self.paused)
        self.query_one(FlightPane).draw(shot)
        self.say_equal_command()

    def say_equal_command(self) -> None:
        entry = self.entry
        if entry is None or not entry.command:
            self.say_command(note="no run is followed" if entry is None else "results without a record of their command")
        else:
            program, *words = entry.command
            self.say_command(shlex.join(["gym", *words] if program.endswith(("gym", "ng")) else entry.command))

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.call_after_refresh(self.draw)

    def key_bar(self) -> tuple[str, ...]:
        return self.KEY_BAR if self.going_on else self.KEY_BAR_WHEN_OVER

    def panes_changed(self) -> None:
        self.draw()

    def panes_to_visit(self) -> list[Pane]:
        return [pane for pane in super().panes_to_visit() if pane.id != "logs" or self.has_class("-with-log")]

    @on(FilterBox.Filtered)
    def _filter_changed(self, message: FilterBox.Filtered) -> None:
        self.filter = self.filter.with_text(message.text)
        self.draw()

    @on(FilterBox.Left)
    def _filter_left(self, _message: FilterBox.Left) -> None:
        self.query_one(FinishedPane).stream.focus()

    @on(VirtualList.Opened, "#finished-list")
    def _open_finished(self, _message: VirtualList.Opened) -> None:
        line = self.query_one(FinishedPane).line_under_cursor()
        if self.shot is not None and self.entry is not None and line is not None:
            self.workbench.open_screen("viewer", Target(self.entry.paths.rollouts, line.task, line.rollout))

    @on(RewardPane.BarClicked)
    def _filter_by_bar(self, message: RewardPane.BarClicked) -> None:
        self._set_filter(filter_of(message.metric, message.low, message.high))

    @on(VirtualList.Opened, "#failure-list")
    def _filter_by_class(self, message: VirtualList.Opened) -> None:
        self._set_filter(f"fail:{message.list.rows.key(message.index)}")

    def _set_filter(self, text: str) -> None:
        box = self.query_one(FinishedPane).box
        box.value = text
        box.set_class(bool(text), "-open")

    def action_filter(self) -> None:
        self.show_pane("finished")
        self.query_one(FinishedPane).box.open()

    def action_toggle_failures(self) -> None:
        self.filter = self.filter.toggled_failures()
        self.draw()

    def action_cancel(self) -> None:
        step = self._cancelling.ask(self.shot, self.entry is not None and self.going_on, self.workbench.clock())
        if self.entry is not None and step.action:
            self.workbench.start_command(["eval", "control", str(self.entry.paths.rollouts), step.action])
        if step.text:
            self.workbench.tell(step.text, step.severity)

    def action_next_metric(self) -> None:
        self.query_one(RewardPane).show_next_metric()

    def action_resume(self) -> None:
        entry = self.entry
        if entry is None or entry.resume_command is None:
            self.workbench.tell("it still runs" if entry and self.going_on else "there is nothing to resume", "warning")
            return
        self.workbench.prefill_command(shlex.join(entry.resume_command[1:]), entry.cwd)

    def action_run(self) -> None:
        self.workbench.prefill_command(first_run())

    def action_log(self) -> None:
        self.add_class("-with-log")
        self.query_one(LogPane).next_log()
        self.show_pane("logs")

    def action_step_run(self, step: int) -> None:
        root, cache, now = self.workbench.root, self._cache, self.workbench.clock()

        def go(runs: list[RunEntry]) -> None:
            found = run_beside(runs, self.entry, step)
            if isinstance(found, str):
                self.workbench.tell(found, "warning")
                return
            self.chosen = True
            self.follow(found)

        self.background.start("step", lambda reporter: runs_by_age(root, cache, now, reporter), done=go, failed=self.say_failure)

    def close_innermost(self) -> bool:
        if super().close_innermost():
            return True
        if not self.filter.passes_all:
            self.filter = StreamFilter()
            self.query_one(FinishedPane).box.clear_and_close()
            self.draw()
            return True
        if self.has_class("-with-log"):
            self.remove_class("-with-log")
            self.show_pane("finished")
            return True
        return False

    def thing_to_copy(self) -> tuple[str, str] | None:
        if self.entry is None:
            return None
        line = self.query_one(FinishedPane).line_under_cursor()
        if line is None or self.shot is None:
            return str(self.entry.paths.rollouts), "the path"
        return f"{self.entry.paths.rollouts} task:{line.task} rollout:{line.rollout}", "where the rollout is"
