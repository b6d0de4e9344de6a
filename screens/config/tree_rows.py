"""The tree of a stage as rows: what is folded, filtered or unchanged is passed over. Pure; made in a thread, asked on the loop."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from backend.cli.render_config import held_text, value_text
from backend.config.findings import Finding
from backend.config.nodes import PASSING_ON, KeyPath, format_path, parse_path
from backend.config.resolve_view import Change, Entry, Stage
from backend.config.schema import MISSING
from backend.io.redact import MASK
from backend.io.text import clean_line
from screens.widgets import glyphs
from screens.widgets.columns import Column
from screens.widgets.virtual_list import Cell, Row

COLUMNS = (
    Column("key", "KEY", least=20),
    Column("value", "VALUE", least=16),
    Column("from", "FROM", 9, keep=1),
)
_LONGEST_VALUE = 400
_DEEPEST = 20
"""Levels that are indented."""
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

Mark = Literal["", "changed", "added", "removed"]


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One key. Keys that hold nothing but one other mapping share a row with it."""

    entry: Entry
    key: str
    depth: int
    label: str
    value: str
    """Of mappings nothing, of lists how long they are."""
    note: str
    """What the stage did to the key: `was 1`."""
    source: str
    """`L2:9`, and who else wrote it."""
    mark: Mark
    parent: int
    """The index of the row above in the tree; -1 at the top."""
    holds: bool
    """Whether there are rows below it."""
    problem: Literal["", "error", "warning"] = ""
    """The worst of what was found at the key."""
    searched: str = ""
    """Key and value in lower case."""


@dataclass(frozen=True)
class Tree:
    """All rows of a stage."""

    name: str
    title: str
    rows: tuple[TreeRow, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)
    """Rows by key; keys that share a row are all here."""
    keys: int = 0
    changed: int = 0

    def nearest(self, key: str) -> int | None:
        """The row of a key, else of the nearest key above it."""
        path = parse_path(key)
        exact = self.places.get(key)
        if exact is not None:
            return exact
        return next(
            (self.places[text] for size in range(len(path), 0, -1) if (text := _dotted(path[:size])) in self.places),
            None,
        )


def _dotted(path: Sequence[str]) -> str:
    """A path read from text, list positions in brackets again."""
    return format_path(tuple(int(part) if part.isdigit() else part for part in path))


def tree_of(stage: Stage, stages: Sequence[Stage], findings: Iterable[Finding], shown: Callable[[str], str]) -> Tree:
    """The rows of a stage; what it took away is among them. `shown` shortens paths in texts."""
    is_last = stage is stages[-1]
    gone = {entry.path for entry in stage.removed}
    entries: dict[KeyPath, Entry] = {entry.path: entry for entry in (*stage.entries, *stage.removed)}
    children: dict[KeyPath, list[KeyPath]] = {}
    for path in entries:
        children.setdefault(path[:-1], []).append(path)
    builder = _Builder(entries, children, gone, stage.name, is_last, shown)
    for path in children.get((), ()):
        builder.add(path, 0, -1)
    rows = builder.rows
    places = builder.places
    tree = Tree(stage.name, stage.title, (), places)
    worst: dict[int, Literal["error", "warning"]] = {}
    for finding in findings:
        key = finding.place.key if finding.place else None
        at = tree.nearest(key) if key else None
        if at is not None and worst.get(at) != "error":
            worst[at] = finding.severity
    rows = [replace(row, problem=worst[at]) if at in worst else row for at, row in enumerate(rows)]
    alive = [row for row in rows if row.mark != "removed"]
    changed = sum(1 for row in rows if row.mark)
    return Tree(stage.name, stage.title, tuple(rows), places, len({*places}) - len(rows) + len(alive), changed)


