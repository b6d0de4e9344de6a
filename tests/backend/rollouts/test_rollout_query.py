"""The language of the viewer's filter."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.rollouts.rollout_query import (
    NumberCondition,
    Query,
    QueryError,
    RangeCondition,
    Sort,
    StateCondition,
    TextCondition,
    Word,
    parse_query,
)


def test_a_whole_query() -> None:
    query = parse_query('reward<1 task:183 rollout:2 fail:timeout end:length agent:x sort:-reward word "two words" !not')
    assert query == Query(
        (
            NumberCondition("reward", "<", (1.0,)),
            NumberCondition("task", "=", (183.0,)),
            NumberCondition("rollout", "=", (2.0,)),
            TextCondition("fail", ":", "timeout"),
            TextCondition("end", ":", "length"),
            TextCondition("agent", ":", "x"),
        ),
        (Word("word"), Word("two words"), Word("not", negated=True)),
        Sort("reward", descending=True),
    )


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("task:1,2", NumberCondition("task", "=", (1.0, 2.0))),
        ("task!=1,2", NumberCondition("task", "=", (1.0, 2.0), negated=True)),
        ("reward!=1", NumberCondition("reward", "!=", (1.0,))),
        ("task:3..7", RangeCondition("task", 3.0, 7.0)),
        ("task:3..", RangeCondition("task", 3.0, math.inf)),
        ("tokens>=1e3", NumberCondition("tokens", ">=", (1000.0,))),
        ("!REWARD=1", NumberCondition("reward", "=", (1.0,), negated=True)),
        ("task:hard-7", TextCondition("task", "=", "hard-7")),
        ("end!=stop", TextCondition("end", "=", "stop", negated=True)),
        ("fail:none", TextCondition("fail", ":", None)),
        ("fail:any", TextCondition("fail", ":", None, negated=True)),
        ("!fail:any", TextCondition("fail", ":", None)),
        ('agent:"My Agent"', TextCondition("agent", ":", "my agent")),
        ("is:failed", StateCondition("failed")),
        ("!is:big", StateCondition("big", negated=True)),
    ],
)
def test_conditions(text: str, condition: object) -> None:
    assert parse_query(text) == Query((condition,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("rewrd<1", "`rewrd<1`: there is no field `rewrd`", "Did you mean `reward`?"),
        ("http://x", "`http://x`: there is no field `http`", 'quote text to be searched: "http://x"'),
        ("reward<", "`reward<`: a value is missing", "for example `reward<1`"),
        ("reward<low", "`reward<low`: `low` is not a number", "for example `reward<1`"),
        ("task<a", "`task<a`: `a` is not a number", "for example `task:3..7`"),
        ("end<stop", "`end<stop`: `end` is a text and takes `:`, `=` or `!=`", "for example `end:length`"),
        ("is:good", "`is:good`: `is:` takes one of failed, scored, unreadable, superseded, big", None),
        ("sort:rewards", "`sort:rewards`: rows are sorted by", "Did you mean `reward`?"),
        ("sort:task sort:reward", "`sort:reward`: a filter has one `sort:`", "sorts downwards"),
    ],
)
def test_mistakes_are_named(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(QueryError) as caught:
        parse_query(text)
    assert caught.value.message.startswith(message)
    assert hint in (caught.value.hint or "") if hint else caught.value.hint is None


@pytest.mark.parametrize("text", ["", "   ", '""'])
def test_nothing_asks_for_everything(text: str) -> None:
    assert parse_query(text) == Query()
    assert parse_query(text).is_empty


@given(
    st.text()
    | st.lists(st.sampled_from(["reward", "<", ":", "=", '"', "!", " ", "1", "..", ",", "sort", "-", "is", "task"])).map("".join)
)
def test_any_text_is_a_query_or_a_mistake(text: str) -> None:
    try:
        parse_query(text)
    except QueryError as error:
        assert error.message
