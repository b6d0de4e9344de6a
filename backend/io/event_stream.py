"""Follows an event file that somebody else is writing: each call gives the events that are new since the last one."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path
from typing import Any, Self

from backend.errors import GymError, Place
from backend.io.json_codec import loads

_CHUNK_BYTES = 1 << 20
_BYTES_PER_CALL = 16 << 20
_LONGEST_LINE = 16 << 20
_HEAD_BYTES = 256
"""The beginning of the first event holds its time, so it tells one run from the next one in a file that was overwritten."""


class EventStream:
    """Reads complete lines of an event file as they come; a last line without LF waits until it has one.

    A file that is not there (yet) has no events. When the file is replaced or cut short, as a new run does to its folder's file,
    `generation` grows by one and reading starts over. `skipped` counts lines that are no JSON objects. Reads with `pread`: a
    mapping would crash the reader when another process cuts the file short.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.generation = 0
        self.skipped = 0
        self.at_end = False
        """Whether the last `read` came to the present end of the file."""
        self._descriptor = -1
        self._reset()

    def read(self, limit: int = 50_000) -> list[dict[str, Any]]:
        """At most `limit` new events, from at most 16 MB of the file. Raises `GymError` for a file that cannot be read."""
        self._follow_replacement()
        events: list[dict[str, Any]] = []
        self.at_end = self._descriptor < 0
        budget = _BYTES_PER_CALL
        while len(events) < limit and not self.at_end:
            if not self._lines:
                if budget <= 0:
                    break
                budget -= _CHUNK_BYTES
                self.at_end = not self._read_chunk()
            while self._lines and len(events) < limit:
                line = self._lines.popleft()
                try:
                    value = loads(line)
                except ValueError:
                    value = None
                if isinstance(value, dict):
                    events.append(value)
                elif line.strip():
                    self.skipped += 1
        return events

    @property
    def position(self) -> int:
        """Bytes of the file that were read; with the file's size, how far a replay has come."""
        return self._offset

    def close(self) -> None:
        """Close the file; a later `read` begins anew."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._reset()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _reset(self) -> None:
        self._offset = 0
        self._head = b""
        self._tail = b""
        self._overlong = False
        self._lines: deque[bytes] = deque()

    def _follow_replacement(self) -> None:
        """Open the file that has the name now. The old one stays open until then, so its inode number is not given to the new one."""
        try:
            named = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return  # what is left of a removed file is still read
        except OSError as error:
            raise self._failure(error) from error
        if self._descriptor >= 0:
            opened = os.fstat(self._descriptor)
            if os.path.samestat(opened, named) and opened.st_size >= self._offset and self._begins_as_before():
                return
            self.close()
            self.generation += 1
            self.skipped = 0
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._failure(error) from error

    def _begins_as_before(self) -> bool:
        return os.pread(self._descriptor, len(self._head), 0) == self._head

    def _read_chunk(self) -> bool:
        try:
            chunk = os.pread(self._descriptor, _CHUNK_BYTES, self._offset)
        except OSError as error:
            raise self._failure(error) from error
        if not chunk:
            return False
        if len(self._head) < _HEAD_BYTES:
            self._head += chunk[: _HEAD_BYTES - len(self._head)]
        self._offset += len(chunk)
        first, *rest = chunk.split(b"\n")
        pieces = [self._tail + first, *rest]
        self._tail = pieces.pop()
        if pieces and self._overlong:
            del pieces[0]
            self._overlong = False
        if len(self._tail) > _LONGEST_LINE or self._overlong:
            self.skipped += not self._overlong
            self._overlong = True
            self._tail = b""
        self._lines.extend(pieces)
        return True

    def _failure(self, error: OSError) -> GymError:
        return GymError(f"cannot read {self.path}: {error.strerror}", place=Place(str(self.path)))