class _Builder:
    def __init__(
        self,
        entries: Mapping[KeyPath, Entry],
        children: Mapping[KeyPath, list[KeyPath]],
        gone: set[KeyPath],
        stage: str,
        is_last: bool,
        shown: Callable[[str], str],
    ) -> None:
        self.rows: list[TreeRow] = []
        self.places: dict[str, int] = {}
        self._entries = entries
        self._children = children
        self._gone = gone
        self._stage = stage
        self._is_last = is_last
        self._shown = shown

    def add(self, path: KeyPath, depth: int, parent: int) -> None:
        """The row of a key and those below it."""
        index = len(self.rows)
        label, paths = self._shown(_label(path)), [path]
        while depth and (only := self._only_mapping(path)) is not None:
            path = only
            label += ("" if _label(path).startswith("[") else ".") + _label(path)
            paths.append(path)
        entry = self._entries[path]
        below = self._children.get(path, ())
        for each in paths:
            self.places[format_path(each)] = index
        change = self._change(entry)
        mark: Mark = "removed" if path in self._gone else change.kind if change is not None else ""
        value = self._shown(value_of(entry))
        key = format_path(path)
        self.rows.append(
            TreeRow(
                entry, key, depth, label, value, _note(change, entry), source_of(entry), mark, parent, bool(below),
                searched=f"{key}\n{value}".lower(),
            )
        )  # fmt: skip
        for each in below:
            self.add(each, depth + 1, index)

    def _only_mapping(self, path: KeyPath) -> KeyPath | None:
        """The one mapping that a mapping holds, when it holds nothing else."""
        below = self._children.get(path, ())
        if len(below) != 1 or self._entries[path].shape != "mapping" or self._entries[below[0]].shape != "mapping":
            return None
        same = (path in self._gone) == (below[0] in self._gone)
        return below[0] if same and self._entries[below[0]].value else None

    def _change(self, entry: Entry) -> Change | None:
        """What this stage did to a key; of the last stage also how the value had changed before."""
        own = [change for change in entry.changes if change.stage == self._stage]
        if own or not self._is_last:
            return own[-1] if own else None
        return next((change for change in reversed(entry.changes) if change.kind == "changed"), None)


def _label(path: KeyPath) -> str:
    last = path[-1]
    return f"[{last}]" if isinstance(last, int) and not isinstance(last, bool) else format_path((last,))


def value_of(entry: Entry) -> str:
    """The value of a key on one line."""
    return held(entry.shape, entry.value, secret=entry.secret)


def held(shape: str, value: object, *, secret: bool) -> str:
    """A masked value for people: secrets as dots, what is missing as such, lists as their length."""
    if shape == "mapping":
        return "" if value else "{}"
    if shape == "list":
        return held_text(shape, value)
    if secret and value == MASK:
        return hidden()
    if value == MISSING:
        return "<missing>" if glyphs.is_ascii() else "⟨missing⟩"
    return value_text(value)


def hidden() -> str:
    """What stands for a secret: always as long."""
    return f"{('*' if glyphs.is_ascii() else '•') * 8} secret"


def _note(change: Change | None, entry: Entry) -> str:
    if change is None or change.kind != "changed" or entry.secret:
        return "changed" if change is not None and change.kind == "changed" else ""
    before = change.before
    return f"was {'nothing' if before is None else value_text(before)}"


def source_of(entry: Entry) -> str:
    """Who wrote a value down: the layer with the line, and as a small number how many wrote it."""
    winner = entry.winner
    if winner is None:
        return glyphs.current().nothing
    if winner.layer is None:
        text = clean_line(winner.origin.text.strip("()") or winner.origin.kind, 9)
    else:
        text = f"L{winner.layer}" + (f":{winner.origin.line}" if winner.origin.line else "")
    writers = sum(1 for step in entry.chain if step.origin.kind not in PASSING_ON)
    small = str(writers) if glyphs.is_ascii() else str(writers).translate(_SUPERSCRIPTS)
    return f"{text} {small}" if writers > 1 else text


