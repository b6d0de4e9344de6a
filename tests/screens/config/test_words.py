"""The words of a configuration, taken apart, moved and put together again."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.config.request import ConfigRequest
from backend.config.resolve_view import resolve_view
from backend.config.stages import READ, VALIDATED
from backend.errors import GymError, UsageError
from screens.config.words import (
    Entry,
    entries_of,
    has_secret,
    moved,
    override_of,
    parsed_words,
    position_after_move,
    run_words,
    toggled,
    typed_entries,
    words_of,
)

WORDS = ["--config", "a.yaml", "--benchmark=first_steps", "-m", "x", "--no-model", "+a=1", "~b", "++c=d e", "--sea", "dir"]


def test_flags_keep_their_values_and_overrides_stand_alone() -> None:
    assert [entry.words for entry in entries_of(WORDS)] == [
        ("--config", "a.yaml"),
        ("--benchmark=first_steps",),
        ("-m", "x"),
        ("--no-model",),
        ("+a=1",),
        ("~b",),
        ("++c=d e",),
        ("--sea", "dir"),
    ]
    assert [entry.group for entry in entries_of(WORDS)] == [
        "--config", "--benchmark", "--model", "--no-model", "override", "override", "override", "--search-dir",
    ]  # fmt: skip


@given(
    st.lists(
        st.one_of(
            st.sampled_from([("--config", "a.yaml"), ("--model", "m"), ("--no-model",), ("-m", "=x")]),
            st.text(min_size=1).map(lambda text: (f"+k={text}",)),
        ),
        max_size=8,
    )
)
def test_taking_apart_and_putting_together_changes_nothing(parts: list[tuple[str, ...]]) -> None:
    words = [word for part in parts for word in part]
    entries = entries_of(words)
    assert words_of(entries) == words
    assert [entry.words for entry in entries] == parts
    assert entries_of(shlex.split(" ".join(entry.text for entry in entries))) == entries


def test_a_yaml_file_alone_is_a_config() -> None:
    assert entries_of(["a b.yaml"]) == (Entry(("--config", "a b.yaml")),)
    assert entries_of(["+x=a.yaml"]) == (Entry(("+x=a.yaml",)),)


def test_a_flag_without_its_value_is_told_by_the_parser() -> None:
    with pytest.raises(UsageError, match="expected one argument"):
        typed_entries("--config")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--nope", "unrecognized"),
        ("word", "unexpected word"),
        ("'a", "a quotation mark is missing"),
        ("--provenance", "only changes what is printed"),
        ("--help", "only changes what is printed"),
        ("--config a.yaml --key x", "only changes what is printed"),
        ("--model-api-key abc", "keys do not go"),
        ("++x.api_key=abc", "keys do not go"),
    ],
)
def test_what_cannot_be_added_is_refused_with_its_reason(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        typed_entries(text)


@pytest.mark.parametrize("words", [("--help",), ("-h",), ("--version",)])
def test_words_that_print_something_are_no_configuration(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        parsed_words(words)


def test_what_is_off_does_not_count() -> None:
    entries = toggled(entries_of(["--config", "a.yaml", "+a=1"]), 0)
    assert words_of(entries) == ["+a=1"] and words_of(toggled(entries, 0)) == ["--config", "a.yaml", "+a=1"]


def test_only_files_and_overrides_move_and_among_their_kind() -> None:
    entries = entries_of(["--config", "a.yaml", "+a=1", "--config", "b.yaml", "-m", "x", "+b=2"])
    assert words_of(moved(entries, 0, 1)) == ["--config", "b.yaml", "+a=1", "--config", "a.yaml", "-m", "x", "+b=2"]
    assert position_after_move(entries, 0, 1) == 2
    assert words_of(moved(entries, 4, -1))[2] == "+b=2"
    for index, step, reason in ((0, -1, "the first --config"), (4, 1, "the last override"), (3, 1, "place of --model is fixed")):
        with pytest.raises(GymError, match=reason):
            moved(entries, index, step)


def test_a_run_takes_the_same_words_without_keys_and_stand_ins() -> None:
    entries = entries_of(["--config", "a.yaml", "--no-model", "--model-api-key", "k", "++a.token=x", "+a=1", "+b=****"])
    assert run_words(entries) == ["--config", "a.yaml", "+a=1"]
    assert [has_secret(entry) for entry in entries] == [False, False, True, True, False, True]


TREE = {
    "a": {"word": "x", "yes": True, "none": None, "list": [1], "blank": "b c", "url": "http://h:1/v1", "digits": "12"},
    "api_key": "sk-1234567890",
}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("a.word", "++a.word=x"),
        ("a.yes", "++a.yes=true"),
        ("a.none", "++a.none="),
        ("a.blank", "++a.blank="),
        ("a.url", "++a.url=http://h:1/v1"),
        ("a.list", "++a.list="),
        ("a", "++a="),
    ],
)
def test_a_key_of_the_tree_begins_an_override(key: str, expected: str) -> None:
    entry = resolve_view(ConfigRequest(initial=TREE, read_env_file=False)).entry(key)
    assert entry is not None
    assert override_of(entry, VALIDATED) == expected


@pytest.mark.parametrize(
    ("key", "stage", "message"),
    [
        ("api_key", VALIDATED, "belongs in env.yaml"),
        ("a.list[0]", VALIDATED, "set the whole list"),
        ("a.word", READ, "in the stages after"),
    ],
)
def test_keys_that_no_override_sets(key: str, stage: str, message: str) -> None:
    entry = resolve_view(ConfigRequest(initial=TREE, read_env_file=False)).entry(key)
    assert entry is not None
    with pytest.raises(GymError, match=message):
        override_of(entry, stage)
