"""Marks each line of a process' output with the name of its server, where no supervisor does so."""

from __future__ import annotations

import sys
from typing import TextIO


class PrefixedStream:
    """Writes to `stream` with `prefix` at the beginning of every line; everything else is the stream's own."""

    def __init__(self, stream: TextIO, prefix: str) -> None:
        self._stream = stream
        self._prefix = prefix
        self._at_line_start = True

    def write(self, text: str) -> int:
        """Write `text`; returns its length without prefixes."""
        marked = []
        for line in text.splitlines(keepends=True):
            marked.append(self._prefix + line if self._at_line_start else line)
            self._at_line_start = line.endswith("\n")
        self._stream.write("".join(marked))
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def prefix_output(server: str) -> None:
    """Put `(<server>) ` in front of each line of standard output and error."""
    prefix = f"({server}) "
    if not isinstance(sys.stdout, PrefixedStream):
        sys.stdout = PrefixedStream(sys.stdout, prefix)
    if not isinstance(sys.stderr, PrefixedStream):
        sys.stderr = PrefixedStream(sys.stderr, prefix)
