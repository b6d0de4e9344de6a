"""Keeps the jobs of one workbench: starts them, notices their end, shows them in the frame and in the drawer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.timer import Timer
from textual.widget import Widget

from backend.errors import GymError
from gym_tui.jobs import Job, jobs_of_earlier_workbenches, look_after, share_done, start_job, stop_job
from gym_tui.verbs import checked, evaluation_output
from screens.widgets import glyphs
from screens.widgets.frame import Part
from screens.widgets.workbench import Target
from screens.widgets.workbench_screen import WorkbenchScreen

if TYPE_CHECKING:
    from gym_tui.app import WorkbenchApp
    from gym_tui.jobs_drawer import JobsDrawer

_LOOK_SECONDS = 0.5
_STEERING = (("eval", "control"), ("env", "stop"))
"""What the screens show the effect of."""
_STACK = ("env", "start")
_LOOKS_PER_SHARE = 4
"""Events are read every fourth time."""


class JobKeeper:
    """All methods run on the loop; what they read of files is at most a few kilobytes."""

    def __init__(self, app: WorkbenchApp) -> None:
        self.all: list[Job] = []
        self.shares: dict[str, float] = {}
        """How much of a running evaluation is done, by the job's name."""
        self._app = app
        self._timer: Timer | None = None
        self._focus_before: Widget | None = None
        self._looks = 0

    def begin(self) -> None:
        """Find the jobs again that an earlier workbench started and that still run."""
        try:
            self.all = [*jobs_of_earlier_workbenches(), *self.all]
        except GymError:
            return
        if self.all:
            self._watch()

    def start(self, words: Sequence[str], folder: Path | None = None) -> Job | None:
        """Start `gym <words>` in `folder`, by default the working directory; what is wrong with it is told.

        An evaluation is shown as soon as its run begins, a stack of servers among the servers, other output at once; what steers a run
        or a stack shows there, and takes no focus away.
        """
        app = self._app
        place = folder if folder is not None else app.working_folder
        try:
            parsed = checked(words)
            output = evaluation_output(parsed, place) if parsed is not None else None
            job = start_job(words, place, app.clock(), output)
        except GymError as error:
            app.tell(str(error), "error")
            return None
        self.all.append(job)
        self._watch()
        if output is not None:
            app.tell(f"started: {job.command}")
        elif job.words[:2] == _STACK:
            app.tell(f"started: {job.command}")
            app.open_screen("servers")
        elif job.words[:2] not in _STEERING:
            self.open_drawer(job)
        return job

    def again(self, job: Job) -> None:
        """Start a job's command once more, in the same folder."""
        new = self.start(job.words, job.folder)
        if new is not None:
            self.open_drawer(new)

    def stop(self, job: Job) -> None:
        """Ask a job to stop. Raises `GymError` when that is not allowed."""
        stop_job(job)
        self._app.tell("asked the job to stop" if job.stops == 1 else "asked the job again: it stops at once")

    def look(self) -> None:
        """Notice what has changed."""
        app = self._app
        now = app.clock()
        running = [job for job in self.all if job.running]
        for job in running:
            if look_after(job, now):
                self.shares.pop(job.name, None)
                self._tell_end(job)
            elif not job.shown and job.run_folder is not None:
                job.shown = True
                app.open_screen("rollouts", Target(job.run_folder))
        self._looks += 1
        if self._looks % _LOOKS_PER_SHARE == 0:
            for job in running:
                share = share_done(job)
                if share is not None and job.running:
                    self.shares[job.name] = share
        app.draw_frame()
        if self._timer is not None and not any(job.running for job in self.all):
            self._timer.stop()
            self._timer = None

    def parts(self) -> tuple[Part, ...]:
        """What the frame says of jobs that run."""
        running = [job for job in self.all if job.running]
        if not running:
            return ()
        text = f"{glyphs.current().running} {len(running)} job{'' if len(running) == 1 else 's'}"
        shares = [self.shares[job.name] for job in running if job.name in self.shares]
        if shares:
            text += f" {sum(shares) / len(shares):.0%}"
        return (Part(f" {text} ", "busy", "app.jobs", "open the jobs drawer"),)

    def toggle_drawer(self) -> None:
        """Open the drawer; close it when it has the focus already."""
        drawer = self._drawer()
        if drawer is not None and drawer.has_focus_within:
            self.close_drawer()
        else:
            self.open_drawer()

    def open_drawer(self, job: Job | None = None) -> None:
        """Open the drawer below the screen in front, with the cursor on a job."""
        screen = self._app.front
        if not isinstance(screen, WorkbenchScreen):
            return
        drawer = self._drawer()
        if drawer is None:
            from gym_tui.jobs_drawer import JobsDrawer

            self._focus_before = screen.focused
            drawer = JobsDrawer(lambda: self.all, lambda: self._app.notices, self.shares, self.stop, self.again)
            screen.mount(drawer, after="#body")
        else:
            drawer.query_one("#job-list").focus()
        if job is not None:
            drawer.call_after_refresh(drawer.show_job, job.name)

    def close_drawer(self) -> None:
        """Take the drawer away, and give the focus back to the screen."""
        drawer = self._drawer()
        screen = self._app.front
        if drawer is not None and isinstance(screen, WorkbenchScreen):
            if drawer.has_focus_within:
                screen.set_focus(None)  # or removing would move it to whatever comes next
            drawer.remove()
            screen.call_after_refresh(self._focus_screen, screen)

    def _focus_screen(self, screen: WorkbenchScreen) -> None:
        before, self._focus_before = self._focus_before, None
        if screen.focused is None:
            if before is not None and before.is_attached and before.screen is screen:
                before.focus()
            elif screen.PANES:
                screen.show_pane(screen.PANES[0])

    def _drawer(self) -> JobsDrawer | None:
        from gym_tui.jobs_drawer import JobsDrawer

        return next(iter(self._app.front.query(JobsDrawer)), None)

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = self._app.set_interval(_LOOK_SECONDS, self.look)
        self._app.draw_frame()

    def _tell_end(self, job: Job) -> None:
        name = " ".join(job.words[:2])
        if job.words[:2] in _STEERING and job.code == 0:  # the run shows it
            return
        if job.code in (0, None):
            self._app.tell(f"gym {name}: {'done' if job.code == 0 else 'ended'}")
        elif job.stopped:
            self._app.tell(f"gym {name}: stopped before its end; J shows its output", "warning")
        else:
            self._app.tell(
                f"gym {name}: ended with {'signal' if job.code < 0 else 'exit code'} {abs(job.code)}; J shows its output", "error"
            )
