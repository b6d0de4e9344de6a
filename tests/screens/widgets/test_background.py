"""Work beside the loop: results in order, outdated ones dropped, failures told, threads that end."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widget import Widget

from backend.errors import GymError, Place
from screens.widgets.background import Background, Failure, Reported, Reporter
from tests.workbench import heartbeat, settle


class Worker(Widget):
    """A widget that notes what its workers told."""

    def __init__(self) -> None:
        super().__init__()
        self.background = Background[Any](self)
        self.told: list[Any] = []

    def on_reported(self, message: Reported) -> None:
        self.background.receive(message)

    def on_unmount(self) -> None:
        self.background.stop_all()

    def start(self, group: str, work: Any, **options: Any) -> None:
        self.background.start(
            group,
            work,
            done=self.told.append,
            failed=self.told.append,
            partly=lambda value: self.told.append(("part", value)),
            **options,
        )


class Bench(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.worker = Worker()

    def compose(self) -> Any:
        yield self.worker

    @property
    def idle(self) -> bool:
        return self.count == 0

    def begin_work(self) -> None:
        self.count += 1

    def end_work(self) -> None:
        self.count -= 1


async def test_parts_come_before_the_result_and_the_bench_is_idle_afterwards() -> None:
    app = Bench()

    def work(reporter: Reporter) -> str:
        for number in range(3):
            reporter.tell(number)
        return "done"

    async with app.run_test() as pilot, heartbeat():
        app.worker.start("a", work)
        assert not app.idle
        await settle(pilot)
        assert app.worker.told == [("part", 0), ("part", 1), ("part", 2), "done"]


async def test_newer_work_of_a_group_replaces_older_work() -> None:
    app = Bench()
    go = threading.Event()

    def slow(reporter: Reporter) -> str:
        reporter.tell("early")
        go.wait(5)
        reporter.tell("late")
        return "old"

    async with app.run_test() as pilot:
        app.worker.start("a", slow)
        await _until(pilot, lambda: app.worker.told == [("part", "early")])
        app.worker.start("a", lambda _reporter: "new")
        app.worker.start("b", lambda _reporter: "other group")
        go.set()
        await settle(pilot)
        assert sorted(map(str, app.worker.told[1:])) == ["new", "other group"]


async def test_stopped_work_tells_nothing_more() -> None:
    app = Bench()
    ended = threading.Event()

    def work(reporter: Reporter) -> str:
        while reporter.wait(0.01):
            pass
        ended.set()
        return "never seen"

    async with app.run_test() as pilot:
        app.worker.start("a", work)
        app.worker.background.stop("a")
        await settle(pilot)
        assert ended.is_set() and app.worker.told == []


async def test_failures_are_told_and_do_not_end_the_app() -> None:
    app = Bench()

    def ours(_reporter: Reporter) -> None:
        raise GymError("no such folder", hint="make it", place=Place("x.yaml", 3))

    def other(_reporter: Reporter) -> None:
        raise ValueError("odd")

    async with app.run_test() as pilot:
        app.worker.start("a", ours)
        app.worker.start("b", other)
        await settle(pilot)
        assert set(app.worker.told) == {Failure("x.yaml:3: no such folder", "make it"), Failure("ValueError: odd")}


async def test_endless_work_leaves_the_bench_idle_and_ends_with_the_widget() -> None:
    app = Bench()
    ended = threading.Event()

    def follow(reporter: Reporter) -> None:
        number = 0
        while reporter.wait(0.01):
            reporter.tell(number := number + 1)
        ended.set()

    async with app.run_test() as pilot:
        app.worker.start("a", follow, endless=True)
        assert app.idle
        await _until(pilot, lambda: len(app.worker.told) > 2)
    assert ended.wait(2)


async def test_an_error_in_a_callback_is_not_swallowed() -> None:
    app = Bench()

    def done(_value: Any) -> None:
        raise RuntimeError("a fault of the screen")

    with pytest.raises(RuntimeError, match="a fault of the screen"):
        async with app.run_test() as pilot:
            app.worker.background.start("a", lambda _reporter: 1, done=done, failed=done)
            await settle(pilot)


async def _until(pilot: Pilot[Any], holds: Any) -> None:
    for _ in range(300):
        if holds():
            return
        await pilot.pause(0.01)
    raise AssertionError("it did not happen")
