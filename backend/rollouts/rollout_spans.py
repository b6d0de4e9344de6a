"""Single values out of a huge JSON object, without parsing it whole.

`json.loads` of a text of 100 MB holds the interpreter for half a second, also in a thread. This scan goes from string to string with
`find` and counts brackets in between, so that other threads run on time, and it can be interrupted.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection
from itertools import accumulate
from typing import Any

from backend.io.json_codec import loads

_PIECE_BYTES = 1 << 18
_LOOK_AHEAD = 256
"""Bytes in which a key ends and its colon follows."""
_LONGEST_VALUE = 1 << 14
_CHECK_EVERY = 512
_COLON = re.compile(rb"[ \t\r\n]*:")
_BRACKETS = re.compile(rb"[{}\[\]]")
# Possessive, so that no attempt backtracks.
_REST_OF_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_STEPS = [1 if byte in b"{[" else -1 for byte in range(256)]

Path = tuple[str, ...]


class SpanScan:
    """Where the values at the `wanted` keys of one JSON object begin; a path has one key or two.

    `read(offset, size)` gives bytes of the object, which has `size` bytes in all. The object is not checked beyond its strings and
    brackets: `balanced` tells, at the end, whether these are complete. Of keys that occur twice the last one counts.
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int, wanted: Collection[Path]) -> None:
        self._read = read
        self._size = size
        self._wanted = frozenset(wanted)
        self._parents = {path[0] for path in wanted if len(path) > 1}
        self._position = 0
        """All before it is digested; never inside a string."""
        self._depth = 0
        self._path: list[str] = []
        self._begins: dict[Path, int] = {}
        self.balanced = False

    def advance(self, seconds: float) -> bool:
        """Scan for about `seconds`; True when done."""
        deadline = time.monotonic() + seconds
        while self._position < self._size:
            if not self._digest(deadline):
                self._position, self._depth = self._size, -1
            if time.monotonic() >= deadline:
                break
        self.balanced = self._depth == 0
        return self._position >= self._size

    def value(self, *path: str) -> Any:
        """The value at one of the wanted paths; None when it is missing or longer than 16 KiB."""
        begin = self._begins.get(path)
        if begin is None:
            return None
        text = self._read(begin, _LONGEST_VALUE).decode("utf-8", "replace").lstrip()
        try:
            return json.JSONDecoder().raw_decode(text)[0]
        except (ValueError, RecursionError):
            return None

    def record(self) -> dict[str, Any]:
        """An object that holds the wanted values and nothing else."""
        record: dict[str, Any] = {}
        for path in self._begins:
            inner = record if len(path) == 1 else record.setdefault(path[0], {})
            inner[path[-1]] = self.value(*path)
        return record

    def _digest(self, deadline: float) -> bool:
        """Digest a piece, or as much as the time allows; False when a string never ends or the bytes do."""
        piece = self._read(self._position, _PIECE_BYTES)
        if self._skip_deep(piece):
            return True
        base, begin, count = self._position, 0, 0
        is_last = base + len(piece) >= self._size
        while (opened := piece.find(b'"', begin)) >= 0:
            self._count_brackets(piece[begin:opened])
            closed = _string_end(piece, opened + 1)
            if not is_last and (closed < 0 or len(piece) - closed <= _LOOK_AHEAD):
                return self._digest_last_string(base + opened, base + closed if closed >= 0 else -1)
            if closed < 0:
                return False
            if self._depth <= self._levels and (colon := _COLON.match(piece, closed + 1)):
                self._note_key(piece[opened : closed + 1], base + colon.end())
            begin = closed + 1
            count += 1
            if count % _CHECK_EVERY == 0 and time.monotonic() >= deadline:
                self._position = base + begin
                return True
        self._count_brackets(piece[begin:])
        self._position = base + len(piece)
        return bool(piece)

    @property
    def _levels(self) -> int:
        """Down to which depth keys matter at this place."""
        return 2 if self._path and self._path[0] in self._parents else 1

    def _skip_deep(self, piece: bytes) -> bool:
        """Digest a whole piece at once when it stays below the levels that matter; whether it does."""
        if self._depth <= self._levels:
            return False
        piece = piece.rstrip(b"\\")  # never between a backslash and what it escapes
        rest = _STRING.sub(b"", piece + b'"')  # the quote ends a string that goes on in the next piece, or stays
        brackets = rest.translate(None, _NO_BRACKETS)
        depths = accumulate(map(_STEPS.__getitem__, brackets), initial=self._depth)
        if not piece or min(depths) <= self._levels:
            return False
        self._depth += sum(map(_STEPS.__getitem__, brackets))
        self._position += len(piece)
        if not rest.endswith(b'"'):
            closed = self._end_of_long_string(self._position)
            self._position, self._depth = (closed + 1, self._depth) if closed >= 0 else (self._size, -1)
        return True

    def _digest_last_string(self, opened: int, closed: int) -> bool:
        """The string, or what follows it, may go on in the next piece."""
        if closed < 0:
            closed = self._end_of_long_string(opened + 1)
            if closed < 0:
                return False
        if colon := _COLON.match(self._read(closed + 1, _LOOK_AHEAD)):
            self._note_key(self._read(opened, min(closed + 1 - opened, _LOOK_AHEAD)), closed + 1 + colon.end())
        self._position = closed + 1
        return True

    def _note_key(self, name: bytes, value_at: int) -> None:
        if not 1 <= self._depth <= self._levels:
            return
        try:
            key = loads(name)
        except ValueError:  # longer than any key that is wanted, and cut
            key = ""
        self._path[self._depth - 1 :] = [key]
        path = tuple(self._path)
        if self._depth == 1:
            for known in [known for known in self._begins if known[0] == key]:
                del self._begins[known]
        if len(path) == self._depth and path in self._wanted:
            self._begins[path] = value_at

    def _count_brackets(self, between: bytes) -> None:
        closing = between.count(b"}") + between.count(b"]")
        if self._depth - closing > self._levels:
            self._depth += between.count(b"{") + between.count(b"[") - closing
        else:
            for bracket in _BRACKETS.findall(between):
                self._depth += 1 if bracket in b"{[" else -1

    def _end_of_long_string(self, offset: int) -> int:
        """Offset of the quote that ends the string whose text begins at `offset`; -1 when there is none."""
        while piece := self._read(offset, _PIECE_BYTES):
            match = _REST_OF_STRING.match(piece)
            end = match.end() if match else 0
            if piece[end : end + 1] == b'"':
                return offset + end
            if end == 0:  # a lone backslash at the end of everything
                return -1
            offset += end
        return -1


def _string_end(data: bytes, begin: int) -> int:
    """Index of the quote that ends the string whose text goes on at `begin`; -1 when it is not in `data`."""
    match = _REST_OF_STRING.match(data, begin)
    end = match.end() if match else begin
    return end if data[end : end + 1] == b'"' else -1
