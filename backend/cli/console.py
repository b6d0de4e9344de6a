"""Where the command line writes: data and progress to stdout, remarks and errors to stderr, unwrapped."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from backend.errors import GymError
from backend.io.text import printable


class PrintableStream:
    """Writes to `stream` what cannot drive a terminal; everything else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write `text`; returns its length."""
        self._stream.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of `lines`."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def say(text: str = "") -> None:
    """A line of output, at once. When nobody reads any more, this and all later output goes nowhere."""
    try:
        print(printable(text), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def warn(text: str) -> None:
    """A remark that is not data."""
    print(f"warning: {printable(text)}", file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """`value` as one line of JSON, ASCII only."""
    say(json.dumps(value))


def print_error(error: GymError, *, as_json: bool = False) -> None:
    """An error for people, or as a JSON object, on stderr."""
    if as_json:
        place = error.place
        described = {
            "message": error.message,
            "file": place.file if place else None,
            "line": place.line if place else None,
            "column": place.column if place else None,
            "key": place.key if place else None,
            "details": list(error.details),
            "hint": error.hint,
            "exit_code": int(error.exit_code),
        }
        print(json.dumps({"error": described}), file=sys.stderr, flush=True)
    else:
        print(f"Error: {printable(str(error))}", file=sys.stderr, flush=True)
