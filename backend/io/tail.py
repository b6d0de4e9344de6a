"""The ends of growing text files, such as server logs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from backend.errors import GymError, Place

_LONGEST_LINE = 1 << 20
_BYTES_PER_CALL = 4 << 20


@dataclass(frozen=True, slots=True)
class NewLines:
    """What a file has gained since the last look."""

    lines: tuple[str, ...] = ()
    """Without line ends, as they are: not cleaned for a terminal."""
    restarted: bool = False
    """The file was replaced or truncated; the lines are those at its new beginning."""
    more: bool = False
    """There is more to read at once."""


def tail_lines(path: str | Path, count: int, max_bytes: int = 1 << 20) -> list[str]:
    """The last `count` lines among the last `max_bytes` bytes of a file, an unfinished last line included.

    Only LF ends a line. A line that begins before these bytes is left out, unless it is the only one: then its end is given. Bytes
    that are not UTF-8 come as replacement characters. Raises `GymError` for a file that cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            begin = max(size - max_bytes, 0)
            data = os.pread(descriptor, size - begin, begin)
            is_cut = begin > 0 and os.pread(descriptor, 1, begin - 1) != b"\n"
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unreadable(path, error) from error
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    if is_cut and len(lines) > 1:
        del lines[0]
    return [_text(line) for line in lines[max(len(lines) - count, 0) :]]


class Follower:
    """Gives the complete lines that a file has gained since the last call; a file that is not there (yet) gains none.

    After a rotation what is left of the old file comes first, an unfinished last line included. A line that does not end is given in
    pieces of 1 MiB. For one thread.
    """

    def __init__(self, path: str | Path, *, from_end: bool = False, last_bytes: int | None = None) -> None:
        """With `from_end`, what the file holds already is skipped, but for an unfinished last line.

        With `last_bytes`, lines that begin before so many bytes at its end are skipped; `skipped` tells how many bytes that were.
        """
        self.path = Path(path)
        self.skipped = 0
        self._descriptor = -1
        self._position = 0
        self._pending = b""
        self._restarted = False
        if from_end or last_bytes is not None:
            self._skip(_LONGEST_LINE if last_bytes is None else last_bytes, only_unfinished=from_end)

    def read(self) -> NewLines:
        """At most 4 MiB of new lines. Raises `GymError` for a file that cannot be read."""
        try:
            if self._descriptor < 0 and not self._open():
                return NewLines()
            if os.fstat(self._descriptor).st_size < self._position:
                self._position, self._pending, self._restarted = 0, b"", True
            lines, more = self._read_lines()
            restarted, self._restarted = self._restarted, False
            if not more and self._is_replaced():
                lines += [self._pending] if self._pending else []
                self.close()
                self._restarted = more = True
        except OSError as error:
            raise _unreadable(self.path, error) from error
        return NewLines(tuple(map(_text, lines)), restarted, more)

    def close(self) -> None:
        """Close the file; a later `read` begins with its first line."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._position, self._pending = -1, 0, b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _open(self) -> bool:
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        return True

    def _is_replaced(self) -> bool:
        try:
            named = os.stat(self.path)
        except FileNotFoundError:
            return False  # between the two steps of a rotation
        return not os.path.samestat(named, os.fstat(self._descriptor))

    def _read_lines(self) -> tuple[list[bytes], bool]:
        data = os.pread(self._descriptor, _BYTES_PER_CALL, self._position)
        self._position += len(data)
        *lines, rest = (self._pending + data).split(b"\n")
        while len(rest) >= _LONGEST_LINE:
            lines.append(rest[:_LONGEST_LINE])
            rest = rest[_LONGEST_LINE:]
        self._pending = rest
        return lines, len(data) == _BYTES_PER_CALL

    def _skip(self, last_bytes: int, *, only_unfinished: bool) -> None:
        """Begin with the first line among the last bytes of the file, or with its unfinished last line."""
        try:
            if not self._open():
                return
            size = os.fstat(self._descriptor).st_size
            begin = max(size - last_bytes - 1, 0)
            last = os.pread(self._descriptor, size - begin, begin)
        except OSError as error:
            raise _unreadable(self.path, error) from error
        if only_unfinished:
            self._position = begin + last.rfind(b"\n") + 1
        elif begin:
            self._position = begin + last.find(b"\n") + 1
        self.skipped = self._position


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")


def _unreadable(path: str | Path, error: OSError) -> GymError:
    return GymError(f"cannot read {path}: {error.strerror}", place=Place(str(path)))
