"""Narrowing the run list: words, terms, letters in order, nearest names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import GymError
from backend.io.result_paths import ResultPaths
from backend.rollouts.run_entry import Headline, RunEntry
from screens.results.run_filter import lit_letters, matching_runs, nearest_names


def run(name: str, **facts: object) -> RunEntry:
    return RunEntry(ResultPaths(Path(f"/r/{name}.jsonl")), name, str(facts.pop("state", "done")), **facts)  # type: ignore[arg-type]


RUNS = [
    run("mcqa/first_steps", benchmark="first_steps", model="small-7b", headline=Headline("reward/mean", 0.36, "0-1")),
    run("mcqa/large", benchmark="mcqa", model="large-70b", state="died"),
    run("tools/weather", benchmark="weather", model="small-7b", state="stopped"),
]


def names(text: str) -> list[str]:
    return [found.name for found in matching_runs(RUNS, text, 0.0).runs]


def test_words_and_terms_narrow_together() -> None:
    assert names("") == [found.name for found in RUNS]
    assert names("small") == ["mcqa/first_steps", "tools/weather"]
    assert names("small state:stopped") == ["tools/weather"]
    assert names("score<0.5") == ["mcqa/first_steps"]
    assert names("-small") == ["mcqa/large"]


def test_letters_in_order_count_only_when_no_run_has_the_word() -> None:
    exact = matching_runs(RUNS, "la", 0.0)
    assert [found.name for found in exact.runs] == ["mcqa/large"] and not exact.fuzzy
    near = matching_runs(RUNS, "mcqlrg", 0.0)
    assert [found.name for found in near.runs] == ["mcqa/large"] and near.fuzzy
    assert matching_runs(RUNS, "mcqlrg state:done", 0.0).runs == []


def test_a_mistake_in_a_term_is_told() -> None:
    with pytest.raises(GymError, match="no state"):
        matching_runs(RUNS, "state:gone", 0.0)
    with pytest.raises(GymError, match="quote"):
        matching_runs(RUNS, 'name:"two', 0.0)


def test_nearest_names() -> None:
    assert nearest_names(RUNS, "wether") == ["tools/weather"]
    assert nearest_names(RUNS, "state:died") == []
    assert nearest_names(RUNS, "'wether") == []


def test_lit_letters() -> None:
    assert lit_letters("mcqa/Large", ["large"], fuzzy=False) == (5, 6, 7, 8, 9)
    assert lit_letters("mcqa/large", ["mlg"], fuzzy=True) == (0, 5, 8)
    assert lit_letters("mcqa/large", ["mlg"], fuzzy=False) == ()
    assert lit_letters("mcqa", ["mlg"], fuzzy=True) == ()
    assert lit_letters("İx", ["x"], fuzzy=False) == ()  # its small form is longer


@given(st.text(max_size=20), st.text(min_size=1, max_size=8))
def test_lit_positions_are_inside_and_hold_the_word(text: str, word: str) -> None:
    word = word.lower()
    for fuzzy in (False, True):
        positions = lit_letters(text, [word], fuzzy=fuzzy)
        assert all(0 <= position < len(text) for position in positions)
        if positions:
            assert "".join(text.lower()[position] for position in positions) == word


@given(st.text(max_size=30))
def test_any_text_is_a_filter_or_a_clear_error(text: str) -> None:
    try:
        found = matching_runs(RUNS, text, 0.0)
    except GymError as error:
        assert error.message
    else:
        assert set(map(id, found.runs)) <= set(map(id, RUNS))
        nearest_names(RUNS, text)
