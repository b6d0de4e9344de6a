"""What tells a run to stop, and how a run listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from backend.errors import GymError
from backend.events import Event, Notice
from backend.rollouts import control as control_module
from backend.rollouts.control import RunControl, until_draining
from backend.rollouts.run_events import RunControlled


async def is_up(control: RunControl, within: float = 0.1) -> bool:
    try:
        async with asyncio.timeout(within):
            await control.time_is_up()
    except TimeoutError:
        return False
    return True


async def test_a_signal_drains_a_run_that_collects_once_and_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_module, "DRAIN_SECONDS", 0.05)
    control = RunControl()
    control.collecting = True
    assert control.stop()
    assert control.draining.is_set()
    assert await is_up(control, 1.0)
    assert not control.stop()


def test_a_signal_to_a_run_that_does_not_collect_is_for_the_caller() -> None:
    control = RunControl()
    assert not control.stop()
    assert not control.draining.is_set()


async def test_a_requested_drain_has_no_limit_until_somebody_hurries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_module, "DRAIN_SECONDS", 0.05)
    control = RunControl()
    control.collecting = True
    control.steer("drain", "me")
    assert control.draining.is_set()
    assert not await is_up(control)
    assert control.stop()  # the first signal still means: five seconds
    assert await is_up(control, 1.0)


async def test_a_cancel_gives_up_at_once_also_after_a_drain() -> None:
    control = RunControl()
    control.steer("drain", "me")
    control.steer("cancel", "you")
    assert await is_up(control)
    assert control.unheard() == [RunControlled("drain", "me"), RunControlled("cancel", "you")]
    assert control.unheard() == []


def test_an_unknown_request_is_remarked_and_changes_nothing() -> None:
    control = RunControl()
    control.steer("explode", "me")
    assert not control.draining.is_set()
    (event,) = control.unheard()
    assert isinstance(event, Notice) and event.level == "warning" and "'explode'" in event.text


def test_events_go_to_whoever_passes_them_on_and_wait_when_refused() -> None:
    control = RunControl()
    heard: list[Event] = []

    def take_one(event: Event) -> bool:
        if heard:
            return False
        heard.append(event)
        return True

    control.on_event = take_one
    control.steer("drain", "one")
    control.steer("drain", "two")
    assert heard == [RunControlled("drain", "one")]
    assert control.unheard() == [RunControlled("drain", "two")]


class Steps:
    def __init__(self) -> None:
        self.closed = False

    async def events(self, *, endless: bool, fails: bool = False) -> AsyncGenerator[Event, None]:
        try:
            yield Notice("one")
            yield Notice("two")
            if fails:
                raise GymError("it broke")
            if endless:
                await asyncio.Event().wait()
        finally:
            self.closed = True


async def test_events_pass_until_they_end_by_themselves() -> None:
    steps = Steps()
    assert [event async for event in until_draining(steps.events(endless=False), RunControl())] == [Notice("one"), Notice("two")]
    assert steps.closed
    with pytest.raises(GymError, match="it broke"):
        [event async for event in until_draining(steps.events(endless=False, fails=True), RunControl())]


async def test_a_request_ends_whatever_is_waited_for() -> None:
    control, steps = RunControl(), Steps()
    asyncio.get_running_loop().call_later(0.05, control.steer, "drain", "me")
    async with asyncio.timeout(5):
        assert len([event async for event in until_draining(steps.events(endless=True), control)]) == 2
    assert steps.closed


async def test_leaving_early_closes_the_events() -> None:
    steps = Steps()
    events = until_draining(steps.events(endless=True), RunControl())
    assert await anext(events) == Notice("one")
    await events.aclose()
    assert steps.closed
