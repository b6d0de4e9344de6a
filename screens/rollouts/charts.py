"""The panes between the numbers and the stream: rewards, failures, tokens and times."""

from __future__ import annotations

from textual.content import Content

from backend.rollouts.run_progress_histograms import Bin
from screens.rollouts.snapshot import RunSnapshot
from screens.widgets import glyphs
from screens.widgets.columns import Column
from screens.widgets.formatting import age, compact, count, share, short_time
from screens.widgets.plots import histogram, sparkline
from screens.widgets.virtual_list import Cell, Row

ROWS_BELOW = 4
"""Rows below the bars: their labels, a blank, and what became of the tasks."""
FAILURE_COLUMNS = (
    Column("class", "CLASS", least=14),
    Column("count", "N", 6, right=True),
    Column("last", "LAST", 6, right=True, keep=1),
)


def reward_chart(shot: RunSnapshot, height: int) -> Content:
    """The histogram of rewards, with what became of the tasks below it."""
    bins = shot.reward_bins
    tasks = shot.outcomes.all_pass + shot.outcomes.all_fail + shot.outcomes.mixed
    outcomes = f"all-pass {shot.outcomes.all_pass} · all-fail {shot.outcomes.all_fail} · mixed {shot.outcomes.mixed}"
    if not any(entry.count for entry in bins):
        return Content("no reward yet" if shot.running else "no reward")
    middle = (bins[0].low + bins[-1].high) / 2
    labels = [f"{bins[0].low:.1f}", f"{middle:.1f}", f"{bins[-1].high:.1f}"]
    chart = histogram([entry.count for entry in bins], max(2, height - ROWS_BELOW), glyphs.is_ascii(), labels)
    return Content("\n".join([*chart, "", f"{count(tasks)} tasks with a score:", outcomes]))


def bar_at(shot: RunSnapshot, column: int) -> Bin | None:
    """The bar in a column of the histogram, if rewards are counted there; the axis takes its numbers' width and two cells."""
    bins = shot.reward_bins
    index = column - max(3, len(str(max((entry.count for entry in bins), default=0)))) - 2
    return bins[index] if 0 <= index < len(bins) and bins[index].count else None


def strip_of_rewards(shot: RunSnapshot, width: int) -> Content:
    """The histogram in one line, for narrow terminals."""
    counts = [float(entry.count) for entry in shot.reward_bins]
    return Content(f"{sparkline(counts, min(width - 8, len(counts)), glyphs.is_ascii())} 0 {glyphs.current().ellipsis} 1")


def tokens_and_times(shot: RunSnapshot, width: int) -> Content:
    """Distributions per rollout, and the rate of the last five minutes."""
    size = max(8, width - 26)
    plain = glyphs.is_ascii()
    lines = [
        f"out/rollout {sparkline([float(entry.count) for entry in shot.token_bins], 12, plain):<12}  p50 {compact(shot.tokens_p50)}",
        f"latency     {sparkline([float(entry.count) for entry in shot.latency_bins], 12, plain):<12}  p50 {short_time(shot.p50)}",
        "",
        "rate, last 5 min",
        sparkline(list(shot.rate_series[-(size + 24) :]), min(60, size + 24), plain),
        "",
        f"tokens in   {compact(shot.input_tokens)}",
        f"tokens out  {compact(shot.output_tokens)}",
    ]
    return Content("\n".join(lines))


class FailureRows:
    """The classes of failures, most frequent first."""

    def __init__(self, shot: RunSnapshot) -> None:
        self._shot = shot

    def __len__(self) -> int:
        return len(self._shot.failures)

    def row(self, index: int) -> Row:
        line = self._shot.failures[index]
        return Row((line.name, count(line.count), Cell(age(self._shot.now - line.last_at), "muted")))

    def key(self, index: int) -> str:
        return self._shot.failures[index].name

    def index_of(self, key: object) -> int | None:
        return next((index for index, line in enumerate(self._shot.failures) if line.name == key), None)


def last_reason(shot: RunSnapshot, name: object) -> str:
    """Why a rollout of a class failed last."""
    return next((line.last_reason for line in shot.failures if line.name == name), "")


def failures_title(shot: RunSnapshot) -> str:
    """How many of how many failed."""
    return (
        f"{count(shot.failed)} of {count(shot.finished_count)} ({share(shot.failed, shot.finished_count)})"
        if shot.failed
        else "none"
    )
