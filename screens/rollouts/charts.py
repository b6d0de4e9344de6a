"""What the panes between the numbers and the stream show: failures, tokens and times."""

from __future__ import annotations

from textual.content import Content

from screens.rollouts.snapshot import RunSnapshot
from screens.rollouts.text_fit import first_that_fits
from screens.widgets import glyphs
from screens.widgets.columns import Column
from screens.widgets.formatting import age, compact, count, share, short_time
from screens.widgets.plots import sparkline
from screens.widgets.virtual_list import Cell, Row

_NAME = 11
_DISTRIBUTION, _LEAST_DISTRIBUTION = 12, 4
"""Cells of a small plot, and those below which it says nothing."""
FAILURE_COLUMNS = (
    Column("class", "CLASS", least=14),
    Column("count", "N", 6, right=True),
    Column("last", "LAST", 6, right=True, keep=1),
)


def tokens_and_times(shot: RunSnapshot, width: int, height: int) -> Content:
    """Distributions per rollout, and the rate of the last five minutes, in as many lines as there are."""
    plain = glyphs.is_ascii()
    lines = [
        *_distributions(shot, width),
        "",
        first_that_fits(["rate, last 5 min" if shot.running else "rate, its last 5 min", "rate"], width),
        sparkline(list(shot.rate_series), width, plain),
        "",
        first_that_fits([f"tokens in   {compact(shot.input_tokens)}", f"in {compact(shot.input_tokens)}"], width),
        first_that_fits([f"tokens out  {compact(shot.output_tokens)}", f"out {compact(shot.output_tokens)}"], width),
    ]
    if height < len(lines):
        lines = [line for line in lines if line]
    return Content("\n".join(lines[: max(1, height)]))


def _distributions(shot: RunSnapshot, width: int) -> list[str]:
    """A name, a distribution and its middle in each line; the distribution takes what the other two leave, or is left out."""
    parts = [
        ("out/rollout", shot.token_bins, f"p50 {compact(shot.tokens_p50)}"),
        ("latency", shot.latency_bins, f"p50 {short_time(shot.p50)}"),
    ]
    room = min(_DISTRIBUTION, width - _NAME - 3 - max(len(middle) for _, _, middle in parts))
    if room < _LEAST_DISTRIBUTION:
        return [first_that_fits([f"{name:<{_NAME}} {middle}", middle], width) for name, _, middle in parts]
    plots = [sparkline([float(each.count) for each in bins], room, glyphs.is_ascii()) for _, bins, _ in parts]
    return [f"{name:<{_NAME}} {plot:<{room}}  {middle}" for (name, _, middle), plot in zip(parts, plots, strict=True)]


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
