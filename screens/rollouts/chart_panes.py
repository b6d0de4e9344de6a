"""The panes between the numbers and the streams: rewards, failures, tokens and times."""

from __future__ import annotations

from textual import events, on
from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import Static

from screens.rollouts import charts
from screens.rollouts.run_pane import update_static
from screens.rollouts.snapshot import RunSnapshot
from screens.widgets.formatting import count
from screens.widgets.pane import Pane
from screens.widgets.virtual_list import VirtualList


class RewardPane(Pane):
    """The histogram of rewards; a click on a bar tells which rewards it counts."""

    class BarClicked(Message):
        """A bar was clicked that counts rewards from `low` to `high`."""

        def __init__(self, low: float, high: float) -> None:
            super().__init__()
            self.low = low
            self.high = high

    def __init__(self, title: str, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(title, id=id, classes=classes)
        self._shot: RunSnapshot | None = None

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield Static(id="reward-chart", markup=False)

    def draw(self, shot: RunSnapshot) -> None:
        self._shot = shot
        self.show_ready()
        self.set_heading(right=f"{count(shot.rewards)} scored")
        if self.display and self.content_size.height:
            update_static(self.query_one("#reward-chart", Static), charts.reward_chart(shot, self.content_size.height))

    def on_resize(self, _event: events.Resize) -> None:
        """Also when the pane comes into view, which in a narrow terminal it is not: a run that is over is drawn only once."""
        if self._shot is not None:
            self.draw(self._shot)

    @on(events.Click, "#reward-chart")
    def _tell_bar(self, event: events.Click) -> None:
        chart = self.query_one("#reward-chart", Static)
        offset = event.get_content_offset(chart)
        if offset is None or self._shot is None:
            return
        bar = charts.bar_at(self._shot, offset.x)
        if bar is not None and offset.y < self.content_size.height - charts.ROWS_BELOW:
            self.post_message(self.BarClicked(bar.low, bar.high))


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
            update_static(self.query_one("#token-chart", Static), charts.tokens_and_times(shot, self.content_size.width))

    def on_resize(self, _event: events.Resize) -> None:
        if self._shot is not None:
            self.draw(self._shot)
