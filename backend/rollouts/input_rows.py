"""Where input rows come from, and what makes two of them the same task."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.errors import GymError, Place
from backend.io.jsonl import read_jsonl
from backend.io.roots import resolve_path


class ExpansionError(GymError, ValueError):
    """Input rows cannot be expanded."""


class RowFieldError(GymError, KeyError):
    """A row lacks a field that it needs."""


@dataclass(frozen=True, slots=True)
class SourceRow:
    """An input row."""

    value: Mapping[str, Any]
    identity: bytes
    """Rows with the same bytes are the same task."""
    place: Place


RowSource = Callable[[], Iterator[SourceRow]]
"""Gives the rows from the beginning each time it is called."""


def file_rows(path: str | Path, roots: Sequence[Path]) -> RowSource:
    """The rows of a JSON-lines file, looked for in `roots`; rows are equal when their lines are, white space at the ends aside."""
    file = resolve_path(path, roots)
    if file.is_dir():
        raise ExpansionError(f"the input {path} is a folder", place=Place(str(file)), hint="name a JSON-lines file with --input")
    if not file.is_file():
        raise ExpansionError(
            f"the input file {path} is not there", place=Place(str(file)), hint="name a JSON-lines file with --input"
        )

    def read() -> Iterator[SourceRow]:
        for line in read_jsonl(file):
            yield SourceRow(line.value, line.raw, Place(str(file), line.number))

    return read


def memory_rows(rows: Sequence[Mapping[str, Any]]) -> RowSource:
    """Rows that are in memory already; equal when their content is, whatever the order of keys."""

    def read() -> Iterator[SourceRow]:
        for number, row in enumerate(rows):
            yield SourceRow(row, json.dumps(row, sort_keys=True, default=repr).encode(), Place(key=f"row {number}"))

    return read
