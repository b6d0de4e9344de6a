"""The logs of a run's servers, one at a time, followed at their end."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from pathlib import Path

from textual.app import ComposeResult

from backend.io.tail import Follower
from screens.widgets.background import Background, Failure, Reported, Reporter
from screens.widgets.pane import Pane
from screens.widgets.virtual_text import VirtualText

FIRST_LINES = 2000
_FOLLOW_SECONDS = 0.25


class LogPane(Pane):
    """Shows `<folder>/<server>.log`; `next_log` goes on to the next server."""

    def __init__(self, title: str, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(title, id=id, classes=classes)
        self._folder: Path | None = None
        self._server = ""
        self._lines = 0
        self._background: Background[None] = Background(self)

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield VirtualText(id="log-text")

    def follow_logs(self, folder: Path) -> None:
        """Show the logs of another run, when asked for."""
        self._folder, self._server = folder, ""
        self._background.stop_all()

    def next_log(self) -> None:
        """The next server's log; those in which something is come first."""
        names = _logs(self._folder) if self._folder is not None else []
        if not names or self._folder is None:
            self.show_empty("There is no log yet.")
            return
        self._server = names[(names.index(self._server) + 1) % len(names)] if self._server in names else names[0]
        self._lines = 0
        self.query_one(VirtualText).set_lines([])
        self.set_heading(f"Log  {self._server}", right="", foot="l next server · esc closes")
        path = self._folder / f"{self._server}.log"
        self.show_empty("This log is empty.")
        self._background.start(
            "log",
            lambda reporter: _follow(path, reporter),
            done=lambda _none: None,
            failed=self._fail,
            partly=self._add,
            endless=True,
        )

    def _add(self, new: tuple[str, ...]) -> None:
        self._lines += len(new)
        self.show_ready()
        text = self.query_one(VirtualText)
        text.append_lines(list(new))
        self.set_heading(right=f"{'follow' if text.follow else 'paused'} · {self._lines} lines")

    def _fail(self, failure: Failure) -> None:
        self.show_failure(failure, "l another log")

    def on_reported(self, message: Reported) -> None:
        self._background.receive(message)

    def on_unmount(self) -> None:
        self._background.stop_all()


def _logs(folder: Path) -> list[str]:
    found = []
    for path in folder.glob("*.log"):
        with suppress(OSError):  # it may be gone again
            found.append((not path.stat().st_size, path.stem))
    return [name for _, name in sorted(found)]


def _follow(path: Path, reporter: Reporter) -> None:
    """Tell the last lines of a log, then what is added, until cancelled."""
    follower = Follower(path)
    last: deque[str] = deque(maxlen=FIRST_LINES)
    try:
        while not reporter.cancelled:
            new = follower.read()
            last.extend(new.lines)
            if new.more:
                continue
            if last:
                reporter.tell(tuple(last))
                last.clear()
            reporter.wait(_FOLLOW_SECONDS)
    finally:
        follower.close()
