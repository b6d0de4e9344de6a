"""Events of a run as lines: a line that updates on a terminal, the documented lines everywhere else."""

from __future__ import annotations

import json
import shutil
import sys
import time
from datetime import timedelta

from backend.cli.console import say
from backend.cli.render_servers import render_server_event
from backend.cli.tables import table
from backend.events import Event
from backend.metrics.headline import PERCENT, ScoreRow
from backend.rollouts.run_events import (
    CollectionEnded,
    CollectionProgress,
    CollectionStarted,
    CollectionWaiting,
    MetricsWritten,
    RolloutFinished,
    RolloutStage,
    RolloutStarted,
    RunControlled,
    RunPlanned,
    RunSummary,
)

_BAR_WIDTH = 24
_REQUESTS = {
    "drain": "nothing more is sent; rollouts in flight may finish",
    "cancel": "rollouts in flight are given up",
}


class RunRenderer:
    """Renders one run. On a terminal the progress is one line that is rewritten; else each whole percent is told in full."""

    def __init__(self, *, live: bool | None = None) -> None:
        self._planned_output = ""
        self._live = sys.stdout.isatty() if live is None else live
        self._line_open = False
        self._finished = 0
        self._before = 0
        self._failed = 0
        self._reward_sum = 0.0
        self._rewards = 0
        self._total = 0
        self._in_flight = 0
        self._began = time.monotonic()
        self.output: str | None = None
        """Where rollouts are written, once that has begun; None again when the summary has told it."""
        self.resume_command = ""
        """What goes on with the run."""

    def render(self, event: Event) -> None:
        """Print one event."""
        if isinstance(event, RolloutStarted):
            self._in_flight += 1
            if self._live:
                self._draw()
            return
        if isinstance(event, RolloutFinished):
            self._count(event)
            return
        if isinstance(event, CollectionProgress):
            self._progress(event)
            return
        if isinstance(event, RolloutStage):
            return
        self.close()
        if isinstance(event, RunPlanned):
            self._planned_output = event.output
            self.resume_command = event.resume_command
            rollouts = "rollout" if event.rollouts == 1 else "rollouts"
            say(f"{event.rollouts} {rollouts} of {event.inputs} -> {event.output}")
            say(f"Querying with {event.concurrency} concurrent requests")
        elif isinstance(event, CollectionStarted):
            self._total = event.total
            self._before = event.scored_before + event.failed_before
            self._finished = self._before
            self._began = time.monotonic()
            self.output = self._planned_output
            say("Collecting rollouts")
        elif isinstance(event, CollectionWaiting):
            say(
                f"Waiting: {event.finished} / {event.total} finished, {event.in_flight} in flight, no answer for {event.seconds:.0f} s"
            )
        elif isinstance(event, RunControlled):
            say(f"{event.by} asked to {event.action}: " + _REQUESTS[event.action])
        elif isinstance(event, CollectionEnded):
            if event.cancelled:
                say(f"Gave up {event.cancelled} rollouts in flight.")
        elif isinstance(event, MetricsWritten):
            for agent, metrics in event.key_metrics.items():
                say(f"Key metrics for {agent}:")
                say(json.dumps(metrics, indent=4))
        elif isinstance(event, RunSummary):
            self.output = None
            _render_summary(event, self.resume_command)
        else:
            render_server_event(event, with_instances=False)

    def close(self) -> None:
        """Leave the line that updates."""
        if self._line_open:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._line_open = False

    def _count(self, event: RolloutFinished) -> None:
        self._finished += 1
        self._in_flight -= 1
        self._failed += event.failure is not None
        if event.failure is None and event.reward is not None:
            self._rewards += 1
            self._reward_sum += event.reward
        if self._live:
            self._draw()

    def _draw(self) -> None:
        filled = _BAR_WIDTH * self._finished // max(1, self._total)
        bar = "█" * filled + "░" * (_BAR_WIDTH - filled)
        mean = f"  mean reward {self._reward_sum / self._rewards:.3f}" if self._rewards else ""
        failed = f"  {self._failed} failed" if self._failed else ""
        line = f"{bar} {self._finished} / {self._total}{mean}{failed}  {self._in_flight} in flight{self._time_left()}"
        width = shutil.get_terminal_size().columns - 1
        sys.stdout.write(f"\r{line[:width]:<{width}}")
        sys.stdout.flush()
        self._line_open = True

    def _time_left(self) -> str:
        elapsed = time.monotonic() - self._began
        now = self._finished - self._before
        if not now or self._finished >= self._total:
            return ""
        left = timedelta(seconds=round(elapsed / now * (self._total - self._finished)))
        return f"  {now / elapsed * 60:.0f}/min  {left} left"

    def _progress(self, event: CollectionProgress) -> None:
        if self._live:
            return
        per_minute = (event.finished - self._before) / event.seconds * 60 if event.seconds else 0.0
        elapsed = timedelta(seconds=int(event.seconds))
        say(
            f"Finished {event.finished} / {event.total} rollouts ({event.finished * 100 // event.total}%) in {elapsed} "
            f"({per_minute:.2f} rollouts/min)." + (" Examples left:" if event.left else "")
        )
        for number, (agent, count) in enumerate(event.left.items(), 1):
            say(f"{number}. {agent}: {count}")
        if event.failed:
            say(f"{event.failed} of them failed.")
        if event.finished < event.total:
            return
        for agent, averages in event.averages.items():
            count = event.counts.get(agent, 0)
            say(f"Found {count} / {event.total} ({100 * count / event.total:.2f}%) rollouts for `{agent}`.")
            say(json.dumps(averages, indent=4))


def _render_summary(summary: RunSummary, resume_command: str) -> None:
    say()
    if summary.state == "stopped":
        say(f"Stopped after {summary.scored + summary.failed} of {summary.total} rollouts.")
    if summary.scores:
        say(table(("score", "value", "scale", "95 % interval", "scored", "failed", "missing"), _score_rows(summary.scores)))
    else:
        say("No rollout was scored.")
    say()
    say("Finished rollout collection! View results at:" if summary.state == "done" else "What there is:")
    say(f"Fully materialized inputs: {summary.materialized_inputs}")
    say(f"Rollouts: {summary.rollouts}")
    say(f"Aggregate metrics: {summary.aggregate_metrics or 'None'}")
    if summary.failed:
        classes = ", ".join(f"{name}: {count}" for name, count in summary.failure_classes.items())
        say(
            f"Coverage: {summary.failed} of {summary.total} dispatched rollouts failed ({classes}), "
            f"{summary.scored} completed in total. Failure rows: {summary.failures}"
        )
    say(f"Run record, events and logs: {summary.run_folder}")
    if summary.state == "stopped" and summary.missing and resume_command:
        say(f"Go on with: {resume_command}")


def _score_rows(scores: tuple[ScoreRow, ...]) -> list[tuple[str, ...]]:
    several = len({row.agent for row in scores}) > 1
    lines: list[tuple[str, ...]] = []
    for row in scores:
        name = f"{row.agent}: {row.name}" if several else row.name
        interval = f"{_number(row.interval.low, row)} … {_number(row.interval.high, row)}" if row.interval else ""
        lines.append((name, _number(row.value, row), row.scale, interval, str(row.scored), str(row.failed), str(row.missing)))
    return lines


def _number(value: float | None, row: ScoreRow) -> str:
    if value is None:
        return ""
    return f"{value:.1f}" if row.scale == PERCENT else f"{value:.3f}"
