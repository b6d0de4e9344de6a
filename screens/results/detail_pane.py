"""The pane that shows what is known of one run; it follows the list's cursor a moment late."""

from __future__ import annotations

from typing import Any

from textual.app import ComposeResult
from textual.timer import Timer

from backend.rollouts.run_entry import RunEntry
from screens.results.detail_blocks import detail_blocks
from screens.results.details import RunDetails, read_details
from screens.results.finding import run_key
from screens.widgets.background import Background, Failure, Reported, Reporter
from screens.widgets.pane import Pane
from screens.widgets.text_blocks import plain_text
from screens.widgets.virtual_text import VirtualText
from screens.widgets.workbench import workbench_of

DETAIL_SECONDS = 0.12


class DetailPane(Pane):
    """Details of a run, read in a thread; `follow` tells it of which."""

    def __init__(self, *, id: str, classes: str) -> None:
        super().__init__("Run", id=id, classes=classes)
        self.background = Background[Any](self)
        self._wanted: RunEntry | None = None
        self._shown: RunEntry | None = None
        self._details: RunDetails | None = None
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield VirtualText(id="detail-text")

    @property
    def text(self) -> VirtualText:
        """Where the details stand."""
        return self.query_one("#detail-text", VirtualText)

    def on_reported(self, message: Reported) -> None:
        self.background.receive(message)

    def on_unmount(self) -> None:
        self.background.stop_all()

    def follow(self, run: RunEntry | None) -> None:
        """Show this run, when no other is wanted for a moment; None for nothing."""
        wanted, self._wanted = self._wanted, run
        if run is None:
            self._show_nothing()
        elif run == self._shown:
            return
        elif self._timer is None:
            workbench_of(self).begin_work()
            self._timer = self.set_timer(DETAIL_SECONDS, self._begin)
        elif wanted is None or run_key(run) != run_key(wanted):
            self._timer.reset()

    def read_again(self) -> None:
        """Read the details of the run once more."""
        run, self._shown = self._wanted, None
        self.follow(run)

    def part_under_cursor(self) -> tuple[str, str] | None:
        """The text of a part of the details, and what it is called."""
        blocks = self.text.blocks
        if self._shown is None or not blocks:
            return None
        block = blocks[self.text.cursor]
        return block.body or plain_text(block), block.head.lower()

    def _shows(self, run: RunEntry) -> bool:
        return self._shown is not None and run_key(run) == run_key(self._shown)

    def _begin(self) -> None:
        self._timer = None
        run = self._wanted
        if run is not None:
            same = self._shows(run)
            self._shown = run
            self._details = self._details if same else None
            self._show(keep=same)
            self.background.start("details", lambda reporter: _read(run, reporter), done=self._read, failed=self._not_read)
        workbench_of(self).end_work()

    def _read(self, found: tuple[RunEntry, RunDetails]) -> None:
        run, self._details = found
        if self._shows(run):
            self._show(keep=True)

    def _not_read(self, failure: Failure) -> None:
        self.show_failure(failure, "ctrl+r tries again")

    def _show(self, *, keep: bool) -> None:
        run = self._shown
        if run is None:
            return
        if self._details is None:
            self.show_loading("reading its files", keep=True)
            self.remove_class("-message")
        else:
            self.show_ready()
        self.set_heading(run.name, run.state, "y copies the part under the cursor")
        workbench = workbench_of(self)
        self.text.set_blocks(detail_blocks(run, self._details, workbench.clock(), workbench.shown_path), keep_place=keep)

    def _show_nothing(self) -> None:
        self.background.stop("details")
        self._shown = self._details = None
        self.show_empty("No run under the cursor")
        self.set_heading("Run", "", "")


def _read(run: RunEntry, reporter: Reporter) -> tuple[RunEntry, RunDetails]:
    return run, read_details(run, lambda: reporter.cancelled)
