"""The histogram of a run's rewards, output tokens or times, fitted to the cells that there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from backend.rollouts.run_progress_histograms import Bin
from screens.rollouts.snapshot import RunSnapshot
from screens.rollouts.text_fit import first_that_fits
from screens.widgets import glyphs
from screens.widgets.formatting import compact, count, short_time
from screens.widgets.plots import axis_width, histogram, sparkline

_WIDE_BAR = 2


class Metric(Enum):
    """What the histogram is of; the value is the heading of its pane."""

    REWARD = "Reward"
    TOKENS = "Output tokens"
    TIME = "Time"

    @property
    def next(self) -> Metric:
        """The one after this, or the first again."""
        order = list(Metric)
        return order[(order.index(self) + 1) % len(order)]

    def bins(self, shot: RunSnapshot) -> tuple[Bin, ...]:
        """The distribution in a snapshot."""
        return {Metric.REWARD: shot.reward_bins, Metric.TOKENS: shot.token_bins, Metric.TIME: shot.latency_bins}[self]


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawn histogram: its lines, and where its bars are."""

    lines: tuple[str, ...]
    bins: tuple[Bin, ...] = ()
    rows: int = 0
    """Lines with bars, from the first one on."""
    left: int = 0
    """Cells to the left of the first bar."""
    bar: int = 1
    """Cells of each bar."""

    def bin_at(self, column: int, row: int) -> Bin | None:
        """The bin whose bar is in a cell's column, if anything is counted there."""
        index = (column - self.left) // self.bar
        return self.bins[index] if 0 <= row < self.rows and 0 <= index < len(self.bins) and self.bins[index].count else None


def draw_histogram(shot: RunSnapshot, metric: Metric, width: int, height: int) -> Chart:
    """The histogram in at most `width` cells; below it, where there is room, what the numbers say. At least two lines."""
    bins = metric.bins(shot)
    if not any(each.count for each in bins):
        nothing = {Metric.REWARD: "no reward", Metric.TOKENS: "no token count", Metric.TIME: "no time"}[metric]
        return Chart((first_that_fits([f"{nothing} yet" if shot.running else nothing, nothing], width),))
    below = _outcomes(shot, width) if metric is Metric.REWARD else _quantiles(shot, metric, width)
    below = ["", *below] if height >= 6 else below if height >= 4 else []
    bins = fitted(bins, width)
    bar = _WIDE_BAR if metric is not Metric.REWARD and _cells(bins, _WIDE_BAR) <= width else 1
    rows = max(1, height - 1 - len(below))
    counts = [each.count for each in bins]
    chart = histogram([number for number in counts for _ in range(bar)], rows, glyphs.is_ascii(), _labels(bins, metric))
    return Chart((*chart, *below), bins, rows, axis_width(counts), bar)


def fitted(bins: Sequence[Bin], width: int) -> tuple[Bin, ...]:
    """The bins, as many neighbours taken together as `width` cells ask for. Exact values at the ends keep bins of their own."""
    begin, end = int(bins[0].low == bins[0].high), len(bins) - int(len(bins) > 1 and bins[-1].low == bins[-1].high)
    inner = bins[begin:end]
    found = tuple(bins)
    for size in range(1, len(inner) + 1):
        if begin and len(inner) % size:
            continue  # bins of equal width between the exact values
        groups = [inner[at : at + size] for at in range(0, len(inner), size)]
        together = [Bin(group[0].low, group[-1].high, sum(each.count for each in group)) for group in groups]
        found = (*bins[:begin], *together, *bins[end:])
        if _cells(found) <= width:
            break
    return found


def strip_of_rewards(shot: RunSnapshot, width: int) -> str:
    """The histogram in one line, for narrow terminals."""
    bins = shot.reward_bins
    scale = f" {bins[0].low:.4g} {glyphs.current().ellipsis} {bins[-1].high:.4g}"
    counts = [float(each.count) for each in bins]
    return f"{sparkline(counts, min(width - len(scale), len(counts)), glyphs.is_ascii())}{scale}"


def filter_of(metric: Metric, low: float, high: float) -> str:
    """The words of the stream's filter for what a bar counts."""
    if metric is not Metric.REWARD:
        name = "tokens" if metric is Metric.TOKENS else "seconds"
        return f"{name}>={low:.6g} {name}<{high:.6g}"
    if low == high:
        return f"reward:{low:g}"
    return f"reward{'>=' if low else '>'}{low:.6g} reward<{high:.6g}"  # exactly 0 and exactly 1 have bars of their own


def outcome_words(shot: RunSnapshot, width: int) -> str:
    """How whole tasks went."""
    signs, (passed, failed, mixed) = glyphs.current(), shot.outcomes

    def short(form: Callable[[int], str]) -> str:
        return f"all{signs.good} {form(passed)}  all{signs.failed} {form(failed)}  mixed {form(mixed)}"

    return first_that_fits([f"all-pass {passed} · all-fail {failed} · mixed {mixed}", short(str), short(compact)], width)


def _outcomes(shot: RunSnapshot, width: int) -> list[str]:
    tasks = sum(shot.outcomes)
    done = f"{count(tasks)} {'task' if tasks == 1 else 'tasks'} done"
    return [first_that_fits([f"{done}, with a score:", f"{done}:"], width), outcome_words(shot, width)]


def _quantiles(shot: RunSnapshot, metric: Metric, width: int) -> list[str]:
    counted = sum(each.count for each in metric.bins(shot))
    rollouts = f"{count(counted)} {'rollout' if counted == 1 else 'rollouts'}"
    middle = compact(shot.tokens_p50) if metric is Metric.TOKENS else short_time(shot.p50)
    return [
        first_that_fits([f"{rollouts}, p50 {middle}", f"p50 {middle}"], width),
        first_that_fits(["logarithmic scale", "logarithmic"], width),
    ]


def _labels(bins: Sequence[Bin], metric: Metric) -> list[str]:
    low, high = bins[0].low, bins[-1].high
    if metric is Metric.REWARD:
        return [f"{number:.1f}" for number in (low, (low + high) / 2, high)]
    form = compact if metric is Metric.TOKENS else short_time
    return [form(round(number) if metric is Metric.TOKENS else number) for number in (low, high)]


def _cells(bins: Sequence[Bin], bar: int = 1) -> int:
    return axis_width([each.count for each in bins]) + bar * len(bins)
