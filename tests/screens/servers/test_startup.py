"""Steps of a start, from events."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from screens.servers.startup import Startup, Step

EVENTS: list[dict[str, Any]] = [
    {"type": "stack.starting", "t": 100.0, "servers": ["rs", "model"]},
    {"type": "environment.preparing", "t": 100.1, "servers": ["rs"], "folder": "x", "missing": ["numpy"]},
    {"type": "environment.ready", "t": 112.0, "servers": ["rs"], "origin": "built", "folder": "x", "seconds": 12.0},
    {"type": "server.started", "t": 112.1, "name": "rs", "pid": 3},
    {"type": "server.phase", "t": 113.1, "name": "rs", "phase": "setting up"},
    {"type": "server.ready", "t": 113.6, "name": "rs", "seconds": 13.6},
]


def startup(events: list[dict[str, Any]]) -> Startup:
    folded = Startup()
    folded.feed(events)
    return folded


def test_steps_have_their_seconds() -> None:
    folded = startup(EVENTS)
    steps = [(step.name, None if step.seconds is None else round(step.seconds, 3)) for step in folded.steps_of("rs")]
    assert steps == [("preparing", 12.0), ("launching", 0.1), ("importing", 1.0), ("setting up", 0.5), ("ready", None)]
    assert folded.steps_of("model") == (Step("preparing", 100.0),)
    assert folded.steps_of("other") == ()


def test_the_last_step_goes_on() -> None:
    assert startup(EVENTS[:4]).steps_of("rs")[-1] == Step("importing", 112.1)


def test_ends_are_kept() -> None:
    folded = startup([*EVENTS, {"type": "server.ended", "t": 120.0, "name": "rs", "code": -9}])
    assert folded.codes == {"rs": -9} and folded.error == ""
    folded.feed([{"type": "stack.ended", "t": 120.1, "error": "rs ended by SIGKILL"}])
    assert folded.error == "rs ended by SIGKILL"


def test_the_last_step_ends_with_its_server() -> None:
    folded = startup([*EVENTS[:4], {"type": "server.ended", "t": 115.1, "name": "rs", "code": 1}])
    assert folded.steps_of("rs")[-1] == Step("importing", 112.1, 3.0)


def test_a_new_start_begins_anew() -> None:
    folded = startup([*EVENTS, {"type": "server.ended", "t": 120.0, "name": "rs", "code": -9}, EVENTS[0] | {"t": 200.0}])
    assert (folded.codes, folded.steps_of("rs")) == ({}, (Step("preparing", 200.0),))


_VALUES = st.one_of(
    st.none(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5), st.lists(st.text(max_size=5), max_size=3)
)
_TYPES = [
    "stack.starting",
    "environment.preparing",
    "server.phase",
    "server.started",
    "server.ready",
    "server.ended",
    "stack.ended",
    "x",
]


@given(
    st.lists(st.dictionaries(st.sampled_from(["t", "name", "phase", "code", "servers", "error"]), _VALUES), max_size=8), st.data()
)
def test_strange_events_break_nothing(events: list[dict[str, Any]], data: st.DataObject) -> None:
    folded = startup([event | {"type": data.draw(st.sampled_from(_TYPES))} for event in events])
    for step in folded.steps_of("a"):
        assert step.seconds is None or step.seconds >= 0
