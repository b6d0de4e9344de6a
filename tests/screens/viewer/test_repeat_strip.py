"""The squares of a task's repeats."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from screens.viewer.repeat_strip import Outcome, legend, outcome_of, repeat_at, strip_text
from screens.widgets import glyphs

F, N, B, X = Outcome.FULL, Outcome.NONE, Outcome.BETWEEN, Outcome.FAILED


@pytest.fixture
def ascii_signs() -> Iterator[None]:
    glyphs.use(glyphs.ASCII)
    yield
    glyphs.use(glyphs.UNICODE)


@pytest.mark.parametrize(
    ("reward", "more", "outcome"),
    [
        (1.0, {}, F),
        (2.5, {}, F),
        (0.0, {}, N),
        (-1.0, {}, N),
        (0.3, {}, B),
        (None, {}, Outcome.UNKNOWN),
        (None, {"failed": True}, X),
        (None, {"unreadable": True}, Outcome.UNREADABLE),
    ],
)
def test_outcomes(reward: float | None, more: dict[str, bool], outcome: Outcome) -> None:
    assert outcome_of(reward, **more) is outcome


@pytest.mark.parametrize(
    ("current", "width", "text"),
    [
        (None, 9, " ■ □ ▒ ✗ "),
        (0, 9, "[■]□ ▒ ✗ "),
        (2, 9, " ■ □[▒]✗ "),
        (3, 9, " ■ □ ▒[✗]"),
        (None, 8, "■□▒✗"),
        (1, 8, "■[□]▒✗"),
        (1, 5, "■1 □1 ▒1 ✗1"),
    ],
)
def test_squares_as_wide_as_there_is_room(current: int | None, width: int, text: str) -> None:
    assert strip_text([F, N, B, X], current, width) == text


@given(st.integers(1, 30), st.data(), st.integers(3, 80))
def test_a_click_finds_the_square_that_is_drawn_there(repeats: int, data: st.DataObject, width: int) -> None:
    current = data.draw(st.none() | st.integers(0, repeats - 1))
    outcomes = [F if index != 1 else X for index in range(repeats)]
    text = strip_text(outcomes, current, width)
    found = [repeat_at(column, repeats, current, width) for column in range(len(text))]
    if repeats + 2 > width and 2 * repeats + 1 > width:
        assert set(found) == {None}
        return
    squares = [at for column, at in enumerate(found) if text[column] in "■✗"]
    assert squares == list(range(repeats))
    assert repeat_at(len(text) + 5, repeats, current, width) is None


def test_only_ascii_where_that_is_wanted(ascii_signs: None) -> None:
    assert strip_text([F, N, B, X], 1, 9) == " #[_]% x "
    assert legend().isascii()
