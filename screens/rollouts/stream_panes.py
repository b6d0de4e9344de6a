"""The panes of rollouts: what has finished, and what is in flight."""

from __future__ import annotations

from textual.app import ComposeResult

from backend.rollouts.run_progress_parts import Finished
from screens.rollouts.previews import Previews
from screens.rollouts.snapshot import RunSnapshot
from screens.rollouts.stream_filter import StreamFilter
from screens.rollouts.stream_rows import FINISHED_COLUMNS, IN_FLIGHT_COLUMNS, FinishedRows, InFlightRows
from screens.widgets.filter_box import FilterBox
from screens.widgets.formatting import count
from screens.widgets.pane import Pane
from screens.widgets.virtual_list import VirtualList


class FinishedPane(Pane):
    """Finished rollouts, newest first, with a filter."""

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield VirtualList(FINISHED_COLUMNS, id="finished-list", newest_first=True)
        yield FilterBox("reward<1  task:183  fail:timeout  words", id="stream-filter")

    @property
    def stream(self) -> VirtualList:
        return self.query_one("#finished-list", VirtualList)

    @property
    def box(self) -> FilterBox:
        return self.query_one("#stream-filter", FilterBox)

    def line_under_cursor(self) -> Finished | None:
        """The rollout under the cursor."""
        rows = self.stream.rows
        return rows.lines[self.stream.cursor] if isinstance(rows, FinishedRows) and self.stream.cursor < len(rows) else None

    def draw(self, shot: RunSnapshot, chosen: StreamFilter, previews: Previews, *, paused: bool) -> None:
        lines = shot.finished
        if not chosen.passes_all:
            lines = tuple(line for line in lines if chosen.matches(line, previews.known(line)))
        self.stream.show(FinishedRows(lines, previews.get))
        shown = count(len(lines)) if chosen.passes_all else f"{count(len(lines))} of {count(len(shot.finished))}"
        kept = f" (the last of {count(shot.arrivals)})" if shot.arrivals > len(shot.finished) else ""
        live = "live" if shot.running and not paused else ""
        self.set_heading(right=" · ".join(filter(None, (f"{shown}{kept}", "newest first", live))), foot=self._foot_text(chosen))
        if lines and paused:
            self.show_stale("paused")
        elif lines:
            self.show_ready()
        elif shot.finished:
            self.show_empty("Nothing matches.", "esc takes the filter away")
        else:
            self.show_empty("No rollout has finished yet." if shot.running else "No rollout has finished.")

    def _foot_text(self, chosen: StreamFilter) -> str:
        parts = [f"+{self.stream.arrived} new above"] if self.stream.arrived else []
        if chosen.text:
            parts.append(chosen.problem or f"filter {chosen.text}")
        if chosen.only_failures:
            parts.append("only failures")
        return " · ".join(parts)


class FlightPane(Pane):
    """Rollouts on their way, with their stage and last sign of life."""

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield VirtualList(IN_FLIGHT_COLUMNS, id="flight-list")

    def draw(self, shot: RunSnapshot) -> None:
        self.query_one(VirtualList).show(InFlightRows(shot.in_flight))
        lost = " given up" if shot.in_flight_count and not shot.running else ""
        self.set_heading(right=f"{count(shot.in_flight_count)}{lost}")
        if shot.in_flight:
            self.show_ready()
        else:
            self.show_empty("Nothing is in flight." if shot.running else "The run is over.")
