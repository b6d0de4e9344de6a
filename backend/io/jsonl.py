"""The one reader and the one writer of JSON-lines files.

Only LF ends a line, as bytes: U+2028, a lone CR or a form feed inside a string never split a row. A byte order mark at the start,
blank lines and a missing final LF are fine. A last line without LF that is not JSON is a *torn tail*: what a killed writer leaves.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.errors import GymError, Place
from backend.io.json_codec import dumps, loads

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MAX_QUOTED = 60


class JsonlError(GymError):
    """A line of a JSON-lines file is not what it should be; `place` has file, line and column."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a file."""

    number: int
    """1-based, blank lines counted."""
    offset: int
    """Byte offset of the line in the file."""
    raw: bytes
    """The bytes of the row without byte order mark, surrounding white space and line end."""
    value: dict[str, Any]


def read_jsonl(path: str | Path, *, allow_torn_tail: bool = False) -> Iterator[Line]:
    """The rows of `path` in order, one at a time, whatever the size of the file.

    Raises `JsonlError` naming file, line and column for a line that is not a JSON object. With `allow_torn_tail` an unfinished
    last line ends the iteration instead.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below; opening has an error message of its own
    except OSError as error:
        raise GymError(f"cannot read {path}: {error.strerror}", place=Place(str(path))) from error
    with file:
        offset = 0
        for number, line in enumerate(file, 1):
            begin, offset = offset, offset + len(line)
            raw = (line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line).strip(b" \t\r\n")
            if not raw:
                continue
            try:
                value = loads(raw)
            except ValueError as error:
                if allow_torn_tail and not line.endswith(b"\n"):
                    return
                raise JsonlError(_reason(error, raw), place=_place(path, number, error)) from None
            if not isinstance(value, dict):
                raise JsonlError(f"expected a JSON object, found {_kind(value)}", place=Place(str(path), number, 1))
            yield Line(number, begin, raw, value)


class JsonlWriter:
    """Appends rows to a file, each with a single write of the whole line, so that a kill never tears an earlier row.

    Opening heals the file: a torn tail is moved to `<file>.torn`, a complete last row that only lacks its LF gets one.
    `healed` tells whether a torn tail was set aside. Not safe for two writers.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.healed = heal(self.path)
        self._named = False
        try:
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise GymError(f"cannot write {self.path}: {error.strerror}", place=Place(str(self.path))) from error

    def write(self, value: Any) -> int:
        """Append one row; returns how many bytes it takes in the file."""
        return self.write_raw(dumps(value))

    def write_raw(self, row: bytes) -> int:
        """Append one row that is already encoded, without its LF; returns how many bytes it takes in the file."""
        data = row + b"\n"
        written = 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:] if written else data)
        except OSError as error:
            raise GymError(f"cannot write {self.path}: {error.strerror}", place=Place(str(self.path))) from error
        return written

    def sync(self) -> None:
        """Wait until all rows so far are on the disk, and with the first ones the file's name."""
        try:
            os.fsync(self._descriptor)
            if not self._named:
                folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
                self._named = True
        except OSError as error:
            raise GymError(f"cannot write {self.path}: {error.strerror}", place=Place(str(self.path))) from error

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> JsonlWriter:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def heal(path: Path) -> bool:
    """Make `path` end in LF: set a torn tail aside in `<path>.torn` and return True, or finish a complete last row.

    A file that does not exist is left alone.
    """
    try:
        with open(path, "r+b") as file:
            end = file.seek(0, os.SEEK_END)
            begin = _last_line_start(file, end)
            file.seek(begin)
            tail = file.read(end - begin)
            if not tail:
                return False
            try:
                loads(tail.removeprefix(BYTE_ORDER_MARK))
            except ValueError:
                with open(path.with_name(path.name + ".torn"), "ab") as torn:
                    torn.write(tail + b"\n")
                file.truncate(begin)
                return True
            file.write(b"\n")
            return False
    except FileNotFoundError:
        return False
    except OSError as error:
        raise GymError(f"cannot write {path}: {error.strerror}", place=Place(str(path))) from error


def _last_line_start(file: Any, end: int) -> int:
    position = end
    while position > 0:
        step = min(1 << 16, position)
        file.seek(position - step)
        found = file.read(step).rfind(b"\n")
        if found >= 0:
            return position - step + found + 1
        position -= step
    return 0


def _place(path: str | Path, number: int, error: ValueError) -> Place:
    column = error.colno if isinstance(error, json.JSONDecodeError) else 1
    return Place(str(path), number, column)


def _reason(error: ValueError, raw: bytes) -> str:
    reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    start = raw[:_MAX_QUOTED].decode("utf-8", "replace") + ("…" if len(raw) > _MAX_QUOTED else "")
    if reason[1:2].islower():  # a word, and not a name such as NaN
        reason = reason[0].lower() + reason[1:]
    return f"not valid JSON: {reason}: {start}"


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
