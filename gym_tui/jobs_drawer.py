"""The jobs drawer: what was started from here, its output, and what was told. Opens below the screen, which stays in use."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message

from backend.errors import GymError
from gym_tui.jobs import Job, LogReader
from gym_tui.jobs_again import proposal
from screens.results.prefill import Prefill
from screens.widgets import glyphs
from screens.widgets.background import Background, Failure, Reported, Reporter
from screens.widgets.columns import Column
from screens.widgets.formatting import clock_time
from screens.widgets.key_table import bindings, keys_of
from screens.widgets.pane import Pane
from screens.widgets.virtual_list import Cell, Row, VirtualList
from screens.widgets.virtual_text import VirtualText
from screens.widgets.workbench import workbench_of

_LOOK_SECONDS = 0.5
_SEVERITY_STYLES = {"warning": "warn", "error": "bad"}


class _JobRows:
    def __init__(self, jobs: Sequence[Job], now: float, shares: dict[str, float]) -> None:
        self._jobs = jobs
        self._now = now
        self._shares = shares

    def __len__(self) -> int:
        return len(self._jobs)

    def row(self, index: int) -> Row:
        job = self._jobs[index]
        state, style, sign = _state(job)
        share = self._shares.get(job.name)
        if job.running and share is not None:
            state = f"{state} {share:.0%}"
        cells = (Cell(state, style), clock_time(job.seconds(self._now)), job.command)
        return Row(cells, sign=sign, sign_style=style, muted=not job.running)

    def key(self, index: int) -> Hashable:
        return self._jobs[index].name

    def index_of(self, key: Hashable) -> int | None:
        return next((index for index, job in enumerate(self._jobs) if job.name == key), None)


class _NoticeRows:
    def __init__(self, notices: Sequence[tuple[float, str, str]], now: float) -> None:
        self._notices = notices
        self._now = now

    def __len__(self) -> int:
        return len(self._notices)

    def row(self, index: int) -> Row:
        told_at, severity, text = self._notices[index]
        sign = glyphs.current().warning if severity in _SEVERITY_STYLES else ""
        style = _SEVERITY_STYLES.get(severity, "plain")
        return Row((Cell(clock_time(self._now - told_at), "muted"), Cell(text, style)), sign=sign, sign_style=style)

    def key(self, index: int) -> Hashable:
        return self._notices[index]

    def index_of(self, key: Hashable) -> int | None:
        return next((index for index, notice in enumerate(self._notices) if notice == key), None)


class JobsDrawer(Vertical):
    """Reads `jobs` and `notices` of the workbench, which it never changes; `stop` and `again` are the workbench's as well."""

    BINDINGS = bindings("jobs")
    HELP = (
        "Jobs go on when the workbench is closed. `x` twice stops one, `Y` copies its command, `R` starts it again; where that would"
        " replace results, it puts a command that does not on the command line."
    )
    SCOPED_CSS = False
    """The rules for narrow terminals begin with the screen."""
    DEFAULT_CSS = """
    JobsDrawer {
        height: 55%;
        min-height: 10;
        & > Horizontal { height: 2fr; }
        & #jobs-pane { width: 3fr; }
        & #job-log-pane { width: 4fr; }
        & #notices-pane { height: 1fr; min-height: 3; }
    }
    .-narrow JobsDrawer {
        height: 80%;
        & > Horizontal { layout: vertical; height: 1fr; }
        & #jobs-pane { width: 1fr; height: 7; }
        & #job-log-pane { width: 1fr; height: 1fr; }
        & #notices-pane { height: 5; }
    }
    """

    class Closed(Message):
        """The drawer wants to go."""

    def __init__(
        self,
        jobs: Callable[[], Sequence[Job]],
        notices: Callable[[], Sequence[tuple[float, str, str]]],
        shares: dict[str, float],
        stop: Callable[[Job], None],
        again: Callable[[Job], None],
    ) -> None:
        super().__init__(classes="drawer")
        self._jobs = jobs
        self._notices = notices
        self._shares = shares
        self._stop = stop
        self._again = again
        self._background: Background[Any] = Background(self)
        self._shown: str | None = None
        self._about_to_stop: str | None = None

    def compose(self) -> ComposeResult:
        columns = [Column("state", "STATE", 13), Column("time", "TIME", 8, right=True), Column("command", "COMMAND")]
        with Horizontal():
            with Pane("Jobs", id="jobs-pane"):
                yield VirtualList(columns, id="job-list", header=False)
            with Pane("Output", id="job-log-pane"):
                yield VirtualText(id="job-log")
        with Pane("Notices", id="notices-pane"):
            yield VirtualList([Column("ago", "AGO", 8, right=True), Column("text", "WHAT")], id="notice-list", header=False)

    def on_mount(self) -> None:
        if not self.query("#job-log"):  # the workbench is ending, and mounts nothing any more
            return
        self.query_one("#job-log", VirtualText).follow = True
        self.look()
        self.set_interval(_LOOK_SECONDS, self.look)
        self.query_one("#job-list", VirtualList).focus()

    def look(self) -> None:
        """Draw what there is now."""
        now = workbench_of(self).clock()
        jobs = list(reversed(self._jobs()))
        pane = self.query_one("#jobs-pane", Pane)
        running = sum(job.running for job in jobs)
        if jobs:
            pane.show_ready()
        else:
            pane.show_empty("Nothing was started from here.", "`:` starts a command, for instance `:list runs`.")
        pane.set_heading(right=f"{running} running, {len(jobs)} in all" if jobs else "", foot=self._foot())
        rows = self.query_one("#job-list", VirtualList)
        rows.show(_JobRows(jobs, now, self._shares))
        notices = list(reversed(self._notices()))
        self.query_one("#notice-list", VirtualList).show(_NoticeRows(notices, now))
        notices_pane = self.query_one("#notices-pane", Pane)
        if notices:
            notices_pane.show_ready()
        else:
            notices_pane.show_empty("Nothing was told yet.")
        self._follow_log()

    @property
    def job(self) -> Job | None:
        """The job under the cursor."""
        key = self.query_one("#job-list", VirtualList).cursor_key
        return next((job for job in self._jobs() if job.name == key), None)

    def show_job(self, name: str) -> None:
        """Put the cursor on a job."""
        self.look()
        self.query_one("#job-list", VirtualList).move_to_key(name)
        self._follow_log()

    def _foot(self) -> str:
        if self._about_to_stop is not None:
            return "x once more stops it   any other key does not"
        return "x stop   R again   Y copy   esc close"

    def _follow_log(self) -> None:
        job = self.job
        name = job.name if job is not None else None
        if name == self._shown:
            return
        self._shown = name
        text = self.query_one("#job-log", VirtualText)
        text.set_lines([])
        pane = self.query_one("#job-log-pane", Pane)
        self._background.stop_all()
        if job is None:
            pane.show_empty("The output of a job is shown here.")
            return
        pane.set_heading(f"Output of {job.command}")
        pane.show_empty("It has said nothing yet." if job.running else "It said nothing.")
        self._background.start(
            "log",
            lambda reporter: _follow(job, reporter),
            done=lambda _none: None,
            failed=self._log_failed,
            partly=self._add_lines,
            endless=True,
        )

    def _add_lines(self, lines: Iterable[str]) -> None:
        self.query_one("#job-log-pane", Pane).show_ready()
        self.query_one("#job-log", VirtualText).append_lines(lines)

    def _log_failed(self, failure: Failure) -> None:
        self.query_one("#job-log-pane", Pane).show_failure(failure)

    @on(VirtualList.Highlighted)
    def _highlighted(self, message: VirtualList.Highlighted) -> None:
        message.stop()
        if message.list.id == "job-list":
            if self.job is None or self.job.name != self._about_to_stop:
                self._about_to_stop = None
            self._follow_log()

    @on(VirtualList.Opened)
    def _opened(self, message: VirtualList.Opened) -> None:
        message.stop()
        if message.list.id == "job-list":
            self.query_one("#job-log", VirtualText).focus()

    def on_reported(self, message: Reported) -> None:
        self._background.receive(message)

    def on_unmount(self) -> None:
        self._background.stop_all()

    def on_key(self, event: events.Key) -> None:
        if self._about_to_stop is not None and event.key not in keys_of("jobs.stop", self.app._keymap):
            self._about_to_stop = None
            self.look()

    def action_stop_job(self) -> None:
        job = self.job
        if job is None or not job.running:
            workbench_of(self).tell("there is no running job to stop here", "warning")
        elif self._about_to_stop == job.name:
            self._about_to_stop = None
            try:
                self._stop(job)
            except GymError as error:
                workbench_of(self).tell(str(error), "error")
        else:
            self._about_to_stop = job.name
        self.look()

    def action_start_again(self) -> None:
        job = self.job
        if job is None:
            return
        being_written = frozenset(other.output for other in self._jobs() if other.running and other.output is not None)

        def go_on(instead: Prefill | None) -> None:
            if instead is None:
                self._again(job)
                return
            for remark in instead.remarks:
                workbench_of(self).tell(remark, "warning")
            workbench_of(self).prefill_command(instead.text, instead.folder)

        def failed(failure: Failure) -> None:
            workbench_of(self).tell(failure.message, "error")

        self._background.start("again", lambda _reporter: proposal(job, being_written), done=go_on, failed=failed)

    def action_copy_job(self) -> None:
        job = self.job
        if job is not None:
            workbench_of(self).copy_text(job.command, "the command")

    def action_next_part(self) -> None:
        self._step(1)

    def action_previous_part(self) -> None:
        self._step(-1)

    def _step(self, step: int) -> None:
        parts = [self.query_one(name) for name in ("#job-list", "#job-log", "#notice-list")]
        at = next((index for index, part in enumerate(parts) if part.has_focus), -1)
        parts[(at + step) % len(parts)].focus()

    def action_close(self) -> None:
        self.post_message(self.Closed())


def _state(job: Job) -> tuple[str, str, str]:
    """What a job does, its style and its sign."""
    signs = glyphs.current()
    if job.running:
        return ("stopping", "warn", signs.starting) if job.stops else ("running", "good", signs.running)
    if job.code == 0:
        return "done", "good", signs.good
    if job.code is None:
        return "ended", "muted", signs.stopped
    if job.stopped:
        return "stopped", "warn", signs.stopped
    if job.code < 0:
        return f"signal {-job.code}", "bad", signs.failed
    return f"exit {job.code}", "bad", signs.failed


def _follow(job: Job, reporter: Reporter) -> None:
    """Tell a log's last lines, then what is added, until the job has ended or nobody listens."""
    log = LogReader(job.log)
    while not reporter.cancelled:
        ended = not job.running
        lines = log.read(to_the_end=ended)
        if lines:
            reporter.tell(lines)
        elif ended or not reporter.wait(_LOOK_SECONDS / 2):
            return
