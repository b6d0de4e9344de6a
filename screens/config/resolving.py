"""From the words on screen to a resolution: in a thread, with one broken entry never hiding what the others make."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from backend.cli.commands import Kind
from backend.cli.request_building import config_request
from backend.config.findings import Finding
from backend.config.overrides import shown_token
from backend.config.request import ConfigRequest
from backend.config.resolve_view import Layer, ResolvedView, resolve_view
from backend.errors import GymError, Place
from backend.io.redact import Redactor, mask_command
from backend.io.roots import search_roots
from screens.config.tree_rows import Tree, tree_of
from screens.config.words import Entry, flag_of, parsed_words, shown_words, words_of
from screens.widgets.background import Reporter

_CLASSES = {"default": 0, "file": 1, "env_file": 2, "initial": 2, "stand_in": 2, "flag": 3, "override": 4}
"""Kinds of layers in the order in which they merge."""


@dataclass(frozen=True, slots=True)
class LayerLine:
    """One line of the list of layers: a layer, or an entry that makes none."""

    title: str
    layer: Layer | None = None
    entry: int | None = None
    """The index of the entry it comes from; None for what the words do not name."""
    on: bool = True
    problem: str = ""
    """Why it sets nothing."""


@dataclass(frozen=True)
class Resolution:
    """A resolution with everything that the screen shows of it; nothing in it is secret."""

    entries: tuple[Entry, ...]
    view: ResolvedView
    lines: tuple[LayerLine, ...]
    findings: tuple[Finding, ...]
    trees: tuple[Tree, ...]
    """One for each stage of the view."""
    words: str
    """What counts, for a shell, masked."""
    paths: ShownPaths


class ShownPaths:
    """Paths as they are written on screen: below the nearest search root without that, any other as it is."""

    def __init__(self, roots: Sequence[Path]) -> None:
        names = "|".join(re.escape(name) for name in sorted(map(str, roots), key=len, reverse=True) if name != "/")
        self._pattern = re.compile(rf"(?<![\w./-])(?:{names or '(?!)'})(?:/|(?![\w.-]))")

    def text(self, text: str) -> str:
        """A text that may name files."""
        return self._pattern.sub(lambda match: "" if match[0].endswith("/") else ".", text)


def resolve_entries(entries: Sequence[Entry], reporter: Reporter) -> Resolution:
    """Resolve the entries that are on. What one of them does wrong is a finding, and the others count all the same."""
    remarks: list[str] = []
    problems: dict[int, GymError] = {}
    parts: dict[int, ConfigRequest] = {}
    search = [word for entry in entries if entry.on and entry.group == "--search-dir" for word in entry.words]
    for index, entry in enumerate(entries):
        if entry.on and not reporter.cancelled:
            try:
                own = [] if entry.group == "--search-dir" else list(entry.words)
                parts[index] = config_request(parsed_words((*search, *own)), _ignore)
            except GymError as error:
                problems[index] = error
    good = [entry for index, entry in enumerate(entries) if index not in problems]
    try:
        parsed = parsed_words(tuple(words_of(good)))
        request = config_request(parsed, remarks.append)
        request = replace(request, stand_in_model="no_model" in parsed.values, validate_only=True)
    except GymError as error:  # what only all words together do wrong
        problems[len(entries)] = error
        request = ConfigRequest(validate_only=True)
    view = resolve_view(request)
    paths = ShownPaths(search_roots(request.search_dirs))
    findings = (
        *(_as_finding(error, entries[index].text if index < len(entries) else "") for index, error in problems.items()),
        *view.findings,
        *(Finding("warning", remark) for remark in dict.fromkeys(remarks)),
    )
    findings = tuple(_without_roots(finding.masked(view.masker.redactor), paths) for finding in findings)
    return Resolution(
        entries=tuple(entries),
        view=view,
        lines=tuple(_lines(entries, parts, problems, view, paths)),
        findings=findings,
        trees=tuple(tree_of(stage, view.stages, findings, paths.text) for stage in view.stages),
        words=shown_words(entries, view.masker.redactor),
        paths=paths,
    )


def _ignore(_remark: str) -> None:
    return None


def _as_finding(error: GymError, word: str) -> Finding:
    message = "\n".join([error.message, *error.details])
    return Finding("error", message, error.place or (Place(key=word) if word else None), error.hint)


def _without_roots(finding: Finding, paths: ShownPaths) -> Finding:
    hint, fix = (paths.text(text) if text else None for text in (finding.hint, finding.fix))
    first, *details = finding.message.split("\n")  # details may tell search roots apart
    return replace(finding, message="\n".join([paths.text(first), *details]), hint=hint, fix=fix)


def _lines(
    entries: Sequence[Entry],
    parts: dict[int, ConfigRequest],
    problems: dict[int, GymError],
    view: ResolvedView,
    paths: ShownPaths,
) -> list[LayerLine]:
    """The layers in their order, with the entries that make none put where their layers would be."""
    mask = view.masker.redactor.text
    made_by = _Makers(parts, mask)
    lines = []
    for layer in view.layers:
        index = made_by.entry(layer)
        title = paths.text(layer.title) if index is None or layer.kind == "file" else mask(_shown(entries[index]))
        lines.append(LayerLine(title, layer, index, problem=layer.error or ""))
    present = {line.entry for line in lines}
    for index, entry in enumerate(entries):
        if index not in present:
            problem = problems[index].message if index in problems else ""
            if entry.on and flag_of(entry.words[0]) is None and not entry.words[0].lstrip("+~").startswith("hydra"):
                problem = problem or "it cannot be applied"  # why is among the findings
            line = LayerLine(mask(_shown(entry)), None, index, entry.on, mask(paths.text(problem)))
            lines.insert(_place_for(index, entries, lines), line)
    return lines


class _Makers:
    """Which entry made which layer."""

    def __init__(self, parts: dict[int, ConfigRequest], mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._files = [(path, index) for index, part in parts.items() for path in part.config_paths]
        self._flags = [(flag.flag, index) for index, part in parts.items() for flag in part.flag_values]
        self._overrides = [(token, index) for index, part in parts.items() for token in part.overrides]

    def entry(self, layer: Layer) -> int | None:
        """The entry of a layer; each is found for one layer only, in their order."""
        if layer.kind == "file" and layer.included_by is None:
            return next((index for path, index in self._files if path == layer.title), None)
        if layer.kind == "flag":
            return next((index for flag, index in reversed(self._flags) if flag == layer.title), None)
        if layer.kind == "override":
            for position, (token, index) in enumerate(self._overrides):
                if self._mask(shown_token(token)) == layer.title:
                    del self._overrides[: position + 1]
                    return index
        return None


def _shown(entry: Entry) -> str:
    """The words of an entry for people: as they were meant, not as a shell wants them quoted."""
    return " ".join(mask_command(entry.words, Redactor()))


def _class_of(entry: Entry) -> int:
    flag = flag_of(entry.words[0])
    if flag is None:
        return _CLASSES["override"]
    if flag.kind in (Kind.CONFIG_FILE, Kind.SELECTOR):
        return _CLASSES["file"]
    return _CLASSES["flag"] if flag.key else _CLASSES["stand_in"] if flag.kind is Kind.LOCAL_SWITCH else _CLASSES["default"]


def _place_for(index: int, entries: Sequence[Entry], lines: Sequence[LayerLine]) -> int:
    """Behind the last line of an earlier entry of its class, else before the first line of a later class or entry."""
    own = _class_of(entries[index])
    place = 0
    for position, line in enumerate(lines):
        rank = _class_of(entries[line.entry]) if line.entry is not None else _CLASSES.get(line.layer.kind, 2) if line.layer else 2
        earlier = line.entry is not None and rank == own and line.entry < index
        if rank < own or earlier:
            place = position + 1
    return place
