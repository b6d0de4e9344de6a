"""The pane with the numbers of the run."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from screens.rollouts import header_lines
from screens.rollouts.histograms import strip_of_rewards
from screens.rollouts.snapshot import RunSnapshot
from screens.widgets.formatting import age
from screens.widgets.pane import Pane

SILENT_SECONDS = 60.0
"""Without a sign of life for longer, a run on another machine is shown as stale."""
_MOST_LINES = {False: 8, True: 7}
"""Lines of numbers and remarks, by whether the terminal is narrow."""


class RunPane(Pane):
    """Progress, rate, score, servers and remarks."""

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield Static(id="numbers", markup=False)

    def draw(self, shot: RunSnapshot, name: str, *, narrow: bool) -> None:
        """Draw a moment of the run called `name`."""
        if shot.running and (shot.entry.silent_for or 0) > SILENT_SECONDS:
            self.show_stale(f"no sign of life for {age(shot.entry.silent_for)}")
        else:
            self.show_ready()
        self.set_heading(header_lines.title(shot, name), header_lines.right_title(shot), header_lines.foot(shot))
        width = self.content_size.width - 2
        lines = header_lines.header_lines(shot, width, narrow=narrow)
        if narrow:
            lines.insert(3, Content(strip_of_rewards(shot, width)))
        update_static(self.query_one("#numbers", Static), Content("\n").join(lines[: _MOST_LINES[narrow]]))


def update_static(widget: Static, content: Content) -> None:
    """Change what a widget shows; the screen is laid out anew only when the number of lines has changed."""
    old = widget.content
    if not isinstance(old, Content) or not old.is_same(content):
        widget.update(content, layout=not isinstance(old, Content) or old.plain.count("\n") != content.plain.count("\n"))
