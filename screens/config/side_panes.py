"""The panes beside the tree: layers, problems, and why a key has its value."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.message import Message

from backend.config.findings import Finding
from backend.config.nodes import Origin
from backend.config.resolve_view import Entry
from screens.config.resolving import LayerLine, Resolution, ShownPaths
from screens.config.side_rows import LAYER_COLUMNS, PROBLEM_COLUMNS, LayerRows, ProblemRows
from screens.config.why_blocks import origin_of, why_blocks, writers
from screens.widgets import formatting, glyphs
from screens.widgets.pane import Pane
from screens.widgets.text_blocks import plain_text
from screens.widgets.text_gate import fit
from screens.widgets.virtual_list import VirtualList
from screens.widgets.virtual_text import VirtualText

_LONGEST_KEY = 60


class LayerList(VirtualList):
    """The layers; `space` switches one on or off."""

    HELP = "Layers: the last one wins. `space` switches one on or off, `<` `>` move it, `a` adds, `e` changes, `del` removes."

    class Toggled(Message):
        """The layer under the cursor is to be switched on or off."""

    def action_mark(self) -> None:
        self.post_message(self.Toggled())


class LayersPane(Pane):
    """What the configuration is made of."""

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield LayerList(LAYER_COLUMNS, id="layers-list", header=False)

    @property
    def rows_list(self) -> VirtualList:
        """The list of layers."""
        return self.query_one(LayerList)

    @property
    def line(self) -> LayerLine | None:
        """The layer under the cursor."""
        rows = self.rows_list.rows
        return rows.lines[self.rows_list.cursor] if isinstance(rows, LayerRows) and self.rows_list.cursor < len(rows) else None

    def show(self, resolution: Resolution) -> None:
        """Show the layers of a resolution."""
        rows = LayerRows(resolution)
        self.rows_list.show(rows)
        self.show_ready()
        off = sum(1 for line in rows.lines if not line.on)
        layers = sum(1 for line in rows.lines if line.layer is not None)
        self.set_heading(right=f"{layers} · {off} off" if off else str(layers), foot="spc on/off · < > move · a add")

    def show_nothing(self, why: str, help_text: str) -> None:
        """There are only the defaults: why, and the key that helps."""
        self.show_empty(why, help_text)
        self.set_heading(right="", foot="")

    def go_to_entry(self, entry: int) -> None:
        """Put the cursor on the layer of an entry."""
        rows = self.rows_list.rows
        if isinstance(rows, LayerRows) and (index := rows.of_entry(entry)) is not None:
            self.rows_list.move_to(index)


class ProblemList(VirtualList):
    """The lines of the findings."""

    HELP = "Problems: `{` and `}` go from one to the next and to its key, `enter` goes there, `y` copies what mends it, `a` applies it."

    class Resized(Message):
        """The list has another width."""

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.post_message(self.Resized())


class ProblemsPane(Pane):
    """What is wrong, each finding with its key, its place and what helps."""

    def __init__(self, title: str, *, id: str, classes: str) -> None:
        super().__init__(title, id=id, classes=classes)
        self._findings: Sequence[Finding] = ()
        self._paths = ShownPaths(())
        self._width = 0

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield ProblemList(PROBLEM_COLUMNS, id="problems-list", header=False)

    @property
    def rows_list(self) -> VirtualList:
        """The list of their lines."""
        return self.query_one("#problems-list", VirtualList)

    @property
    def finding(self) -> Finding | None:
        """The finding under the cursor."""
        rows = self.rows_list.rows
        return rows.finding_at(self.rows_list.cursor) if isinstance(rows, ProblemRows) else None

    def show(self, findings: Sequence[Finding], paths: ShownPaths) -> None:
        """Show findings."""
        self._findings, self._paths = findings, paths
        self.draw_again()
        errors = sum(1 for finding in findings if finding.severity == "error")
        warnings = len(findings) - errors
        if not findings:
            self.show_empty(f"{glyphs.current().good} No problem", "what would stop a run is listed here")
        else:
            self.show_ready()
        counts = [formatting.count(errors) + f" error{'' if errors == 1 else 's'}"] if errors else []
        counts += [f"{formatting.count(warnings)} warning{'' if warnings == 1 else 's'}"] if warnings else []
        self.set_heading(right=" · ".join(counts), foot=f"{{ }} next · {glyphs.current().enter} go there" if findings else "")

    def draw_again(self) -> None:
        """Lay the findings out for the present width."""
        self._width = self.rows_list.size.width
        self.rows_list.show(ProblemRows(self._findings, self._paths.text, self._width - 4))

    def on_problem_list_resized(self, message: ProblemList.Resized) -> None:
        message.stop()
        if self.rows_list.size.width != self._width:
            self.draw_again()

    def step(self, by: int) -> Finding | None:
        """Go to the next or previous finding, round and round; None when there is none."""
        rows = self.rows_list.rows
        if not isinstance(rows, ProblemRows) or not rows.findings:
            return None
        here = rows.findings.index(rows.finding_at(self.rows_list.cursor) or rows.findings[0])
        at = (here + by) % len(rows.findings)
        self.rows_list.move_to(rows.starts[at])
        return rows.findings[at]


class WhyPane(Pane):
    """Who set the key under the tree's cursor, and what that beat."""

    def __init__(self, *, id: str) -> None:
        super().__init__("Why", id=id)
        self._entry: Entry | None = None

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield VirtualText(id="why-text")

    @property
    def text(self) -> VirtualText:
        """Where it stands."""
        return self.query_one("#why-text", VirtualText)

    def show(self, entry: Entry | None, findings: Sequence[Finding], paths: ShownPaths) -> None:
        """Explain a key."""
        before, self._entry = self._entry, entry
        if entry is None:
            self.show_empty("Nothing under the cursor")
            self.set_heading("Why", "", "")
            return
        self.show_ready()
        same = before is not None and before.path == entry.path
        self.text.set_blocks(why_blocks(entry, findings, paths.text), keep_place=same)
        if not same and (winner := entry.winner) is not None:
            self.text.move_to_key(("step", next(at for at, step in enumerate(entry.chain) if step is winner)))
        number = writers(entry)
        key = entry.key if len(entry.key) <= _LONGEST_KEY else fit(entry.key, _LONGEST_KEY, keep_end=True)
        self.set_heading(f"Why  {key}", f"{number} writer{'' if number == 1 else 's'}", "")

    @property
    def origin(self) -> Origin | None:
        """The origin that the cursor is on; without the focus that of the value."""
        if self._entry is None:
            return None
        return origin_of(self._entry, self.text.cursor_key) if self.text.has_focus else self._entry.origin

    def block_text(self) -> str:
        """The block under the cursor as text."""
        blocks = self.text.blocks
        return plain_text(blocks[self.text.cursor]).strip() if self.text.cursor < len(blocks) else ""
