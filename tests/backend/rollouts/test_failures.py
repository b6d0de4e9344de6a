"""Failed attempts: their rows, where answers go, which are tried again, which count as zero."""

from __future__ import annotations

from typing import Any

import pytest

from backend.rollouts.failures import (
    KNOWN_CLASSES,
    Destination,
    FailedCall,
    Retry,
    destination_of,
    failure_record,
    failures_as_zero,
    retry_of,
)


def test_the_documented_row() -> None:
    call = FailedCall("ClientResponseError", "500, message='x'", 500, b'{"detail":"boom"}', 17)
    assert failure_record(call) == {
        "_ng_failure_class": "agent_run_error",
        "_ng_failure_type": "ClientResponseError",
        "_ng_failure_message": "500, message='x'",
        "_ng_failure_http_status": 500,
        "_ng_failure_response_body": '{"detail":"boom"}',
        "failure_reason": 'the agent answered HTTP 500: {"detail":"boom"}',
    }


@pytest.mark.parametrize(
    ("body", "length", "expected"),
    [
        (b"", 0, None),
        (b"x" * 2000, 2000, "x" * 2000),
        (b"x" * 2001, 2001, "x" * 2000 + "…"),
        (b"x" * 8000, 90_000, "x" * 2000 + "…"),
        ("é".encode() * 1500, 3000, "é" * 1500 + "…"),
        (b"\xff", 1, "\ufffd"),
    ],
)
def test_the_body_is_cut(body: bytes, length: int, expected: str | None) -> None:
    assert failure_record(FailedCall("E", "m", 500, body, length))["_ng_failure_response_body"] == expected


def test_the_reason_is_one_short_line() -> None:
    assert failure_record(FailedCall("TimeoutError", "too late", None))["failure_reason"] == (
        "no complete answer from the agent: TimeoutError: too late"
    )
    reason = failure_record(FailedCall("E", "m", 500, b"a\nb" * 500, 1500, upstream_status=401))["failure_reason"]
    assert reason.startswith("HTTP 401 from a server behind the agent: a ba b")
    assert len(reason) == 300 and "\n" not in reason


@pytest.mark.parametrize(
    ("record", "destination", "retry"),
    [
        ({"_ng_failure_class": "judge_failed"}, Destination.FAILURES, Retry.TO_THE_CAP),
        ({"_ng_failure_class": "timeout_exceeded", "_ng_failure_terminal": True}, Destination.FAILURES, Retry.NEVER),
        ({"_ng_failure_class": "kill_shaped", "_ng_no_persist": True}, Destination.NOWHERE, Retry.ALWAYS),
        ({"_ng_no_persist": True}, Destination.NOWHERE, Retry.ALWAYS),
        ({"_ng_failure_class": "anything"}, Destination.FAILURES, Retry.TO_THE_CAP),
    ],
)
def test_where_failures_go(record: dict[str, Any], destination: Destination, retry: Retry) -> None:
    assert (destination_of(record), retry_of(record)) == (destination, retry)


@pytest.mark.parametrize("record", [{}, {"reward": 1.0}, {"_ng_failure_class": None, "_ng_no_persist": False}])
def test_where_results_go(record: dict[str, Any]) -> None:
    assert destination_of(record) is Destination.ROLLOUTS


def test_the_table_of_classes() -> None:
    assert {name for name, entry in KNOWN_CLASSES.items() if entry.retry is Retry.NEVER} == {"timeout_exceeded", "skipped"}
    assert KNOWN_CLASSES["kill_shaped"].retry is Retry.ALWAYS


def test_lines_without_indices_and_null_rewards() -> None:
    rows = [
        {"_ng_failure_class": "x"},
        {"_ng_failure_class": "x", "_ng_task_index": 0, "_ng_rollout_index": 0, "reward": None, "_ng_failure_judge_error": "e"},
        {"_ng_failure_class": "x", "_ng_task_index": 1, "_ng_rollout_index": 0},
    ]
    assert failures_as_zero(rows, ["x"], {(1, 0)}) == [{"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": 0.0}]
