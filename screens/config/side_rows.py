"""The lists beside the tree: layers, and what was found to be wrong."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from rich.cells import cell_len

from backend.config.findings import Finding
from backend.errors import Place
from backend.io.text import clean, clean_line
from screens.config.resolving import LayerLine, Resolution
from screens.widgets import glyphs
from screens.widgets.columns import Column
from screens.widgets.text_gate import LONGEST_LINE, fit
from screens.widgets.virtual_list import Cell, Row
from screens.widgets.wrapping import WrappedText

LAYER_COLUMNS = (Column("number", "", 3), Column("title", "", least=8, keep_end=True), Column("note", "", 5, keep=1))
PROBLEM_COLUMNS = (Column("text", "", least=8),)

_LONGEST_FINDING = 4_000


class LayerRows:
    """The layers in the order in which they merge, and what is switched off or makes none."""

    def __init__(self, resolution: Resolution) -> None:
        self.resolution = resolution
        self.lines = resolution.lines
        self._worst = {index: _worst(line, resolution.findings) for index, line in enumerate(self.lines)}

    def __len__(self) -> int:
        return len(self.lines)

    def row(self, index: int) -> Row:
        line, signs = self.lines[index], glyphs.current()
        if line.problem:
            sign, style = signs.failed, "bad"
        elif not line.on:
            sign, style = signs.stopped, "muted"
        else:
            worst = self._worst[index]
            sign = {"error": signs.failed, "warning": signs.warning}.get(worst, signs.good)
            style = {"error": "bad", "warning": "warn"}.get(worst, "good")
        number = f"L{line.layer.number}" if line.layer else ""
        return Row(
            (
                Cell(number, "muted"),
                Cell(_short_title(line), "muted" if not line.on else "plain"),
                Cell(self._note(line), "muted"),
            ),
            sign=sign,
            sign_style=style,
        )

    def _note(self, line: LayerLine) -> str:
        if not line.on:
            return "off"
        if line.problem:
            return ""
        if line.layer is None:
            return ""
        if line.layer.included_by:
            return f"{'<-' if glyphs.is_ascii() else '↳'} L{line.layer.included_by}"
        return ""

    def key(self, index: int) -> Hashable:
        line = self.lines[index]
        if line.entry is not None:
            return ("entry", self.resolution.entries[line.entry].words, line.title)
        return ("layer", line.layer.kind if line.layer else "", line.title)

    def index_of(self, key: Hashable) -> int | None:
        return next((index for index in range(len(self)) if self.key(index) == key), None)

    def of_entry(self, entry: int) -> int | None:
        """The first line of an entry."""
        return next((index for index, line in enumerate(self.lines) if line.entry == entry), None)


def _short_title(line: LayerLine) -> str:
    """A file without what all of them have: `benchmarks/x/config.yaml` is `benchmarks/x`, `x/configs/y.yaml` is `x/y`."""
    if line.layer is None or line.layer.kind != "file":
        return line.title
    parts = line.title.removesuffix(".yaml").split("/")
    if len(parts) > 1 and parts[-1] == "config":
        parts = parts[:-1]
    elif len(parts) > 2 and parts[-2] == "configs":
        parts = [*parts[:-2], *([] if parts[-1] == parts[-3] else parts[-1:])]
    return "/".join(parts)


def _worst(line: LayerLine, findings: Sequence[Finding]) -> str:
    severities = {finding.severity for finding in findings if _is_about(line, finding.place)}
    return "error" if "error" in severities else "warning" if severities else ""


def _is_about(line: LayerLine, place: Place | None) -> bool:
    if place is None or line.layer is None:
        return False
    if line.layer.file is not None:
        return place.file == str(line.layer.file)
    return line.layer.title in (place.file, place.key)


class ProblemRows:
    """The findings, each in a few lines: where, what, and what helps."""

    def __init__(self, findings: Sequence[Finding], shown: Callable[[str], str], width: int) -> None:
        self.findings = tuple(findings)
        self._lines: list[tuple[int, int, str, str]] = []
        """Finding, number of the line in it, text, style."""
        self.starts: list[int] = []
        for index, finding in enumerate(self.findings):
            self.starts.append(len(self._lines))
            for number, (text, style) in enumerate(_problem_lines(finding, shown, max(16, width))):
                self._lines.append((index, number, text, style))

    def __len__(self) -> int:
        return len(self._lines)

    def row(self, index: int) -> Row:
        finding, number, text, style = self._lines[index]
        severity = self.findings[finding].severity
        signs = glyphs.current()
        sign = (signs.failed if severity == "error" else signs.warning) if number == 0 else " "
        return Row((Cell(text, style),), sign=sign, sign_style="bad" if severity == "error" else "warn")

    def key(self, index: int) -> Hashable:
        finding, number, _, _ = self._lines[index]
        return (self.findings[finding].message, self.findings[finding].place, number)

    def index_of(self, key: Hashable) -> int | None:
        return next((index for index in range(len(self)) if self.key(index) == key), None)

    def finding_at(self, index: int) -> Finding | None:
        """The finding that a line belongs to."""
        return self.findings[self._lines[index][0]] if 0 <= index < len(self._lines) else None


def _problem_lines(finding: Finding, shown: Callable[[str], str], width: int) -> list[tuple[str, str]]:
    place = finding.place
    lines: list[tuple[str, str]] = []
    if place is not None and place.key:
        lines.append((_end_of(place.key, width), "strong"))
    if place is not None and place.file:
        where = shown(place.file) + (f":{place.line}" if place.line else "")
        lines.append((_end_of(where, width), "muted" if lines else "strong"))
    for text in finding.message.split("\n"):
        lines += [(line, "plain") for line in _wrapped(text, width)]
    if finding.hint:
        lines += [(line, "accent") for line in _wrapped(f"hint: {finding.hint}", width)]
    if finding.fix:
        lines += [(line, "accent") for line in _wrapped(f"fix: {finding.fix}", width)]
    return lines


def _end_of(text: str, width: int) -> str:
    line = clean_line(text, LONGEST_LINE)
    return fit(line, min(width, cell_len(line)), keep_end=True)


def _wrapped(text: str, width: int) -> list[str]:
    wrapped = WrappedText(clean(text[:_LONGEST_FINDING]), width)
    wrapped.extend(1 << 62, 1 << 30)
    return list(wrapped.lines) or [""]
