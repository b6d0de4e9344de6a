"""The detail pane's text: what a run's row and its files say, as blocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from backend.metrics.headline import ScoreRow
from backend.rollouts.run_entry import DIED, DONE, FAILED, RUNNING, STOPPED, Headline, RunEntry
from screens.results.details import FailureFact, RunDetails
from screens.results.prefill import typed_command, typed_resume_command
from screens.results.run_rows import is_silent, state_text
from screens.widgets import formatting, glyphs
from screens.widgets.scores import score_text
from screens.widgets.text_blocks import TextBlock
from screens.widgets.text_tables import table


def detail_blocks(run: RunEntry, details: RunDetails | None, now: float, shown_path: Callable[[Path], str]) -> list[TextBlock]:
    """What is known of `run`; `details` are None while they are being read."""
    blocks = [*_what_happened(run, now), *_command(run)]
    if details is None:
        return [*blocks, _run(run, now)]
    if details.scores:
        has_interval = any(row.interval is not None for row in details.scores)
        blocks.append(TextBlock("scores", table(_score_rows(details.scores)), "Scores", "95 % interval" if has_interval else ""))
    if details.failures:
        blocks.append(_failures(details))
    blocks.append(_run(run, now))
    if details.settings:
        blocks.append(TextBlock("settings", table([[name, value] for name, value in details.settings]), "Configuration"))
    blocks.append(_files(details, shown_path))
    if details.remarks:
        blocks.append(TextBlock("remarks", "\n".join(details.remarks), "Remarks", kind="error"))
    return blocks


def _what_happened(run: RunEntry, now: float) -> Iterator[TextBlock]:
    signs = glyphs.current()
    counts = _counts(run)
    silence = formatting.age(None if run.last_sign is None else now - run.last_sign)
    if run.problem:
        yield TextBlock("what", run.problem, f"{signs.warning} The record of this run cannot be read", kind="error")
        return
    if run.state == DIED:
        process = f"process {run.pid}" if run.pid is not None else "the process"
        text = f"The run was killed or its machine went down: {process} is gone and has not said how the run ended. Its last sign is {silence} old."
        yield TextBlock("what", _paragraph(text, counts), f"{signs.failed} What happened", kind="error")
    elif run.state == FAILED:
        yield TextBlock(
            "what",
            _paragraph(run.error or "The run failed without saying why.", counts),
            f"{signs.failed} What happened",
            kind="error",
        )
    elif run.state == STOPPED:
        text = run.error or "Somebody stopped the run before it was through."
        yield TextBlock("what", _paragraph(text, counts), f"{signs.stopped} What happened", kind="error")
    elif is_silent(run):
        text = f"The run is said to be running on {run.host or 'another host'}, but has written nothing for {silence}. From here nobody can tell whether it lives."
        yield TextBlock("what", _paragraph(text, counts), f"{signs.unknown} Silent", kind="error")
    if run.resume_command is not None:
        secret = (
            "\nWhat is masked in it has to be put in again, or better: comes from env.yaml." if run.resume_needs_secret else ""
        )
        what = "To try again what failed" if run.state == DONE else "To go on with it"
        yield TextBlock("resume", typed_resume_command(run) + secret, what, "R puts it on the command line", "tool")


def _paragraph(text: str, counts: str) -> str:
    return f"{text}\n{counts}" if counts else text


def _counts(run: RunEntry) -> str:
    if run.scored is None and run.failed is None:
        return ""
    planned = f"Of {formatting.count(run.planned)} rollouts " if run.planned is not None else ""
    missing = f" and {formatting.count(run.missing)} missing" if run.missing is not None else ""
    failed = f", {formatting.count(run.failed or 0)} failed"
    return f"{planned}{formatting.count(run.scored or 0)} are scored{failed}{missing}."


def _command(run: RunEntry) -> Iterator[TextBlock]:
    if run.command:
        yield TextBlock("command", typed_command(run), "Command", "r puts it on the command line")


def _run(run: RunEntry, now: float) -> TextBlock:
    end = run.ended_at if run.ended_at is not None else now if run.state == RUNNING else run.last_sign
    duration = None if run.started_at is None or end is None else end - run.started_at
    rows = [
        ["state", state_text(run)],
        ["score", _headline(run.headline)],
        ["benchmark", run.benchmark or ""],
        ["model", run.model or ""],
        ["agents", ", ".join(run.agents)],
        ["host", run.host or ""],
        ["process", "" if run.pid is None else str(run.pid)],
        ["started", _moment(run.started_at)],
        ["ended", _moment(run.ended_at)],
        ["duration", "" if duration is None else formatting.clock_time(duration)],
        ["folder", run.cwd or ""],
    ]
    return TextBlock("run", table([row for row in rows if row[1]]), "Run")


def _headline(headline: Headline | None) -> str:
    return f"{score_text(headline)}  {headline.name}" if headline is not None else ""


def _moment(seconds: float | None) -> str:
    if seconds is None:
        return ""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (ValueError, OverflowError, OSError):  # a number that is no time
        return str(seconds)


def _score_rows(scores: Sequence[ScoreRow]) -> list[list[str]]:
    several = len({row.agent for row in scores}) > 1
    rows = []
    for row in scores:
        interval = row.interval
        headline = None if row.value is None else Headline(
            row.name, row.value, row.scale, interval.low if interval else None, interval.high if interval else None
        )  # fmt: skip
        counted = row.scored or row.failed or row.missing
        counts = f"{formatting.count(row.scored)} scored, {formatting.count(row.failed)} failed, {formatting.count(row.missing)} missing"
        rows.append([*([row.agent] if several else []), row.name, score_text(headline), counts if counted else ""])
    return rows


def _failures(details: RunDetails) -> TextBlock:
    total = formatting.count(sum(fact.count for fact in details.failures))
    what = "failed attempts" if details.failures_are_attempts else "rollouts"
    cut = ", reasons from the first part of the file" if details.failures_cut else ""
    return TextBlock(
        "failures", table(_failure_rows(details.failures), frozenset({1})), "Failures", f"{total} {what}{cut}", "error"
    )


def _failure_rows(failures: Sequence[FailureFact]) -> list[list[str]]:
    return [[fact.name, formatting.count(fact.count), fact.reason] for fact in failures]


def _files(details: RunDetails, shown_path: Callable[[Path], str]) -> TextBlock:
    rows = [
        [shown_path(fact.path), "not there" if fact.size is None else formatting.byte_size(fact.size)] for fact in details.files
    ]
    return TextBlock("files", table(rows, frozenset({1})), "Files")
