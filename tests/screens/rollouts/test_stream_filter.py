"""The filter of the stream of finished rollouts."""

from __future__ import annotations

import pytest

from backend.rollouts.run_progress_parts import Finished
from screens.rollouts.stream_filter import StreamFilter
from screens.rollouts.stream_rows import Preview


def line(task: int = 3, reward: float | None = 1.0, failure: str | None = None, **fields: object) -> Finished:
    known = {
        "rollout": 0, "attempt": 0, "agent": "math_agent", "at": 0.0, "seconds": 2.0, "reason": "", "http_status": None,
        "input_tokens": 10, "output_tokens": 20, "offset": 0,
    }  # fmt: skip
    return Finished(task=task, reward=reward, failure=failure, **{**known, **fields})  # type: ignore[arg-type]


ANSWER = Preview(2, "length", "The answer is 42")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", True), ("reward<1", False), ("reward>=1", True), ("reward:1", True), ("task:3", True), ("task:4", False), ("task>2 task<4", True),
        ("rollout:0", True), ("attempt:1", True), ("tokens>20", False), ("seconds<=2", True), ("agent:MATH", True), ("fail:x", False),
        ("answer", True), ("ANSWER is", True), ("length", True), ("43", False),
    ],
)  # fmt: skip
def test_terms(text: str, shown: bool) -> None:
    assert StreamFilter().with_text(text).matches(line(), ANSWER) is shown


def test_rollouts_without_a_reward_are_never_below_one() -> None:
    chosen = StreamFilter().with_text("reward<1")
    assert not chosen.matches(line(reward=None, failure="timeout_exceeded"), None)
    assert StreamFilter().with_text("fail:timeout").matches(line(reward=None, failure="timeout_exceeded"), None)
    assert StreamFilter().with_text("503").matches(line(reward=None, failure="x", reason="HTTP 503"), None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("rewrad<1", "unknown term rewrad; Did you mean `reward`?"), ("task:many", "task: needs a number, not many"), ("zzz:1", "unknown term zzz; known: ")],
)  # fmt: skip
def test_mistakes_are_told_and_left_out(text: str, problem: str) -> None:
    chosen = StreamFilter().with_text(f"{text} task:3")
    assert chosen.problem.startswith(problem)
    assert chosen.matches(line(), None)
    assert not chosen.matches(line(task=4), None)


def test_failures_only() -> None:
    chosen = StreamFilter().toggled_failures()
    assert not chosen.passes_all
    assert not chosen.matches(line(), None)
    assert chosen.matches(line(failure="x"), None)
    assert chosen.toggled_failures().passes_all
