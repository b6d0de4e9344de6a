"""Previews of records: read at the offsets that events give, never in the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from backend.rollouts.run_progress_parts import Finished
from screens.rollouts.previews import LONGEST_RECORD, Previews
from screens.rollouts.stream_rows import Preview
from screens.widgets.background import Reporter
from tests.run_samples import sample_answer, write_rows


def finished(task: int, offset: int | None) -> Finished:
    return Finished(task, 0, 0, "a", 0.0, 1.0, 1.0, None, "", None, None, None, offset)


def read(path: Path, lines: list[Finished], until: Callable[[Previews], bool]) -> Previews:
    """Ask for the previews of some lines, and wait for them."""
    previews = Previews()
    told: list[dict[tuple[int, int, int, int], Preview]] = []
    reporter = Reporter(told.append)
    thread = threading.Thread(target=previews.read, args=(lambda: path, reporter))
    thread.start()
    try:
        for line in lines:
            assert previews.get(line) is None
        end = time.monotonic() + 20
        while not until(previews) and time.monotonic() < end:
            while told:
                previews.add(told.pop(0))
            time.sleep(0.01)
    finally:
        reporter.cancel()
        thread.join(10)
    assert not thread.is_alive()
    return previews


def test_what_a_record_tells(tmp_path: Path) -> None:
    offsets = write_rows(tmp_path / "r.jsonl", [sample_answer(0, 1.0, "first"), sample_answer(1, 0.0, "second [/x]\n\x1b[2J")])
    lines = [finished(0, offsets[0]), finished(1, offsets[1])]
    previews = read(tmp_path / "r.jsonl", lines, lambda known: all(known.known(line) for line in lines))
    first, second = previews.known(lines[0]), previews.known(lines[1])
    assert first is not None
    assert second is not None
    assert (first.turns, first.end, first.text) == (1, "stop", "first")
    assert "\x1b" not in second.text
    assert second.text.startswith("second [/x]")


def test_what_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    offsets = write_rows(path, [sample_answer(0, 1.0, "x" * (LONGEST_RECORD + (2 << 20))), sample_answer(7, 1.0, "other")])
    lines = [finished(0, offsets[0]), finished(1, offsets[1]), finished(2, offsets[1] + 5), finished(3, 10**9)]
    previews = read(path, lines, lambda known: all(known.known(line) for line in lines))
    texts = [known.text for line in lines if (known := previews.known(line))]
    assert texts == [
        "(a record of more than 4 MB)",
        "(the file holds another record here)",
        "(unreadable record)",
        "(unreadable record)",
    ]


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    line = finished(0, 0)
    previews = read(tmp_path / "none.jsonl", [line], lambda known: known.known(line) is not None)
    known = previews.known(line)
    assert known is not None
    assert "cannot read none.jsonl" in known.text


def test_nothing_is_asked_for_without_an_offset() -> None:
    assert Previews().get(finished(0, None)) is None
