"""The panes between the numbers and the streams: rewards, failures, tokens and times."""

from __future__ import annotations

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from screens.rollouts import charts
from screens.rollouts.histograms import Chart, Metric, draw_histogram
from screens.rollouts.run_pane import update_static
from screens.rollouts.snapshot import RunSnapshot
from screens.widgets.formatting import count
from screens.widgets.pane import Pane
from screens.widgets.virtual_list import VirtualList

_PADDING = 2
"""Cells beside a chart; see the style sheet."""


class RewardPane(Pane):
    """The histogram of rewards, or of what else a rollout tells; a click on a bar tells what it counts."""

    class BarClicked(Message):
        """A bar was clicked that counts values of `metric` from `low` to `high`."""

        def __init__(self, metric: Metric, low: float, high: float) -> None:
            super().__init__()
            self.metric = metric
            self.low = low
            self.high = high

    def __init__(self, title: str, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(title, id=id, classes=classes)
        self.metric = Metric.REWARD
        self._shot: RunSnapshot | None = None
        self._chart = Chart(())

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield Static(id="reward-chart", markup=False)

    def draw(self, shot: RunSnapshot) -> None:
        self._shot = shot
        self.show_ready()
        right = f"{count(shot.rewards)} scored" if self.metric is Metric.REWARD else ""
        self.set_heading(self.metric.value, right=right, foot=f"h {self.metric.next.value.lower()}")
        if self.display and self.content_size.height:
            width, height = self.content_size.width - _PADDING, self.content_size.height
            self._chart = draw_histogram(shot, self.metric, width, height)
            update_static(self.query_one("#reward-chart", Static), Content("\n".join(self._chart.lines)))

    def show_next_metric(self) -> None:
        """Draw another distribution."""
        self.metric = self.metric.next
        if self._shot is not None:
            self.draw(self._shot)

    def forget(self) -> None:
        """What was drawn is of no run any more."""
        self._shot = None

    def on_resize(self, _event: events.Resize) -> None:
        """Also when the pane comes into view, which in a narrow terminal it is not: a run that is over is drawn only once."""
        if self._shot is not None:
            self.draw(self._shot)

    @on(events.Click, "#reward-chart")
    def _tell_bar(self, event: events.Click) -> None:
        offset = event.get_content_offset(self.query_one("#reward-chart", Static))
        bar = None if offset is None else self._chart.bin_at(offset.x, offset.y)
        if bar is not None:
            self.post_message(self.BarClicked(self.metric, bar.low, bar.high))


class FailuresPane(Pane):
    """Failures by class; the foot tells why a rollout of the class under the cursor failed last."""

    def __init__(self, title: str, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(title, id=id, classes=classes)
        self._shot: RunSnapshot | None = None

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield VirtualList(charts.FAILURE_COLUMNS, id="failure-list")

    def draw(self, shot: RunSnapshot) -> None:
        self._shot = shot
        classes = self.query_one(VirtualList)
        classes.show(charts.FailureRows(shot))
        self.set_heading(right=charts.failures_title(shot), foot=charts.last_reason(shot, classes.cursor_key))
        if shot.failures:
            self.show_ready()
        else:
            self.show_empty("No failure." if shot.finished_count else "Nothing has finished yet.")

    @on(VirtualList.Highlighted)
    def _say_reason(self, message: VirtualList.Highlighted) -> None:
        if self._shot is not None:
            self.set_heading(foot=charts.last_reason(self._shot, message.list.cursor_key))


class TokensPane(Pane):
    """Tokens and times per rollout, and the rate."""

    def __init__(self, title: str, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(title, id=id, classes=classes)
        self._shot: RunSnapshot | None = None

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield Static(id="token-chart", markup=False)

    def draw(self, shot: RunSnapshot) -> None:
        self._shot = shot
        self.show_ready()
        if self.display:
            width, height = self.content_size.width - _PADDING, self.content_size.height
            update_static(self.query_one("#token-chart", Static), charts.tokens_and_times(shot, width, height))

    def forget(self) -> None:
        """What was drawn is of no run any more."""
        self._shot = None

    def on_resize(self, _event: events.Resize) -> None:
        if self._shot is not None:
            self.draw(self._shot)
