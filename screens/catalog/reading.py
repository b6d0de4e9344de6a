"""Reads what the detail pane says of one component beyond its row: readme, configuration files, data, what is missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.catalog.details import details_of
from backend.catalog.entries import CatalogEntry, Dataset, Details
from backend.catalog.kinds import AGENT, KINDS
from backend.io.json_codec import dumps_indented, loads
from backend.io.redact import Redactor

MOST_TEXT_BYTES = 400_000
"""Of a readme or a configuration."""
MOST_DATA_BYTES = 32 << 20
"""So much of a data set is read to count its rows."""
MOST_ROW_BYTES = 64 << 10
MOST_FILES = 40
LINES_AROUND = 3
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A text file as it may be shown; `problem` says why there is nothing of it, or not all."""

    path: Path
    text: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class DataFact:
    """A data set and what its file tells; None is what is not known."""

    dataset: Dataset
    size: int | None = None
    """Bytes."""
    rows: int | None = None
    first_row: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is in the files of a component."""

    entry: CatalogEntry
    details: Details
    readme: ShownFile | None = None
    configs: tuple[ShownFile, ...] = ()
    """The component's own first."""
    data: tuple[DataFact, ...] = ()
    around: tuple[tuple[int, str], ...] = ()
    """Numbers and texts of the lines around the place where the component is broken."""


def read_component(entry: CatalogEntry, roots: Sequence[Path], cancelled: Callable[[], bool]) -> Reading:
    """All of it; what cannot be read is told in its place. Ends early, with what there is, when cancelled."""
    details = details_of(entry, roots)
    readme = _text_of(entry.readme, Redactor().text) if entry.readme else None
    configs = tuple(_text_of(path, _masked) for path in _config_paths(entry)[:MOST_FILES] if not cancelled())
    data = tuple(_data_fact(dataset, cancelled) for dataset in entry.datasets[:MOST_FILES] if not cancelled())
    return Reading(entry, details, readme, configs, data, tuple(_lines_around(entry)))


def _config_paths(entry: CatalogEntry) -> list[Path]:
    own = [entry.path]
    if entry.kind == AGENT:
        own = [entry.path / str(KINDS[AGENT].configs) / f"{variant}.yaml" for variant in entry.variants]
    return list(dict.fromkeys((*own, *reversed(entry.configs))))


def _text_of(path: Path, shown: Callable[[str], str]) -> ShownFile:
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_TEXT_BYTES + 1)
    except OSError as error:
        return ShownFile(path, problem=f"cannot read the file: {error.strerror}")
    problem = f"only the first {MOST_TEXT_BYTES // 1000} kB are shown" if len(data) > MOST_TEXT_BYTES else ""
    return ShownFile(path, shown(data[:MOST_TEXT_BYTES].decode("utf-8-sig", "replace")), problem)


def _masked(text: str) -> str:
    from backend.config.shown_text import masked_yaml  # PyYAML takes 0.03 s to import: in the thread, not when the screen opens

    return masked_yaml(text)


def _lines_around(entry: CatalogEntry) -> Iterator[tuple[int, str]]:
    broken = entry.broken
    if broken is None or broken.file is None or broken.line is None:
        return
    lines = _text_of(Path(broken.file), _masked).text.removesuffix("\n").split("\n")
    first = max(0, broken.line - 1 - LINES_AROUND)
    yield from enumerate(lines[first : broken.line + LINES_AROUND], first + 1)


def _data_fact(dataset: Dataset, cancelled: Callable[[], bool]) -> DataFact:
    if dataset.file is None or not os.path.isfile(dataset.file):  # a pipe would never end
        return DataFact(dataset)
    try:
        with open(dataset.file, "rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            first = file.readline(MOST_ROW_BYTES)
            file.seek(0)
            rows, last = 0, b"\n"
            while size <= MOST_DATA_BYTES and not cancelled() and (block := file.read(_BLOCK)):
                rows += block.count(b"\n")
                last = block[-1:]
    except OSError:
        return DataFact(dataset)
    return DataFact(dataset, size, rows + (last != b"\n") if size <= MOST_DATA_BYTES else None, _row_text(first))


def _row_text(line: bytes) -> str:
    """A row as JSON of several lines; one that is too long or no JSON as it is."""
    redactor = Redactor()
    try:
        return dumps_indented(redactor.tree(loads(line))).decode("utf-8", "replace")
    except (ValueError, RecursionError):
        return redactor.text(line.decode("utf-8", "replace").rstrip("\r\n"))
