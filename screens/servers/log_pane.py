"""The log of one server: followed at its end, searched, narrowed to words, errors or the last minutes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from textual import on
from textual.app import ComposeResult

from backend.io.tail import Follower
from screens.servers.log_lines import WINDOWS, LogFilter, LogLine, LogParser
from screens.widgets.background import Background, Failure, Reported, Reporter
from screens.widgets.filter_box import FilterBox
from screens.widgets.formatting import count
from screens.widgets.pane import Pane
from screens.widgets.virtual_text import VirtualText
from screens.widgets.workbench import workbench_of

KEPT_LINES = 10_000
LAST_BYTES = 4 << 20
"""Of a log that is there already, so much is read."""
LINES_AT_ONCE = 2_000
"""Lines are handed to the loop in pieces, or it would stand still when a long log is opened."""
WINDOW_LOOK_SECONDS = 5.0
"""How often lines that have become too old for the last minutes are taken away."""
_FOLLOW_SECONDS = 0.25
_SLICE_SECONDS = 0.03


@dataclass(frozen=True, slots=True)
class NewLogLines:
    """What a log has gained."""

    lines: tuple[LogLine, ...]
    skipped: bool = False
    """Lines before these are not shown."""
    restarted: bool = False


class LogPane(Pane):
    """Shows the last 10,000 lines of a log; `show_log` tells it of which server."""

    DEFAULT_CSS = """
    LogPane.-message > FilterBox.-open { display: block; }
    """

    def __init__(self, *, id: str, classes: str) -> None:
        super().__init__("Log", id=id, classes=classes)
        self.filter = LogFilter()
        self.times = False
        self.path: Path | None = None
        self.shown_log: tuple[str, str] | None = None
        """The server and its log, None at first."""
        self._lines: deque[LogLine] = deque(maxlen=KEPT_LINES)
        self._shown = 0
        self._cut = False
        self._pattern = ""
        self._background: Background[None] = Background(self)

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield VirtualText(id="log-text", kept_lines=KEPT_LINES)
        yield FilterBox("search the log", id="log-search", anew=True)
        yield FilterBox("words that lines must have; -word leaves lines out", id="log-filter")

    @property
    def text(self) -> VirtualText:
        """Where the lines stand."""
        return self.query_one("#log-text", VirtualText)

    @property
    def search_box(self) -> FilterBox:
        return self.query_one("#log-search", FilterBox)

    @property
    def filter_box(self) -> FilterBox:
        return self.query_one("#log-filter", FilterBox)

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(WINDOW_LOOK_SECONDS, self._let_lines_go)

    def show_log(self, server: str, log: str) -> None:
        """Follow the log of another server; with no path, say that it has none."""
        if (server, log) == self.shown_log:
            return
        self.shown_log = (server, log)
        self.path = path = Path(log) if log else None
        self._background.stop_all()
        self._begin_anew()
        self.set_heading(f"Log  {server}" if server else "Log")
        if path is None:
            self.show_empty("This server has no log file." if server else "The log of the server under the cursor is shown here.")
            self._say()
            return
        self.show_empty("This log is empty.")
        self._say()
        clock = workbench_of(self).clock
        self._background.start(
            "log", lambda reporter: follow_log(path, clock, reporter), done=lambda _none: None, failed=self._fail,
            partly=self._add, endless=True,
        )  # fmt: skip

    def change_filter(self, **changes: Any) -> None:
        """Show other lines."""
        self.filter = replace(self.filter, **changes)
        self._fill()

    def next_window(self) -> None:
        """Only the last minutes, or all, one after the other."""
        index = WINDOWS.index(self.filter.seconds)
        self.change_filter(seconds=WINDOWS[(index + 1) % len(WINDOWS)])

    def toggle_times(self) -> None:
        """Times in a column of their own, or as the lines have them."""
        self.times = not self.times
        self._fill()

    def follow_end(self) -> None:
        """Go to the end and stay there."""
        self.text.action_scroll_end()
        self._say()

    def shown_lines(self) -> list[str]:
        """The lines that pass the filter, without colours."""
        return [self._drawn(line) for line in self.filter.chosen(self._lines, self._now)]

    def close_innermost(self) -> bool:
        """Take away the search, the filter, or what else narrows the log; False when nothing does."""
        if self.search_box.clear_and_close() or self._pattern:
            self._search("")
        elif self.filter_box.clear_and_close() or not self.filter.passes_all:
            self.filter_box.clear_and_close()
            self.filter = LogFilter()
            self._fill()
        else:
            return False
        self.text.focus()
        return True

    @property
    def _now(self) -> float:
        return workbench_of(self).clock()

    def _begin_anew(self) -> None:
        self._lines.clear()
        self._shown, self._cut = 0, False
        self.text.set_lines(())
        if self._pattern:
            self.text.search(self._pattern)

    def _add(self, new: NewLogLines) -> None:
        if new.restarted:
            self._begin_anew()
        self._cut = self._cut or new.skipped or len(self._lines) + len(new.lines) > KEPT_LINES
        self._lines.extend(new.lines)
        self._append(self.filter.chosen(new.lines, self._now))

    def _append(self, lines: Iterable[LogLine]) -> None:
        groups = []
        for kind, group in groupby(lines, key=lambda line: line.kind):
            texts = [self._drawn(line) for line in group]
            self._shown += len(texts)
            groups.append((kind, texts))
        if groups:
            self.text.append_kinds(groups)
        self._say()

    def _fill(self) -> None:
        """Show all lines that pass; who has scrolled up stays away from the end as far as he was."""
        text = self.text
        follow, above = text.follow, text.max_scroll_y - text.scroll_offset.y
        self._shown = 0
        text.set_lines(())
        self._append(self.filter.chosen(self._lines, self._now))
        if not follow:
            text.scroll_to(y=max(0, text.max_scroll_y - above))
        if self._pattern:
            text.search(self._pattern)
        self._say()

    def _let_lines_go(self) -> None:
        if self.filter.seconds and self.text.follow and self._shown:
            self._fill()

    def _drawn(self, line: LogLine) -> str:
        return line.with_time() if self.times else line.text

    def _fail(self, failure: Failure) -> None:
        self.show_failure(failure, "another server's log may be there")

    def _say(self) -> None:
        """The state of the pane, and what its border says."""
        if self._shown:
            self.show_ready()
        elif self._lines:
            self.show_empty("No line passes the filter.", "esc takes it away")
        text = self.text
        number = len(self._lines)
        all_lines = f"{'the last ' if self._cut else ''}{count(number)} line{'' if number == 1 else 's'}"
        lines = all_lines if self.filter.passes_all else f"{count(min(self._shown, number))} of {all_lines}"
        words = [self._narrowed(), "follow" if text.follow else "paused", lines]
        self.set_heading(right=" · ".join(filter(None, words)) if self._lines else "", foot=self._foot_text())

    def _narrowed(self) -> str:
        parts = ["errors only" if self.filter.only_errors else ""]
        parts.append(f"last {self.filter.seconds // 60} min" if self.filter.seconds else "")
        parts.append(f"only {self.filter.words.strip()}" if self.filter.words.strip() else "")
        return " · ".join(filter(None, parts))

    def _foot_text(self) -> str:
        parts = []
        if self._pattern:
            number, total = self.text.hit_position
            more = "" if self.text.search_finished else " or more"
            parts.append(f"match {number}/{count(total)}{more}  n N  esc" if total else "no match  esc")
        if self.text.pending:
            pending = self.text.pending
            parts.append(f"+{count(pending)} new line{'' if pending == 1 else 's'} below: f")
        return " · ".join(parts)

    def _search(self, pattern: str) -> None:
        self._pattern = pattern
        self.text.search(pattern)
        self._say()

    @on(FilterBox.Filtered, "#log-search")
    def _search_typed(self, message: FilterBox.Filtered) -> None:
        message.stop()
        if message.text != self._pattern:
            self._search(message.text)
        if message.done and message.text:
            self.text.next_hit()

    @on(FilterBox.Filtered, "#log-filter")
    def _filter_typed(self, message: FilterBox.Filtered) -> None:
        message.stop()
        if message.text != self.filter.words:
            self.change_filter(words=message.text)

    @on(FilterBox.Left)
    def _box_left(self, message: FilterBox.Left) -> None:
        message.stop()
        self.call_after_refresh(self.text.focus)

    @on(VirtualText.Searched, "#log-text")
    @on(VirtualText.Scrolled, "#log-text")
    def _text_changed(self, message: VirtualText.Sent) -> None:
        message.stop()
        self._say()

    def on_reported(self, message: Reported) -> None:
        self._background.receive(message)

    def on_unmount(self) -> None:
        self._background.stop_all()


def follow_log(path: Path, clock: Callable[[], float], reporter: Reporter) -> None:
    """Tell the last lines of a log, then what is added, in pieces of at most 2,000 lines, until cancelled."""
    parser = LogParser()
    new: deque[LogLine] = deque(maxlen=KEPT_LINES)
    restarted = arrived = False
    with Follower(path, last_bytes=LAST_BYTES) as follower:
        skipped = follower.skipped > 0
        while not reporter.cancelled:
            read = follower.read()
            if read.restarted:
                new.clear()
                parser, restarted, skipped = LogParser(), True, False
            skipped = skipped or len(new) + len(read.lines) > KEPT_LINES
            new.extend(parser.parse(read.lines[-KEPT_LINES:], clock(), arrived=arrived))
            if read.more:
                continue
            arrived = True
            while (new or restarted) and not reporter.cancelled:
                piece = tuple(new.popleft() for _ in range(min(len(new), LINES_AT_ONCE)))
                reporter.tell(NewLogLines(piece, skipped, restarted))
                restarted = False
                reporter.wait(_SLICE_SECONDS)
            reporter.wait(_FOLLOW_SECONDS)
