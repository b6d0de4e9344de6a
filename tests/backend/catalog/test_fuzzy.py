from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.catalog.fuzzy import fuzzy_match

NAMES = st.text(alphabet="abAB12_-/ .éßİ漢", max_size=30)


def positions(wanted: str, text: str) -> tuple[int, ...] | None:
    match = fuzzy_match(wanted, text)
    return match.positions if match else None


@pytest.mark.parametrize(
    ("wanted", "text", "found"),
    [
        ("aime", "aime24", (0, 1, 2, 3)),
        ("AIME", "aime24", (0, 1, 2, 3)),
        ("mwj", "math_with_judge", (0, 5, 10)),
        ("judge", "jailbreak_judge", (10, 11, 12, 13, 14)),
        ("lcb6", "livecodebench/v6", (0, 4, 8, 15)),
        ("ver", "math_verified", (5, 6, 7)),
        ("x24", "aime-x24", (5, 6, 7)),
        ("", "anything", ()),
        ("abc", "acb", None),
        ("a", "", None),
        ("İ", "xİy", (1,)),
        ("漢字", "wide-漢x字", (5, 7)),
    ],
)
def test_where_letters_are_found(wanted: str, text: str, found: tuple[int, ...] | None) -> None:
    assert positions(wanted, text) == found


@pytest.mark.parametrize(
    ("wanted", "better", "worse"),
    [
        ("math", "math", "math-500"),
        ("math", "math-500", "math_with_judge"),
        ("math", "math_with_judge", "hendrycks_math"),
        ("math", "hendrycks_math", "mathematics"[::-1] + "math"),
        ("math", "polymath", "m_a_long_t_h"),
        ("sa", "simple_agent", "swe_pivot_alpha"),
        ("gpqa", "gpqa", "gpqa-x"),
        ("v6", "livecodebench/v6", "movie16"),
    ],
)
def test_which_match_is_better(wanted: str, better: str, worse: str) -> None:
    first, second = fuzzy_match(wanted, better), fuzzy_match(wanted, worse)
    assert first is not None and second is not None
    assert first.score > second.score


def folded(text: str) -> list[str]:
    return [low if len(low := char.lower()) == 1 else char for char in text]


@given(wanted=NAMES, text=NAMES)
def test_positions_spell_the_wanted_text(wanted: str, text: str) -> None:
    found = positions(wanted, text)
    letters = iter(folded(text))
    assert (found is not None) == all(char in letters for char in folded(wanted))
    if found is not None:
        assert list(found) == sorted(set(found))
        assert [folded(text)[place] for place in found] == folded(wanted)


@given(text=NAMES.filter(bool), places=st.sets(st.integers(0, 29)))
def test_every_subsequence_is_found(text: str, places: set[int]) -> None:
    wanted = "".join(text[place] for place in sorted(places) if place < len(text))
    assert fuzzy_match(wanted, text) is not None


@given(text=NAMES.filter(bool), more=NAMES.filter(bool))
def test_the_whole_name_is_the_best_match(text: str, more: str) -> None:
    whole, part = fuzzy_match(text, text), fuzzy_match(text, text + more)
    assert whole is not None and part is not None
    assert whole.score > part.score


def test_a_hostile_needle_costs_no_time() -> None:
    began = time.process_time()
    fuzzy_match("a" * 300 + "b", "a" * 3000)
    fuzzy_match("ab" * 500, "ab" * 3000)
    assert time.process_time() - began < 0.5
