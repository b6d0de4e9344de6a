"""Numbers, times and sizes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from screens.widgets import formatting

NOTHING = "—"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0:00"),
        (59.4, "0:59"),
        (59.6, "1:00"),
        (252, "4:12"),
        (3600, "1:00:00"),
        (90_061, "25:01:01"),
        (-5, "0:00"),
        (None, NOTHING),
    ],
)
def test_clock_time(seconds: float | None, text: str) -> None:
    assert formatting.clock_time(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 ms"), (0.85, "850 ms"), (0.9996, "1.0 s"), (16.1, "16.1 s"), (59.94, "59.9 s"), (59.96, "1:00"), (65, "1:05")],
)
def test_short_time(seconds: float, text: str) -> None:
    assert formatting.short_time(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (47 * 3600, "47 h"),
        (48 * 3600, "2 d"),
        (-3, "0 s"),
    ],
)
def test_age(seconds: float, text: str) -> None:
    assert formatting.age(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (911, "911"), (1000, "1.0k"), (999_499, "999k"), (999_950, "1.0M"), (3_300_000, "3.3M"), (2.5, "2")],
)
def test_compact(number: float, text: str) -> None:
    assert formatting.compact(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (999, "999 B"), (18_400, "18.4 kB"), (99_960, "100 kB"), (1_500_000_000, "1.5 GB"), (None, NOTHING)],
)
def test_byte_size(number: int | None, text: str) -> None:
    assert formatting.byte_size(number) == text


def test_counts_scores_and_shares() -> None:
    assert formatting.count(18_204) == "18 204" and formatting.count(None) == NOTHING
    assert formatting.score(0.36111) == "0.361" and formatting.score(math.nan) == NOTHING and formatting.score(None) == NOTHING
    assert formatting.share(1, 3) == "33.3 %" and formatting.share(0, 0) == NOTHING
    assert formatting.joined(("a", "", "b")) == "a  b"


@given(st.none() | st.floats() | st.integers(-(10**30), 10**30))
def test_every_number_has_a_text(number: float | None) -> None:
    for write in (formatting.clock_time, formatting.short_time, formatting.age, formatting.compact, formatting.score):
        text = write(number)
        assert text and "nan" not in text and "inf" not in text and "\n" not in text
