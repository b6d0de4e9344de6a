import math

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from screens.widgets.plots import axis_width, h_bar, histogram, interval_strip, progress_bar, sparkline

_ANY_NUMBER = st.one_of(st.none(), st.floats())


def test_progress_bar_fills_in_eighths() -> None:
    assert progress_bar(0.0, 10) == "░" * 10
    assert progress_bar(0.5, 10) == "█████░░░░░"
    assert progress_bar(0.3, 10) == "███░░░░░░░"
    assert progress_bar(0.55, 10) == "█████▌░░░░"
    assert progress_bar(1.0, 4) == "████"
    assert progress_bar(0.371, 8) == "██▉░░░░░"  # 0.371 * 64 = 23.7 eighths
    assert progress_bar(0.5, 10, True) == "#####....."


def test_a_bar_is_full_only_at_the_end_and_empty_only_at_the_beginning() -> None:
    assert progress_bar(0.9999, 4) == "███▉"
    assert progress_bar(0.00001, 4) == "▏░░░"
    assert progress_bar(0.9999, 4, True) == "###."
    assert progress_bar(0.00001, 4, True) == "#..."


def test_bars_of_missing_shares_are_empty() -> None:
    for share in (None, math.nan, -0.5):
        assert progress_bar(share, 3) == "░░░"
    assert progress_bar(math.inf, 3) == "░░░"
    assert progress_bar(7.0, 3) == "███"
    assert progress_bar(0.5, 0) == progress_bar(0.5, -3) == ""


def test_h_bar_has_no_track() -> None:
    assert h_bar(0.5, 4) == "██  "
    assert h_bar(1 / 32, 4) == "▏   "
    assert h_bar(0.5, 4, True) == "##  "


def test_sparkline_shows_each_value_from_zero_to_the_largest() -> None:
    assert sparkline([1, 2, 3, 4, 5, 6, 7, 8], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([0, 8], 10) == "▁█"
    assert sparkline([5, 5], 10) == "██"
    assert sparkline([0, 0], 10) == "▁▁"
    assert sparkline([1, 2, 3, 4, 5, 6, 7, 8], 8, True) == "_.-:=+*#"


def test_sparkline_leaves_gaps_and_takes_values_together() -> None:
    assert sparkline([8, None, math.nan, 8], 4) == "█  █"
    assert sparkline([2, 4, 8, 8], 2) == "▃█"  # means 3 and 8
    assert sparkline([None, None, 8, None], 2) == " █"
    assert sparkline([], 5) == sparkline([1, 2], 0) == ""


def test_histogram_with_bins_of_their_own_at_both_ends() -> None:
    counts = [430] + [10] * 24 + [215]
    assert histogram(counts, 4) == [
        "430 ┤█",
        "    ┤█",
        "    ┤█                        █",
        "  0 ┤█▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁█",
        "     0.0         0.5        1.0",
    ]


def test_histogram_shows_small_counts_and_not_those_of_zero() -> None:
    assert histogram([0, 1, 1000], 2, labels=()) == ["1000 ┤  █", "   0 ┤ ▁█", "      "]
    assert histogram([0, 1, 1000], 2, True, ["a", "b"]) == ["1000 |  #", "   0 | ##", "      a b"]


def test_histogram_of_nothing() -> None:
    assert histogram([], 2, labels=("0", "1")) == ["  0 ┤", "  0 ┤", "     "]
    assert histogram([0, 0], 1, labels=()) == ["  0 ┤", "     "]


def test_labels_without_room_beside_each_other_are_left_out() -> None:
    assert histogram([1] * 11, 1, labels=("0.0", "0.5", "1.0"))[-1] == "     0.0 0.5 1.0"
    assert histogram([1] * 10, 1, labels=("0.0", "0.5", "1.0"))[-1] == "     0.0    1.0"
    assert histogram([1] * 6, 1, labels=("0.0", "0.5", "1.0"))[-1].strip() == ""


@given(
    counts=st.lists(st.integers(0, 10**9), max_size=40),
    labels=st.lists(st.text("0123456789.", max_size=20), max_size=4),
    ascii=st.booleans(),
)
def test_histograms_are_as_wide_as_their_axis_and_bars(counts: list[int], labels: list[str], ascii: bool) -> None:
    assert max(map(cell_len, histogram(counts, 3, ascii, labels))) <= axis_width(counts) + len(counts)


def test_interval_strip() -> None:
    assert interval_strip(0.5, 0.25, 0.75, 12) == "···├──●──┤··"
    assert interval_strip(0.0, 0.0, 0.3, 10) == "●──┤······"
    assert interval_strip(1.0, 0.8, 1.0, 10) == "········├●"
    assert interval_strip(0.5, None, None, 4) == "··●·"
    assert interval_strip(None, 0.2, 0.9, 10, True) == "..[------]"
    assert interval_strip(None, None, None, 3) == "···"
    assert interval_strip(50, 25, 75, 12, start=0, end=100) == "···├──●──┤··"


@given(share=_ANY_NUMBER, width=st.integers(-2, 60), ascii=st.booleans())
def test_bars_have_their_width(share: float | None, width: int, ascii: bool) -> None:
    assert cell_len(progress_bar(share, width, ascii)) == cell_len(h_bar(share, width, ascii)) == max(0, width)


@given(values=st.lists(_ANY_NUMBER, max_size=80), width=st.integers(0, 30), ascii=st.booleans())
def test_sparklines_have_at_most_their_width(values: list[float | None], width: int, ascii: bool) -> None:
    assert cell_len(sparkline(values, width, ascii)) == min(len(values), width)


@given(counts=st.lists(st.integers(0, 10**9), max_size=40), height=st.integers(-1, 12), ascii=st.booleans())
def test_histograms_have_their_height(counts: list[int], height: int, ascii: bool) -> None:
    rows = histogram(counts, height, ascii)
    assert len(rows) == max(1, height) + 1
    bottom = rows[-2].ljust(60)[len(rows[-2].partition("┤" if not ascii else "|")[0]) + 1 :]
    assert [sign != " " for sign in bottom[: len(counts)]] == [count > 0 for count in counts]


@given(value=_ANY_NUMBER, low=_ANY_NUMBER, high=_ANY_NUMBER, width=st.integers(-1, 40), ascii=st.booleans())
def test_interval_strips_have_their_width(
    value: float | None, low: float | None, high: float | None, width: int, ascii: bool
) -> None:
    assert cell_len(interval_strip(value, low, high, width, ascii)) == max(0, width)


def test_a_sparkline_may_have_a_scale_of_its_own() -> None:
    assert sparkline([9.0, 50.0, 100.0], 3, least_top=100.0) == "▁▄█"
    assert sparkline([9.0, 200.0], 2, least_top=100.0) == "▁█"
