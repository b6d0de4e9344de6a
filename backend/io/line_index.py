"""Where the rows of a JSON-lines file begin, for files of gigabytes that may still grow.

Eight bytes a row. Reads go through `pread`: a mapped read would kill the process when another one truncates the file.
"""

from __future__ import annotations

import os
import stat
import time
from array import array
from bisect import bisect_right
from pathlib import Path

from backend.errors import GymError, Place
from backend.io.json_codec import loads
from backend.io.jsonl import BYTE_ORDER_MARK

CHUNK_BYTES = 1 << 20
_LARGEST_TAIL_PARSED = 8 << 20
_FINGERPRINT_BYTES = 64
_BLANK = b" \t\r\n"
_LAST_BLANK = ord(" ")


class LineIndex:
    """The rows of one file: its lines that are not blank.

    One thread calls `extend`; `len`, `span`, `read` and `line_number` may be called from any thread meanwhile. A last line without LF
    is a row once it is a whole JSON object (which no further byte can change); until then it is `torn_bytes`. When the file is
    replaced, truncated or written anew, the index starts over and `generation` grows by one: indices of an earlier generation mean nothing.
    """

    def __init__(self, path: str | Path) -> None:
        """Raises `GymError` when `path` cannot be read or is not a file."""
        self.path = Path(path)
        self.generation = 0
        self._pass = _Pass(self.path)

    def extend(self, seconds: float) -> bool:
        """Index for about `seconds`; True when the present end of the file is reached.

        A file that has vanished keeps the rows it had.
        """
        deadline = time.monotonic() + seconds
        if self._pass.is_stale():
            try:
                self._pass = _Pass(self.path)
            except GymError:
                return True
            self.generation += 1
        current = self._pass
        while more := current.scan_chunk():
            if time.monotonic() >= deadline:
                break
        current.take_fingerprint()
        return not more

    def __len__(self) -> int:
        return len(self._pass.bounds) - 1

    @property
    def indexed_bytes(self) -> int:
        return self._pass.position

    @property
    def total_bytes(self) -> int:
        """The size of the file when `extend` last looked."""
        return self._pass.size

    @property
    def torn_bytes(self) -> int:
        """Bytes after the last row that are no row yet; 0 before the end was reached."""
        return self._pass.torn_bytes

    def span(self, row: int) -> tuple[int, int]:
        """Offset and length in bytes of a row, its line end and blank lines after it included; IndexError for a row that is not there."""
        return self._pass.span(row)

    def read(self, row: int, limit: int | None = None) -> bytes:
        """The bytes of a row without surrounding white space, at most the first `limit` of them; fewer when the file has shrunk meanwhile."""
        current = self._pass
        begin, size = current.span(row)
        return current.pread(size if limit is None else min(limit, size), begin).strip(_BLANK)

    def read_range(self, offset: int, size: int) -> bytes:
        """Bytes of the file as they are; fewer where it ends."""
        return self._pass.pread(size, offset)

    def block(self, row: int, size: int) -> tuple[bytes, list[int]]:
        """The bytes of `row` and of the rows after it that fit into `size` bytes, at least of one; and where each begins and the last ends."""
        current = self._pass
        first, _ = current.span(row)
        last = max(bisect_right(current.bounds, first + size, row + 1) - 1, row + 1)
        bounds = current.bounds[row : last + 1]
        return current.pread(bounds[-1] - first, first), [bound - first for bound in bounds]

    def row_at(self, offset: int) -> int | None:
        """The row that holds the byte at `offset`; None outside all rows."""
        bounds = self._pass.bounds
        row = bisect_right(bounds, offset) - 1
        return row if 0 <= row < len(bounds) - 1 else None

    def line_number(self, row: int) -> int:
        """The 1-based line of a row, blank lines counted."""
        return row + 1 + bisect_right(self._pass.blanks, row)


