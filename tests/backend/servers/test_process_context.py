"""Reports of a server process: whole lines, whatever they say."""

from __future__ import annotations

import json
import os
import select

import pytest

from backend.servers.process_context import FAILED, ProcessContext


@pytest.mark.parametrize(
    "text", ["short", "x" * 5000, "語" * 3000, "\U0001f9ea" * 3000, '"\n' * 3000, "a" * 900 + "語" * 900, "\ud800"]
)
def test_a_failure_is_one_line_that_the_system_does_not_tear(text: str) -> None:
    read, write = os.pipe()
    try:
        ProcessContext(report=write).report_failure(text, text, told=True)
        line = os.read(read, 1 << 16)
    finally:
        os.close(read)
        os.close(write)
    assert len(line) <= select.PIPE_BUF and line.endswith(b"\n") and line.count(b"\n") == 1
    told = json.loads(line.removeprefix(FAILED))
    assert told["told"] is True and told["reason"] == told["hint"]
    assert text.startswith(told["reason"]) and len(told["reason"]) >= min(len(text), 150)