class TreeRows:
    """The visible rows of a tree: without what is folded, or with words only those that have them and what is above these."""

    def __init__(self, tree: Tree, folded: frozenset[str], *, words: Sequence[str] = (), changed_only: bool = False) -> None:
        self.tree = tree
        self._folded = folded
        self._words = tuple(word.lower() for word in words)
        self._is_narrowed = bool(words) or changed_only
        self.hits = 0
        """Rows that match by themselves."""
        self._visible = self._narrowed(changed_only) if self._is_narrowed else self._unfolded()
        self._at = {self.tree.rows[index].key: position for position, index in enumerate(self._visible)}
        self._below = self._hidden_problems()

    def _narrowed(self, changed_only: bool) -> list[int]:
        kept: set[int] = set()
        for index, row in enumerate(self.tree.rows):
            if changed_only and not row.mark:
                continue
            if all(word in row.searched for word in self._words):
                self.hits += 1
                while index >= 0 and index not in kept:
                    kept.add(index)
                    index = self.tree.rows[index].parent
        return sorted(kept)

    def _unfolded(self) -> list[int]:
        visible: list[int] = []
        hidden: set[int] = set()
        for index, row in enumerate(self.tree.rows):
            if row.mark == "removed" or row.parent in hidden:
                hidden.add(index)
                continue
            visible.append(index)
            if row.key in self._folded:
                hidden.add(index)
        return [index for index in visible if index not in hidden or self.tree.rows[index].key in self._folded]

    def _hidden_problems(self) -> dict[int, str]:
        """For folded rows the worst problem among those they hide."""
        if self._is_narrowed:
            return {}
        worst: dict[int, str] = {}
        visible = set(self._visible)
        for index, row in enumerate(self.tree.rows):
            if row.problem and index not in visible:
                above = row.parent
                while above >= 0 and above not in visible:
                    above = self.tree.rows[above].parent
                if above >= 0 and worst.get(above) != "error":
                    worst[above] = row.problem
        return worst

    def __len__(self) -> int:
        return len(self._visible)

    def at(self, index: int) -> TreeRow:
        """The row of the tree at a visible position."""
        return self.tree.rows[self._visible[index]]

    def key(self, index: int) -> Hashable:
        return self.at(index).key

    def index_of(self, key: Hashable) -> int | None:
        """Where a key is visible; one that shares a row or is folded away is found at the row that shows it."""
        if key in self._at:
            return self._at[key]
        index = self.tree.places.get(str(key), -1)
        while index >= 0:
            position = self._at.get(self.tree.rows[index].key)
            if position is not None:
                return position
            index = self.tree.rows[index].parent
        return None

    def row(self, index: int) -> Row:
        row, signs = self.at(index), glyphs.current()
        problem = row.problem or self._below.get(self._visible[index], "")
        value = clean_line(row.value, _LONGEST_VALUE)
        note = {"changed": f"~ {clean_line(row.note, 80)}", "added": "+ added", "removed": f"{signs.minus} removed"}.get(
            row.mark, ""
        )
        text = f"{value}  {note}".lstrip() if note else value
        style = "bad" if row.entry.value == MISSING else "muted" if row.entry.secret or row.entry.shape != "value" else "plain"
        sign = {"error": signs.failed, "warning": signs.warning}.get(problem, "")
        return Row(
            (
                self._key_cell(row),
                Cell(text, "accent" if row.mark and style == "plain" else style, self._lit(text, 0)),
                Cell(row.source, "muted"),
            ),
            sign=sign,
            sign_style={"error": "bad", "warning": "warn"}.get(problem, "plain"),
            muted=row.mark == "removed",
        )

    def _key_cell(self, row: TreeRow) -> Cell:
        signs, label = glyphs.current(), clean_line(row.label, 200)
        indent = 2 * min(row.depth, _DEEPEST)
        style = "plain" if row.depth else "strong"
        if not row.holds:
            return Cell(label, style, self._lit(label, 0), indent + 2)
        folded = row.key in self._folded and not self._is_narrowed
        text = f"{signs.folded if folded else signs.unfolded} {label}"
        return Cell(text, style, self._lit(text, 2), indent)

    def _lit(self, text: str, start: int) -> tuple[int, ...]:
        """Where the words are in a text."""
        lower = text.lower()
        if len(lower) != len(text):
            return ()
        places: set[int] = set()
        for word in self._words:
            at = lower.find(word, start)
            while at >= 0:
                places.update(range(at, at + len(word)))
                at = lower.find(word, at + len(word))
        return tuple(sorted(places))
