"""The board: histories, and stacks that have ended."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from screens.servers.board import HISTORY, KEPT_ENDED, Board
from tests.server_samples import STARTED, samples, stack, start_events, with_logs, write_events
from tests.workbench import NOW

RS = ("20261118-105436-ab12", "math_with_judge")


def test_the_head_server_comes_first_and_the_others_as_configured() -> None:
    snapshot = Board().look([stack()], NOW)
    assert [view.server.name for view in snapshot.stacks[0].servers] == [
        "head_server", "math_with_judge", "simple_agent", "policy_model",
    ]  # fmt: skip


def test_who_calls_whom_is_known_from_both_sides() -> None:
    snapshot = Board().look([stack()], NOW)
    view = snapshot.server((RS[0], "policy_model"))
    assert view is not None and view.used_by == ("math_with_judge", "simple_agent")


def test_a_minute_is_kept() -> None:
    board, record = Board(), stack()
    for number in range(HISTORY + 10):
        facts = {
            "cpu_percent": [float(n) for n in range(100)],
            "requests": [10 * n for n in range(100)],
            "errors": list(range(100)),
        }
        board.note([samples(record, number, math_with_judge=facts)])
    view = board.look([record], NOW).server(RS)
    assert view is not None
    assert view.cpu == tuple(float(number) for number in range(10, 70))
    assert (view.recent_requests, view.recent_errors) == (590, 59)
    assert len(view.probes) == 20 and all(probe.good for probe in view.probes)


def test_latency_is_that_of_the_answers() -> None:
    board, record = Board(), stack()
    for number in range(21):
        board.note([samples(record, number, math_with_judge={"latency_ms": [float(n) for n in range(21)]})])
    board.note([samples(record, 21, math_with_judge={"health": "timeout", "latency_ms": None, "error": "no answer within 2 s"})])
    view = board.look([record], NOW).server(RS)
    assert view is not None
    assert (view.p50, view.p95) == (10.0, 19.0)
    assert [probe.good for probe in view.probes][-2:] == [True, False]


def test_a_pause_leaves_a_gap() -> None:
    board, record = Board(), stack()
    board.note([samples(record)])
    board.note_pause()
    board.note([samples(record)])
    view = board.look([record], NOW).server(RS)
    assert view is not None and view.cpu == (9.0, None, 9.0)


def test_a_server_that_starts_has_no_bad_probes() -> None:
    record = stack(servers=tuple(replace(each, state="starting") for each in stack().servers), state="starting")
    board = Board()
    board.note([samples(record, math_with_judge={"health": "connection_error"})])
    view = board.look([record], NOW).server(RS)
    assert view is not None and view.probes == ()


def test_steps_come_from_the_events() -> None:
    record = with_logs(stack())
    view = Board().look([record], NOW).server(RS)
    assert view is not None
    assert [(step.name, round(step.seconds or 0, 2)) for step in view.steps] == [
        ("preparing", 0.2), ("launching", 0.15), ("importing", 2.55), ("setting up", 0.1), ("ready", 0),
    ]  # fmt: skip
    assert view.log_written == STARTED + 700


def test_a_stack_that_ends_stays_with_its_last_words() -> None:
    record = with_logs(stack())
    board = Board()
    board.look([record], NOW)
    ended = [
        {"type": "server.ended", "name": "math_with_judge", "code": 1, "t": NOW},
        {"type": "stack.ended", "error": "math_with_judge died", "t": NOW},
    ]
    write_events(Path(record.events), [*start_events(record), *ended])
    snapshot = board.look([], NOW + 1)
    (view,) = snapshot.stacks
    assert view.ended_at == NOW + 1
    assert snapshot.running == () and view.error == "math_with_judge died"
    broken, fine = snapshot.server(RS), snapshot.server((RS[0], "simple_agent"))
    assert broken is not None and broken.failed and broken.server.code == 1
    assert broken.last_line.endswith("POST /verify 200 9 ms task=19 rep=3")
    assert fine is not None and fine.ended and not fine.failed


def test_last_words_that_arrive_after_the_end_are_not_missed() -> None:
    ended = tuple(replace(each, state="ended" if each.name == "math_with_judge" else each.state) for each in stack().servers)
    record = with_logs(stack(servers=ended), {"math_with_judge": []})
    log = Path(next(each.log for each in record.servers if each.name == "math_with_judge"))
    board = Board()
    first = board.look([record], NOW).server(RS)
    assert first is not None and first.ended and first.last_line == ""
    log.write_text("SyntaxError: invalid syntax\n")
    second = board.look([record], NOW).server(RS)
    assert second is not None and second.last_line == "SyntaxError: invalid syntax"
    log.write_text("SyntaxError: invalid syntax\nbye\n")
    os.utime(log, (NOW, NOW))
    third = board.look([], NOW).server(RS)
    assert third is not None and third.over and third.last_line == "bye"


def test_the_step_in_which_a_server_ended_ends_with_it() -> None:
    record = with_logs(stack(servers=tuple(replace(each, state="starting", phase_since=NOW - 3) for each in stack().servers)))
    board = Board()
    board.look([record], NOW)
    ended = {"type": "server.ended", "name": "math_with_judge", "code": 1, "t": NOW - 1}
    write_events(Path(record.events), [*start_events(record), ended])
    view = board.look([], NOW + 100).server(RS)
    assert view is not None and view.failed
    assert (view.steps[-1].name, view.steps[-1].seconds) == ("importing", 2.0)


@pytest.mark.parametrize(
    ("code", "failed"), [(0, False), (None, False), (-15, False), (143, False), (130, False), (-9, True), (1, True)]
)
def test_who_was_told_to_end_has_not_failed(code: int | None, failed: bool) -> None:
    servers = tuple(replace(each, state="ended", code=code) for each in stack().servers)
    view = Board().look([stack(servers=servers)], NOW).server(RS)
    assert view is not None and view.ended and view.failed is failed


def test_a_process_that_is_gone_without_a_word_has_failed() -> None:
    board, record = Board(), stack()
    board.note([samples(record, math_with_judge={"alive": False, "health": "connection_error"})])
    view = board.look([record], NOW).server(RS)
    assert view is not None and view.failed


def test_not_too_many_ended_stacks_are_kept() -> None:
    board = Board()
    for number in range(KEPT_ENDED + 3):
        board.look([stack(f"s{number:02}")], NOW + number)
    snapshot = board.look([], NOW + 99)
    assert [view.record.id for view in snapshot.stacks] == [f"s{number:02}" for number in reversed(range(3, KEPT_ENDED + 3))]


def test_a_record_without_files_is_fine(tmp_path: Path) -> None:
    record = stack(
        events=str(tmp_path / "gone"), servers=tuple(replace(each, log=str(tmp_path / "no")) for each in stack().servers)
    )
    board = Board()
    board.look([record], NOW)
    (view,) = board.look([], NOW).stacks
    assert {each.last_line for each in view.servers} == {""}
    board.close()
