"""What the stream shows of records: read from the rollouts file at the offsets that events give, for visible rows only."""

from __future__ import annotations

import os
import queue
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from backend.io.json_codec import loads
from backend.rollouts.rollout_record import end_of, preview_of, turns_of
from backend.rollouts.run_progress_parts import Finished
from screens.rollouts.stream_rows import Preview
from screens.widgets.background import Reporter

KEPT = 4000
LONGEST_RECORD = 4 << 20
_FIRST_READ = 32 << 10
_LOOK_SECONDS = 0.1

Wanted = tuple[int, int, int, int]


class Previews:
    """Asked on the loop, filled by a thread: `get` never waits."""

    def __init__(self) -> None:
        self._known: OrderedDict[Wanted, Preview] = OrderedDict()
        self._asked: set[Wanted] = set()
        self._queue: queue.SimpleQueue[Wanted] = queue.SimpleQueue()

    def get(self, line: Finished) -> Preview | None:
        """What is known of a rollout's record; asks for it where nothing is."""
        if line.offset is None:
            return None
        wanted = (line.task, line.rollout, line.attempt, line.offset)
        known = self._known.get(wanted)
        if known is None and wanted not in self._asked:
            self._asked.add(wanted)
            self._queue.put(wanted)
        return known

    def known(self, line: Finished) -> Preview | None:
        """What is known of a rollout's record, without asking for more."""
        return None if line.offset is None else self._known.get((line.task, line.rollout, line.attempt, line.offset))

    def add(self, found: dict[Wanted, Preview]) -> None:
        """Keep what the thread has read; on the loop."""
        for wanted, preview in found.items():
            self._known[wanted] = preview
            self._asked.discard(wanted)
        while len(self._known) > KEPT:
            self._known.popitem(last=False)

    def read(self, rollouts: Callable[[], Path], reporter: Reporter) -> None:
        """Read what is asked for, and tell it in batches, until cancelled."""
        while not reporter.cancelled:
            try:
                wanted = [self._queue.get(timeout=_LOOK_SECONDS)]
            except queue.Empty:
                continue
            while len(wanted) < 100 and not self._queue.empty():
                wanted.append(self._queue.get_nowait())
            reporter.tell(_read_records(rollouts(), wanted))


def _read_records(path: Path, wanted: list[Wanted]) -> dict[Wanted, Preview]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return dict.fromkeys(wanted, Preview(None, "", f"cannot read {path.name}: {error.strerror}"))
    try:
        return {key: _read_record(descriptor, key) for key in wanted}
    finally:
        os.close(descriptor)


def _read_record(descriptor: int, key: Wanted) -> Preview:
    task, rollout, _, offset = key
    try:
        raw = _line_at(descriptor, offset)
        if raw is None:
            return Preview(None, "", "(a record of more than 4 MB)")
        record = loads(raw)
    except (OSError, ValueError):
        return Preview(None, "", "(unreadable record)")
    if not isinstance(record, dict) or (record.get("_ng_task_index"), record.get("_ng_rollout_index")) != (task, rollout):
        return Preview(None, "", "(the file holds another record here)")
    return Preview(turns_of(record), end_of(record) or "", preview_of(record))


def _line_at(descriptor: int, offset: int) -> bytes | None:
    """The line that begins at an offset; None when it is too long to be read for a preview."""
    data, size = b"", _FIRST_READ
    while len(data) < LONGEST_RECORD:
        chunk = os.pread(descriptor, size, offset + len(data))
        end = chunk.find(b"\n")
        if end >= 0 or not chunk:
            return data + (chunk[:end] if end >= 0 else b"")
        data += chunk
        size = min(size * 4, 1 << 20)
    return None
