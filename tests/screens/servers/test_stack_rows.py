"""Rows of the list: states, health, orders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from backend.servers.stack_record import StackServer
from screens.servers.board import Board, Snapshot
from screens.servers.stack_rows import COLUMNS, StackRows, columns_for, error_share, health_of, state_of
from screens.widgets.columns import place
from screens.widgets.virtual_list import Cell
from tests.server_samples import samples, server, stack
from tests.workbench import NOW


def shown(*servers: StackServer, state: str = "ready", times: int = 2, **facts: Any) -> Snapshot:
    record = stack(servers=servers, state=state)
    board = Board()
    for number in range(times):
        board.note([samples(record, number, **facts)])
    return board.look([record], NOW)


def one(times: int = 2, *, stack_state: str = "ready", measured: dict[str, Any] | None = None, **facts: Any) -> tuple[str, str]:
    """State and health of a server with these facts."""
    snapshot = shown(server("a", "resources_servers", 11003, 5, **facts), state=stack_state, times=times, a=measured or {})
    (stack_view,) = snapshot.stacks
    (view,) = stack_view.servers
    state = state_of(view, stack_view)
    return f"{state.sign} {state.text}", health_of(view, NOW)[0]


@pytest.mark.parametrize(
    ("facts", "measured", "expected"),
    [
        ({}, {}, ("● up", "200 5ms")),
        ({}, {"latency_ms": 1234.0}, ("● up", "200 1.2 s")),
        ({}, {"http_status": 404, "latency_ms": 0.4}, ("● up", "404 0ms")),
        ({}, {"health": "timeout", "latency_ms": None}, ("! silent", "timeout")),
        ({}, {"health": "connection_error"}, ("! silent", "refused")),
        ({}, {"health": "unknown_error"}, ("! silent", "no answer")),
        ({"state": "starting", "phase": "importing", "phase_since": NOW - 3.1}, {}, ("◐ importing", "3.1 s")),
        ({"state": "starting", "phase": "setting up", "phase_since": NOW - 0.2}, {}, ("◐ setup", "200 ms")),
        ({"state": "preparing", "phase": "preparing", "phase_since": NOW - 75}, {}, ("◐ preparing", "1:15")),
        ({"state": "starting", "phase": "", "phase_since": 0.0}, {}, ("◐ starting", "waiting")),
        ({"state": "ended", "code": 1}, {}, ("✗ exit 1", "—")),
        ({"state": "ended", "code": -9}, {}, ("✗ SIGKILL", "—")),
        ({"state": "ended", "code": -99}, {}, ("✗ signal 99", "—")),
        ({"state": "ended", "code": 0}, {}, ("○ stopped", "—")),
        ({}, {"alive": False}, ("✗ gone", "—")),
    ],
)
def test_states(facts: dict[str, Any], measured: dict[str, Any], expected: tuple[str, str]) -> None:
    assert one(measured=measured, **facts) == expected
    assert len(expected[0]) <= 11 and len(expected[1]) <= 9


def test_before_the_first_sample_nothing_is_claimed() -> None:
    assert one(times=0) == ("● up", "…")
    assert one(stack_state="stopping")[0] == "◐ stopping"


def test_errors_are_those_of_the_last_minute() -> None:
    def view(**measured: Any) -> Any:
        return shown(server("a", "resources_servers", 1, 5), a=measured).stacks[0].servers[0]

    assert error_share(view(requests=[100, 200], errors=[90, 95])) == 0.05
    assert error_share(view(requests=[100, 100], errors=[90, 90])) is None
    assert error_share(view(requests=None, errors=None)) is None


def names(snapshot: Snapshot, order: str, *, upside_down: bool = False) -> list[str]:
    rows = StackRows(snapshot, NOW, {}, order, upside_down=upside_down)
    return [rows.key(index)[1] for index in range(len(rows))]


def test_orders_keep_stacks_together_and_heads_first() -> None:
    record = stack()
    other = replace(record, id="b", name="other")
    board = Board()
    busy = {"simple_agent": {"cpu_percent": 80.0}, "policy_model": {"cpu_percent": 40.0}}
    board.note([samples(record, 0, **busy), samples(other, 0)])
    snapshot = board.look([record, other], NOW)
    assert names(snapshot, "configured") == ["", "head_server", "math_with_judge", "simple_agent", "policy_model"] * 2
    assert names(snapshot, "cpu")[:5] == ["", "head_server", "simple_agent", "policy_model", "math_with_judge"]
    assert names(snapshot, "cpu", upside_down=True)[:5] == ["", "head_server", "math_with_judge", "policy_model", "simple_agent"]
    assert names(snapshot, "name")[5:] == ["", "head_server", "math_with_judge", "policy_model", "simple_agent"]


@pytest.mark.parametrize("order", [column.name for column in COLUMNS])
def test_every_title_can_be_clicked(order: str) -> None:
    snapshot = shown(server("b", "resources_servers", 2, 5), server("a", "head_server", 1, 6, state="ended", code=3), times=0)
    assert sorted(names(snapshot, order)) == ["", "a", "b"]


def test_rows_find_their_keys() -> None:
    rows = StackRows(shown(server("b", "resources_servers", 2, 5)), NOW, {})
    assert [rows.index_of(rows.key(index)) for index in range(len(rows))] == [0, 1]
    assert rows.index_of(("x", "y")) is None


def test_a_heading_says_what_the_stack_is() -> None:
    record = stack(run="results/m_run")
    (heading,) = [StackRows(Board().look([record], NOW), NOW, {record.id: "m.jsonl"}).row(0).heading]
    assert heading == Cell("math_verified   3 servers · ready · head 127.0.0.1:11000 · up 12:04 · serves m.jsonl", "strong")


def test_all_columns_fit_where_the_sketch_has_them() -> None:
    assert len(place(COLUMNS, 118)) == len(COLUMNS)
    assert [entry.column.name for entry in place(COLUMNS, 78)] == [
        "name",
        "state",
        "health",
        "port",
        "up",
        "cpu",
        "memory",
        "busy",
    ]
    assert [entry.column.name for entry in place(COLUMNS, 58)] == ["name", "state", "health", "cpu", "memory"]


def test_long_names_get_room() -> None:
    names = ("first_steps_mcqa_resources_server", "first_steps_mcqa_simple_agent")
    snapshot = shown(*(server(name, "resources_servers", 1, 5) for name in names))
    assert place(columns_for(snapshot, narrow=False), 118)[0].width >= 34
    assert place(columns_for(snapshot, narrow=True), 78)[0].width >= 24
    assert columns_for(shown(server("a", "resources_servers", 1, 5)), narrow=False) == COLUMNS
    assert columns_for(Board().look([], NOW), narrow=True) == COLUMNS
