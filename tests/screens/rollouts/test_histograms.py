"""Histograms and the texts beside them, in any number of cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from backend.metrics.intervals import Interval
from backend.rollouts.run_progress_histograms import Bin, LogHistogram, RewardHistogram
from backend.rollouts.run_progress_parts import Eta
from backend.rollouts.run_progress_scores import TaskOutcomes
from screens.rollouts import charts, header_lines
from screens.rollouts.following import entry_of, read_whole_run
from screens.rollouts.histograms import Metric, draw_histogram, filter_of, fitted, outcome_words, strip_of_rewards
from screens.rollouts.snapshot import RunSnapshot
from screens.rollouts.text_fit import first_that_fits, joined_within
from screens.widgets import glyphs
from tests.run_samples import START, live_run

AT = START + 95


@pytest.fixture
def shot(tmp_path: Path) -> RunSnapshot:
    live_run(tmp_path)
    return read_whole_run(entry_of(tmp_path / "m_run", "m", AT), AT)


@pytest.fixture(params=[glyphs.UNICODE, glyphs.ASCII], ids=["unicode", "ascii"])
def signs(request: pytest.FixtureRequest) -> Iterator[None]:
    glyphs.use(request.param)
    yield
    glyphs.use(glyphs.UNICODE)


def variants(shot: RunSnapshot) -> Iterator[RunSnapshot]:
    """The sample, one with nothing, all rewards 1, and numbers as large as they get."""
    yield shot
    yield replace(
        shot, reward_bins=RewardHistogram().bins(), token_bins=(), latency_bins=(), p50=None, tokens_p50=None, mean=None
    )
    ones = RewardHistogram()
    for _ in range(12):
        ones.add(1.0)
    yield replace(shot, reward_bins=ones.bins(), outcomes=TaskOutcomes(4, 0, 0), p50=0.328, p95=0.331)
    wide = RewardHistogram()
    for number in range(2000):
        wide.add(-1e6 + 1000 * number)
    times = LogHistogram()
    for number in range(9):
        times.add(10.0**number)
    yield replace(
        shot, reward_bins=wide.bins(), token_bins=times.bins(), latency_bins=times.bins(), p50=86_399.0, p95=999_999.0,
        tokens_p50=123_456_789, input_tokens=10**12, output_tokens=10**12, outcomes=TaskOutcomes(123_456, 234_567, 345_678),
        planned=600_000, finished_count=599_999, failed=99_999, eta=Eta(86_399.0, 9_999.0), rate=120.0, concurrency=4096,
        in_flight_count=4096, mean=-0.391, interval=Interval(-0.391, 1.531, "normal"), reward_scale="raw",
    )  # fmt: skip


def test_nothing_is_wider_or_higher_than_its_pane(shot: RunSnapshot, signs: None) -> None:
    for sample in variants(shot):
        for width in range(8, 200):
            for height in (1, 4, 10) if width % 10 else (1, 3, 4, 5, 6, 10, 30):
                for metric in Metric:
                    lines = draw_histogram(sample, metric, width, height).lines
                    assert max(map(cell_len, lines)) <= width, (metric, width)
                    assert len(lines) <= max(2, height)
                lines = tuple(charts.tokens_and_times(sample, width, height).plain.splitlines())
                assert max(map(cell_len, lines)) <= width
                assert len(lines) <= height
            if width >= 36:  # what a terminal of 40 cells leaves
                assert cell_len(strip_of_rewards(sample, width)) <= width
                for narrow in (False, True):
                    for line in header_lines.header_lines(sample, width, narrow=narrow)[:3]:
                        assert line.cell_length <= width, line.plain


def test_a_chart_as_it_looks(shot: RunSnapshot) -> None:
    chart = draw_histogram(shot, Metric.REWARD, 38, 9)
    assert chart.lines[-2:] == ("11 tasks done, with a score:", "all-pass 4 · all-fail 4 · mixed 3")
    assert len(chart.lines) == 9
    assert len(chart.bins) == 26
    assert "p50" in charts.tokens_and_times(shot, 36, 9).plain
    assert charts.failures_title(shot) == "1 of 12 (8.3 %)"


def test_in_29_cells_the_bars_keep_their_ends(shot: RunSnapshot) -> None:
    chart = draw_histogram(shot, Metric.REWARD, 29, 7)
    assert chart.lines == (
        "  4 ┤█      ▂     █",
        "    ┤█      █     █",
        "  0 ┤█      █     █",
        "     0.0   0.5  1.0",
        "",
        "11 tasks done, with a score:",
        "all✓ 4  all✗ 4  mixed 3",
    )
    assert chart.bin_at(chart.left, 0) == Bin(0, 0, 4)
    assert chart.bin_at(chart.left + 13, 2) == Bin(1, 1, 4)
    assert chart.bin_at(chart.left + 7, 0) == Bin(0.5, 7 / 12, 3)
    assert chart.bin_at(chart.left + 1, 0) is None  # nothing is counted there
    assert chart.bin_at(chart.left, 3) is None  # the labels
    assert chart.bin_at(0, 0) is None
    assert chart.bin_at(chart.left + 14, 0) is None


def test_one_task_is_one(shot: RunSnapshot) -> None:
    alone = replace(shot, outcomes=TaskOutcomes(0, 1, 0))
    assert "1 task done, with a score:" in draw_histogram(alone, Metric.REWARD, 40, 9).lines


def test_bins_taken_together_lose_nothing() -> None:
    histogram = RewardHistogram()
    for number in range(101):
        histogram.add(number / 100)
    bins = histogram.bins()
    for width in range(6, 40):
        fewer = fitted(bins, width)
        assert sum(each.count for each in fewer) == 101
        assert (fewer[0], fewer[-1]) == (Bin(0, 0, 1), Bin(1, 1, 1))
        inner = {round(each.high - each.low, 9) for each in fewer[1:-1]}
        assert len(inner) == 1


def test_what_a_bar_filters() -> None:
    assert filter_of(Metric.REWARD, 0, 0) == "reward:0"
    assert filter_of(Metric.REWARD, 0, 0.5) == "reward>0 reward<0.5"
    assert filter_of(Metric.REWARD, 0.5, 0.75) == "reward>=0.5 reward<0.75"
    assert filter_of(Metric.TOKENS, 30, 60.5) == "tokens>=30 tokens<60.5"
    assert filter_of(Metric.TIME, 0.25, 1) == "seconds>=0.25 seconds<1"


def test_outcomes_get_shorter(shot: RunSnapshot) -> None:
    many = replace(shot, outcomes=TaskOutcomes(12_345, 67, 8_901))
    assert outcome_words(many, 60) == "all-pass 12345 · all-fail 67 · mixed 8901"
    assert outcome_words(many, 37) == "all✓ 12345  all✗ 67  mixed 8901"
    assert outcome_words(many, 31) == "all✓ 12345  all✗ 67  mixed 8901"
    assert outcome_words(many, 30) == "all✓ 12.3k  all✗ 67  mixed 8.…"


def test_fitting_texts() -> None:
    assert first_that_fits(["long text", "short"], 9) == "long text"
    assert first_that_fits(["long text", "short"], 8) == "short"
    assert first_that_fits(["long text", "short"], 4) == "sho…"
    assert joined_within(["a", "", "bb", "ccc"], 8, "  ") == "a  bb"
    assert joined_within(["abc", "d"], 2, "  ") == "abc"