class _Pass:
    """What is known of one incarnation of the file. The descriptor is closed with the last reader that uses this object."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise GymError(f"{path} is not a file", place=Place(str(path)))
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise GymError(f"cannot read {path}: {error.strerror}", place=Place(str(path))) from error
        self.bounds = array("Q", [0])
        """Where each row begins, and where the last one ends: row i is from i to i + 1."""
        self.blanks = array("Q")
        """For each blank line, the number of rows before it."""
        self.position = 0
        self.size = 0
        self.torn_bytes = 0
        self._modified = 0
        self._line_began = 0
        self._line_is_blank = True
        self._line_is_row = False
        """The last line has no LF yet but is counted already."""
        self._fingerprint = (0, b"")

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def span(self, row: int) -> tuple[int, int]:
        if row < 0:
            raise IndexError(f"there is no row {row}")
        begin = self.bounds[row]
        return begin, self.bounds[row + 1] - begin

    def pread(self, size: int, offset: int) -> bytes:
        try:
            data = os.pread(self._descriptor, size, offset)
            if len(data) < size:  # a signal, a huge read, or the end
                while more := os.pread(self._descriptor, size - len(data), offset + len(data)):
                    data += more
            return data
        except OSError as error:
            raise GymError(f"cannot read {self._path}: {error.strerror}", place=Place(str(self._path))) from error

    def is_stale(self) -> bool:
        """Whether the path leads to another file now, or this one was written anew. Also takes note of its size."""
        ours = os.fstat(self._descriptor)
        try:
            named = os.stat(self._path)
        except OSError:
            named = ours
        at, expected = self._fingerprint
        if (named.st_dev, named.st_ino) != (ours.st_dev, ours.st_ino) or ours.st_size < self.position:
            return True
        if (ours.st_size, ours.st_mtime_ns) != (self.size, self._modified) and self.pread(len(expected), at) != expected:
            return True
        self.size, self._modified = ours.st_size, ours.st_mtime_ns
        return False

    def take_fingerprint(self) -> None:
        """Remember the last bytes indexed, by which a file that was written anew is told from one that grew."""
        at = max(0, self.position - _FINGERPRINT_BYTES)
        self._fingerprint = (at, self.pread(self.position - at, at))

    def scan_chunk(self) -> bool:
        """Index the next piece; False at the present end of the file."""
        chunk = self.pread(CHUNK_BYTES, self.position)
        if not chunk:
            self._look_at_tail()
            return False
        if self.position == 0 and chunk.startswith(BYTE_ORDER_MARK):
            self.position = self._line_began = self.bounds[0] = len(BYTE_ORDER_MARK)
            chunk = chunk.removeprefix(BYTE_ORDER_MARK)
        self._index(chunk)
        self.position += len(chunk)
        self.size = max(self.size, self.position)
        return True

    def _index(self, chunk: bytes) -> None:
        base = self.position
        find, append = chunk.find, self.bounds.append
        end = find(b"\n")
        if end < 0:
            self._line_is_blank = self._line_is_blank and not chunk.strip(_BLANK)
            return
        self._end_line(base + end + 1, blank=self._line_is_blank and not chunk[:end].strip(_BLANK))
        begin = end + 1
        while (end := find(b"\n", begin)) >= 0:
            if chunk[begin] > _LAST_BLANK or chunk[begin:end].strip(_BLANK):
                append(base + end + 1)
            else:
                self._end_line(base + end + 1, blank=True)
            begin = end + 1
        self._line_began = base + begin
        self._line_is_blank = not chunk[begin : begin + 1024].strip(_BLANK) and not chunk[begin:].strip(_BLANK)

    def _end_line(self, end: int, *, blank: bool) -> None:
        if self._line_is_row or blank:
            # The bound moves: the line's end was not known, or the next row begins after the blank line.
            self.bounds[-1] = end
            if not self._line_is_row:
                self.blanks.append(len(self.bounds) - 1)
            self._line_is_row = False
        else:
            self.bounds.append(end)

    def _look_at_tail(self) -> None:
        self.torn_bytes = 0
        if self._line_is_blank:
            return
        size = self.position - self._line_began
        if self._line_is_row:
            self.bounds[-1] = self.position
        elif self._tail_is_object(size):
            self.bounds.append(self.position)
            self._line_is_row = True
        else:
            self.torn_bytes = size

    def _tail_is_object(self, size: int) -> bool:
        """Whether the unfinished last line is whole. Beyond some megabytes its closing brace has to do."""
        if not self.pread(64, self.position - min(64, size)).rstrip(_BLANK).endswith(b"}"):
            return False
        if size > _LARGEST_TAIL_PARSED:
            return True
        try:
            return isinstance(loads(self.pread(size, self._line_began)), dict)
        except ValueError:
            return False
