"""Two conversations side by side."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.rollouts.transcript import Kind, Transcript, Turn
from backend.rollouts.transcript_diff import Pair, Relation, TextDiff, align, word_diff

EQUAL, DIFFERS, LEFT, RIGHT = Relation.EQUAL, Relation.DIFFERS, Relation.LEFT_ONLY, Relation.RIGHT_ONLY


def conversation(*turns: tuple[Kind, str]) -> Transcript:
    return Transcript(tuple(Turn(kind, body) for kind, body in turns))


def test_turns_of_one_kind_stand_opposite_each_other() -> None:
    left = conversation(
        (Kind.USER, "q"), (Kind.REASONING, "a"), (Kind.TOOL_CALL, "f"), (Kind.TOOL_RESULT, "1"), (Kind.ASSISTANT, "x")
    )
    right = conversation((Kind.USER, "q"), (Kind.REASONING, "b"), (Kind.ASSISTANT, "y"))
    assert align(left, right) == (
        Pair(0, 0, EQUAL),
        Pair(1, 1, DIFFERS),
        Pair(2, None, LEFT),
        Pair(3, None, LEFT),
        Pair(4, 2, DIFFERS),
    )
    assert align(conversation(), right)[0] == Pair(None, 0, RIGHT)


turns = st.lists(st.tuples(st.sampled_from(list(Kind)[:4]), st.sampled_from("ab")), max_size=8)


@given(turns, turns)
def test_every_turn_has_one_place(left: list[tuple[Kind, str]], right: list[tuple[Kind, str]]) -> None:
    pairs = align(conversation(*left), conversation(*right))
    assert [pair.left for pair in pairs if pair.left is not None] == list(range(len(left)))
    assert [pair.right for pair in pairs if pair.right is not None] == list(range(len(right)))
    for pair in pairs:
        if pair.left is None or pair.right is None:
            assert pair.relation is (LEFT if pair.right is None else RIGHT)
        else:
            assert left[pair.left][0] == right[pair.right][0]
            assert (pair.relation is EQUAL) == (left[pair.left] == right[pair.right])


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("same", "same", TextDiff((), (), "words")),
        ("the answer is 42.", "the answer is 43.", TextDiff(((14, 16),), ((14, 16),), "words")),
        ("a b", "a new b", TextDiff((), ((2, 5),), "words")),
        ("", "x y", TextDiff((), ((0, 3),), "words")),
        ("a  b", "a b", TextDiff((), (), "words")),
    ],
)
def test_words_that_differ(left: str, right: str, expected: TextDiff) -> None:
    assert word_diff(left, right) == expected


@given(st.text("ab \n", max_size=40), st.text("ab \n", max_size=40))
def test_without_what_differs_the_texts_are_equal(left: str, right: str) -> None:
    diff = word_diff(left, right)

    def rest(text: str, spans: tuple[tuple[int, int], ...]) -> list[str]:
        for begin, end in reversed(spans):
            text = text[:begin] + " " + text[end:]
        return text.split()

    assert rest(left, diff.left) == rest(right, diff.right)


def test_larger_texts_are_compared_by_lines_and_then_not_at_all() -> None:
    left = "\n".join(f"line {number} of the text" for number in range(3000))
    assert word_diff(left, left.replace("line 7 ", "row 7 ")) == TextDiff(((133, 151),), ((133, 150),), "lines")
    assert word_diff("x " * 3_000_000, "y").unit == "whole"


def test_the_worst_texts_take_no_time_that_anyone_notices() -> None:
    left = " ".join(f"w{number * 7919 % 9973}" for number in range(10_000))
    right = " ".join(f"w{number * 7907 % 9967}" for number in range(10_000))
    began = time.thread_time()
    word_diff(left, right)
    assert time.thread_time() - began < 5
