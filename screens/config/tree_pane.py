"""The pane of the resolved tree: stages, folds, the search, and where its cursor is."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.message import Message

from screens.config.resolving import Resolution
from screens.config.tree_rows import COLUMNS, Tree, TreeRow, TreeRows
from screens.widgets import formatting, glyphs
from screens.widgets.filter_box import FilterBox
from screens.widgets.pane import Pane
from screens.widgets.virtual_list import VirtualList


class TreeList(VirtualList):
    """The rows of the tree."""

    HELP = (
        "Tree: `enter` folds, `/` finds a key or value, `v` and `V` step through the stages, `c` shows only what changed, "
        "`f` goes to who set the value, `o` opens the file at that line."
    )


class TreePane(Pane):
    """Shows one stage of a resolution. Cursor and folds stay with their keys, whatever is resolved anew."""

    class Moved(Message):
        """Another key is under the cursor, or the same one with another value."""

    def __init__(self, *, id: str, classes: str) -> None:
        super().__init__("Resolved", id=id, classes=classes)
        self.changed_only = False
        self._resolution: Resolution | None = None
        self._stage: str | None = None
        """The stage to show by name; None for the last one."""
        self._folded: frozenset[str] = frozenset()
        self._words: tuple[str, ...] = ()
        self._nothing: tuple[str, str] | None = None

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield FilterBox("a key or a value", id="tree-find")
        yield TreeList(COLUMNS, id="tree-list")

    @property
    def rows_list(self) -> VirtualList:
        """The list of rows."""
        return self.query_one("#tree-list", VirtualList)

    @property
    def box(self) -> FilterBox:
        """The search."""
        return self.query_one("#tree-find", FilterBox)

    @property
    def tree_shown(self) -> Tree:
        """The stage on show."""
        trees = self._resolution.trees if self._resolution is not None else ()
        return next((tree for tree in trees if tree.name == self._stage), trees[-1] if trees else Tree("", ""))

    @property
    def row(self) -> TreeRow | None:
        """The row under the cursor; None where nothing is shown."""
        if self._nothing is not None:
            return None
        rows = self.rows_list.rows
        return rows.at(self.rows_list.cursor) if isinstance(rows, TreeRows) and self.rows_list.cursor < len(rows) else None

    def show(self, resolution: Resolution, *, keep_place: bool, nothing: tuple[str, str] | None = None) -> None:
        """Show another resolution; with `keep_place` the cursor stays on its key. `nothing` says why there is none, and what helps."""
        self._resolution = resolution
        self._nothing = nothing
        self._arrange(keep_place=keep_place)

    def find(self, text: str) -> None:
        """Narrow the tree to the rows that have all words of a text, and to those above them."""
        words = tuple(text.split())
        if words != self._words:
            self._words = words
            self._arrange()

    def show_changed_only(self, on: bool) -> None:
        """Narrow the tree to what the stage changed, or not."""
        self.changed_only = on
        self._arrange()

    def fold(self) -> bool:
        """Fold or unfold the row under the cursor; False when it holds nothing, or the tree is narrowed."""
        row = self.row
        if row is None or not row.holds or self._words or self.changed_only:
            return False
        self._folded ^= {row.key}
        self._arrange()
        return True

    def step_stage(self, by: int) -> str:
        """Show the next or the previous stage, round and round; its title."""
        trees = self._resolution.trees if self._resolution is not None else ()
        if trees:
            at = (trees.index(self.tree_shown) + by) % len(trees)
            self._stage = trees[at].name if at < len(trees) - 1 else None
            self._arrange()
        return self.tree_shown.title

    def show_stage(self, name: str) -> None:
        """Show a stage."""
        self._stage = name
        self._arrange()

    def go_to(self, key: str) -> bool:
        """Put the cursor on a key or the nearest one above it, unfolding what hides it; False when there is none."""
        tree = self.tree_shown
        index = tree.nearest(key)
        if index is None:
            return False
        above = tree.rows[index].parent
        while above >= 0:
            self._folded -= {tree.rows[above].key}
            above = tree.rows[above].parent
        wanted = tree.rows[index].key
        self._arrange()
        if (
            self.rows_list.rows.index_of(wanted) is None
            or self.rows_list.rows.key(self.rows_list.rows.index_of(wanted) or 0) != wanted
        ):
            self.box.clear_and_close()
            self._words, self.changed_only = (), False
            self._arrange()
        return self.rows_list.move_to_key(wanted)

    def _arrange(self, *, keep_place: bool = True) -> None:
        tree = self.tree_shown
        rows = TreeRows(tree, self._folded, words=self._words, changed_only=self.changed_only)
        self.rows_list.show(rows, keep_place=keep_place)
        self._draw(tree, rows)
        self.post_message(self.Moved())

    def _draw(self, tree: Tree, rows: TreeRows) -> None:
        if self._resolution is None:
            return
        trees = self._resolution.trees
        if self._nothing is not None:
            self.show_empty(*self._nothing)
            self.set_heading("Resolved", "", "")
            return
        if not tree.rows:
            error = next((finding for finding in self._resolution.findings if finding.severity == "error"), None)
            self.show_empty(
                "Nothing can be resolved" if error else "Nothing is set", error.message if error else "a adds a layer"
            )
        elif not len(rows):
            what = f"No key or value has {' '.join(self._words)}" if self._words else "This stage changed nothing"
            self.show_empty(what, "esc shows all again")
        else:
            self.show_ready()
        number = next((at for at, each in enumerate(trees, 1) if each is tree), 0)
        count = formatting.count(tree.keys)
        parts = [
            f"{formatting.count(rows.hits)} of {count}" if self._words else f"{count} keys",
            f"{formatting.count(tree.changed)} changed",
        ]
        self.set_heading(
            f"Resolved · stage {number}/{len(trees)} {tree.name}" if trees else "Resolved",
            " · ".join([*self._problem_counts(), *parts]),
            "only what changed · c shows all" if self.changed_only else f"/ find · {glyphs.current().enter} fold · {tree.title}",
        )

    def _problem_counts(self) -> list[str]:
        """For narrow terminals, where the problems are not in view."""
        findings = self._resolution.findings if self._resolution is not None else ()
        if not findings or not self.screen.has_class("-narrow"):
            return []
        signs = glyphs.current()
        errors = sum(1 for finding in findings if finding.severity == "error")
        return [f"{signs.failed}{errors} {signs.warning}{len(findings) - errors}"]

    def draw_again(self) -> None:
        """Draw the border for another width."""
        rows = self.rows_list.rows
        if isinstance(rows, TreeRows):
            self._draw(self.tree_shown, rows)

    def close_innermost(self) -> bool:
        """Leave the search, then the view of changes; False when there was neither."""
        if self.box.clear_and_close():
            self.find("")
            self.rows_list.focus()
            return True
        if self.changed_only:
            self.show_changed_only(False)
            return True
        return False

    def on_filter_box_filtered(self, message: FilterBox.Filtered) -> None:
        message.stop()
        self.find(message.text)

    def on_filter_box_left(self, message: FilterBox.Left) -> None:
        message.stop()
        self.call_after_refresh(self.rows_list.focus)

    def on_virtual_list_highlighted(self, message: VirtualList.Highlighted) -> None:
        message.stop()
        self.post_message(self.Moved())
