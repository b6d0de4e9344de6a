"""The Config screen: the layers of a configuration, what they make, who set each value, and what is wrong with it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from textual import events, on
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widget import Widget

from backend.config.findings import Finding
from backend.config.stages import READ
from backend.errors import GymError
from backend.io.redact import Redactor
from screens.config import words
from screens.config.comparing_screen import ComparingScreen
from screens.config.completing import complete_words, component_names, known_keys
from screens.config.diff_view import DiffView
from screens.config.resolving import LayerLine, Resolution, ShownPaths, resolve_entries
from screens.config.side_panes import LayerList, LayersPane, ProblemsPane, WhyPane
from screens.config.tree_pane import TreePane
from screens.config.words import Entry
from screens.widgets.background import Failure
from screens.widgets.key_table import bindings
from screens.widgets.outside import editor_command, opening, run_outside
from screens.widgets.virtual_list import VirtualList
from screens.widgets.workbench import Target

RESOLVE_SECONDS = 0.25
"""How long after the last edit the configuration is resolved."""
_YAML = (".yaml", ".yml")
_NO_LAYER = "Add a benchmark (a) or mark entries in Catalog (1)"


class ConfigScreen(ComparingScreen):
    """Edits the words of a configuration, and shows in a moment what they make. Nothing is started or written from here."""

    SCREEN_NAME = "config"
    PANES = ("layers", "problems", "tree", "why")
    KEY_BAR = ("config.add", "config.stage", "config.changed", "config.diff", "config.next_problem", "config.run")
    BINDINGS = [*bindings("configdiff"), *bindings("config")]  # noqa: RUF012 - the type is Textual's
    CSS_PATH: ClassVar[Any] = "config.tcss"

    def __init__(self) -> None:
        super().__init__()
        self._timer: Timer | None = None
        self._wanted_entry: int | None = None
        self._is_new = True
        """Whether the configuration is another one, so that there is no place to keep."""

    def compose_body(self) -> Iterable[Widget]:
        with Horizontal(id="config-main"):
            with Vertical(id="config-left"):
                yield LayersPane("Layers (last wins)", id="layers", classes="-solo")
                yield ProblemsPane("Problems", id="problems", classes="-solo")
            with Vertical(id="config-right"):
                yield TreePane(id="tree", classes="-solo -current")
                yield WhyPane(id="why")
        yield DiffView(id="config-diff")

    def on_mount(self) -> None:
        for pane in (self._tree, self._layers, self._problems, self._why):
            pane.show_loading("resolving")
        self._resolve()
        self._tree.rows_list.focus()

    def show_target(self, target: Target) -> None:
        """Begin with the words of a target, or with a configuration file."""
        given = target.words or (("--config", str(target.path)) if target.path.suffix in _YAML else ())
        if not given:
            return
        entries = words.entries_of(given)
        kept = tuple(entry for entry in entries if not words.has_secret(entry))
        if len(kept) < len(entries):
            self.workbench.tell("words with keys in them are left out: keys belong in env.yaml", "warning")
        self._leave_diff()
        self._is_new = True
        self._edit(kept)

    @property
    def _layers(self) -> LayersPane:
        return self.query_one("#layers", LayersPane)

    @property
    def _problems(self) -> ProblemsPane:
        return self.query_one("#problems", ProblemsPane)

    @property
    def _why(self) -> WhyPane:
        return self.query_one("#why", WhyPane)

    @property
    def _paths(self) -> ShownPaths:
        return self._resolution.paths if self._resolution is not None else ShownPaths(())

    # Resolving

    def _edit(self, entries: tuple[Entry, ...], cursor: int | None = None) -> None:
        """Take other entries, put the cursor on one of them, and resolve in a moment."""
        self._entries = entries
        self._wanted_entry = cursor
        self.say_words()
        self._tree.show_loading("resolving", keep=self._resolution is not None)
        if self._timer is None:
            self.workbench.begin_work()
            self._timer = self.set_timer(RESOLVE_SECONDS, self._resolve_edit)
        else:
            self._timer.reset()

    def _resolve_edit(self) -> None:
        self._timer = None
        self._resolve()
        self.workbench.end_work()

    def _resolve(self) -> None:
        entries = self._entries
        self._tree.show_loading("resolving", keep=self._resolution is not None)
        self.background.start(
            "resolve", lambda reporter: resolve_entries(entries, reporter), done=self._resolved, failed=self._not_resolved
        )

    def _resolved(self, resolution: Resolution) -> None:
        self._resolution = resolution
        self._known = replace(self._known, keys=known_keys(entry.key for entry in resolution.view.entries))
        self._layers.show(resolution)
        self._problems.show(resolution.findings, resolution.paths)
        is_empty = not resolution.entries and all(layer.kind != "env_file" for layer in resolution.view.layers)
        self._tree.show(resolution, keep_place=not self._is_new, nothing=("No layer yet", _NO_LAYER) if is_empty else None)
        if resolution.entries == self._entries:  # not what came back to front, before other words were taken
            self._is_new = is_empty
        if is_empty:
            self._layers.show_nothing("No layer yet", "a adds one")
            self._problems.show_empty("Nothing to check yet")
        if self._wanted_entry is not None:
            self._layers.go_to_entry(self._wanted_entry)
            self._wanted_entry = None
        self.say_words()
        if self.is_comparing:
            self._compare(keep_place=True)

    def _not_resolved(self, failure: Failure) -> None:
        if self._resolution is None:
            self._tree.show_failure(failure, "ctrl+r tries again")
            for pane in (self._layers, self._problems, self._why):
                pane.show_empty("Nothing was resolved")
        else:
            self._tree.show_stale("old")
            self._tree.set_heading(foot=failure.message)

    def action_resolve(self) -> None:
        """Resolve again: files may have changed."""
        self._resolve()

    def on_screen_resume(self, _event: events.ScreenResume) -> None:
        if self._resolution is not None and self._timer is None:
            self._resolve()

    def say_words(self) -> None:
        """The command that prints the tree, or in a diff the one that prints that."""
        if self.is_comparing:
            self._say_comparison()
            return
        redactor = self._resolution.view.masker.redactor if self._resolution is not None else Redactor()
        self.say_command(f"gym env resolve {words.shown_words(self._entries, redactor)}".rstrip())

    # Panes

    def panes_changed(self) -> None:
        self._tree.draw_again()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.call_after_refresh(self.panes_changed)
        if self.is_comparing and self._diff.comparison is not None:
            self.call_after_refresh(self._show_comparison, self._diff.comparison, True)

    def close_innermost(self) -> bool:
        return super().close_innermost() or self._leave_diff() or self._tree.close_innermost()

    @on(TreePane.Moved)
    def _follow(self, message: TreePane.Moved) -> None:
        message.stop()
        row = self._tree.row
        findings = [finding for finding in self._findings() if row is not None and self._is_at(finding, row.key)]
        self._why.show(row.entry if row is not None else None, findings, self._paths)

    def _findings(self) -> tuple[Finding, ...]:
        return self._resolution.findings if self._resolution is not None else ()

    def _is_at(self, finding: Finding, key: str) -> bool:
        tree = self._tree.tree_shown
        at = tree.nearest(finding.place.key) if finding.place is not None and finding.place.key else None
        return at is not None and tree.rows[at].key == key

    @on(VirtualList.Opened, "#tree-list")
    def _tree_opened(self, message: VirtualList.Opened) -> None:
        message.stop()
        if not self._tree.fold():
            self.action_from()

    @on(VirtualList.Opened, "#problems-list")
    def _problem_opened(self, message: VirtualList.Opened) -> None:
        message.stop()
        finding = self._problems.finding
        if finding is not None and self._go_to(finding):
            self.show_pane("tree")

    @on(VirtualList.Highlighted, "#problems-list")
    def _problem_highlighted(self, message: VirtualList.Highlighted) -> None:
        """The tree, and with it the pane of reasons, follows while somebody goes through the problems."""
        message.stop()
        finding = self._problems.finding
        if self._problems.rows_list.has_focus and finding is not None and finding.place is not None and finding.place.key:
            self._tree.go_to(finding.place.key)

    @on(VirtualList.Opened, "#layers-list")
    def _layer_opened(self, message: VirtualList.Opened) -> None:
        """Show what a layer sets."""
        message.stop()
        line = self._layers.line
        if line is not None and line.layer is not None and self._resolution is not None:
            self._tree.show_stage(READ)
            title = f"L{line.layer.number} {line.layer.title}"
            row = next((row for row in self._tree.tree_shown.rows if row.entry.path == (title,)), None)
            if row is not None:
                self._tree.go_to(row.key)
                self.show_pane("tree")
            else:
                self.workbench.tell(f"{line.title} sets nothing", "warning")

    def action_from(self) -> None:
        """Go to who set the value."""
        self.show_pane("why")

    def action_find(self) -> None:
        """Open the search of the tree."""
        self.show_pane("tree")
        self._tree.box.open()

    def action_step_stage(self, by: int) -> None:
        """The next or the previous stage."""
        self._tree.step_stage(by)

    def action_changed_only(self) -> None:
        """Only what the stage changed, or all keys."""
        self._tree.show_changed_only(not self._tree.changed_only)

    def action_step_problem(self, by: int) -> None:
        """Go to the next or previous problem, and to its key."""
        finding = self._problems.step(by)
        if finding is None:
            self.workbench.tell("there is no problem")
        else:
            self._go_to(finding)

    def _go_to(self, finding: Finding) -> bool:
        """Put the tree's cursor on the key of a finding; where it has none, say where it is."""
        place = finding.place
        if place is not None and place.key and self._tree.go_to(place.key):
            return True
        self.workbench.tell(f"no key in this stage: {finding}".split("\n")[0])
        return False

    # Editing

    def action_add(self) -> None:
        """Add flags, overrides or a file; in the problems what mends the one under the cursor is there already."""
        fix = self._problems.finding.fix if self._problems.rows_list.has_focus and self._problems.finding is not None else None
        self._ask_for_more(fix if fix is not None and fix.startswith(("-", "+")) else "")

    def _ask_for_more(self, text: str) -> None:
        self._look_up_names()
        self._ask(text, lambda added: (*self._entries, *added), lambda added: len(self._entries) + len(added) - 1)

    def action_change(self) -> None:
        """Change the words of the layer under the cursor; in the tree, set the key under the cursor by an override."""
        if self._tree.rows_list.has_focus and self._tree.row is not None:
            try:
                word = words.override_of(self._tree.row.entry, self._tree.tree_shown.name)
            except GymError as error:
                self.workbench.tell(str(error), "warning")
                return
            self._ask_for_more(word)
            return
        index = self._entry_under_cursor("changed")
        if index is None:
            return
        if words.has_secret(self._entries[index]):
            self.workbench.tell("this holds a key, which belongs in env.yaml", "warning")
            return
        self._look_up_names()

        def changed(new: tuple[Entry, ...]) -> tuple[Entry, ...]:
            return (*self._entries[:index], *new, *self._entries[index + 1 :])

        self._ask(self._entries[index].text, changed, lambda _new: index)

    def _ask(
        self, text: str, change: Callable[[tuple[Entry, ...]], tuple[Entry, ...]], cursor: Callable[[tuple[Entry, ...]], int]
    ) -> None:
        def plan(typed: str) -> Callable[[], object]:
            new = words.typed_entries(typed)
            entries, at = change(new), cursor(new)
            return lambda: self._edit(entries, at)

        command = self.workbench.complete_command
        self.workbench.ask_line(plan, lambda typed: complete_words(typed, self._known, command), text)

    def _look_up_names(self) -> None:
        if not self._known.names:

            def done(names: tuple[tuple[str, str], ...]) -> None:
                self._known = replace(self._known, names=names)

            self.background.start("names", component_names, done=done, failed=lambda _failure: None)

    @on(LayerList.Toggled)
    def _toggle(self, message: LayerList.Toggled) -> None:
        message.stop()
        index = self._entry_under_cursor("switched off")
        if index is not None:
            self._edit(words.toggled(self._entries, index), index)

    def action_move_layer(self, by: int) -> None:
        """Let a layer win over the next one of its kind, or lose to the previous one."""
        index = self._entry_under_cursor("moved")
        if index is not None:
            self._edit(words.moved(self._entries, index, by), words.position_after_move(self._entries, index, by))

    def action_remove(self) -> None:
        """Take the words of the layer under the cursor away."""
        index = self._entry_under_cursor("removed")
        if index is not None:
            self._edit(self._entries[:index] + self._entries[index + 1 :])

    def _entry_under_cursor(self, what: str) -> int | None:
        """The entry of the layer under the cursor; None, and why, when the layer comes from elsewhere."""
        line = self._layers.line
        if (
            self._timer is not None
            and line is not None
            and (self._resolution is None or self._resolution.entries != self._entries)
        ):
            self.workbench.tell("in a moment: this is being resolved")
            return None
        if line is not None and line.entry is not None:
            return line.entry
        self.workbench.tell(_why_not(line, what), "warning")
        return None

    # What can be done with it

    def action_edit_file(self) -> None:
        """Open the file that the cursor is about in the editor, at its line; resolve again afterwards."""
        file, line = self._place_under_cursor()
        if not file:
            self.workbench.tell("no file wrote this down", "warning")
            return
        path = Path(file).absolute()
        if not os.path.isfile(path):
            raise GymError(f"{file} is not there any more")
        run_outside(self.app, "editor", opening(editor_command(), path, line))
        self._resolve()

    def _place_under_cursor(self) -> tuple[str, int | None]:
        focused = self.current_pane()
        if focused is self._layers and (layer := self._layers.line) is not None:
            return (str(layer.layer.file), None) if layer.layer is not None and layer.layer.file else ("", None)
        if focused is self._problems and (finding := self._problems.finding) is not None:
            place = finding.place
            return (place.file or "", place.line) if place is not None and place.line is not None else ("", None)
        origin = self._why.origin
        return (origin.file or "", origin.line) if origin is not None else ("", None)

    def chosen_words(self) -> tuple[str, ...]:
        return tuple(words.run_words(self._entries))

    def action_run(self) -> None:
        """Put a run with the same words on the command line."""
        kept = words.run_words(self._entries)
        self.workbench.prefill_command(shlex.join(["eval", "run", *kept]) + " ")

    def thing_to_copy(self) -> tuple[str, str] | None:
        """The key path; of a problem what mends it, of a layer its words, in a diff the whole diff."""
        if self.is_comparing:
            return self._diff.as_text(), "the diff"
        focused = self.current_pane()
        if focused is self._problems and (finding := self._problems.finding) is not None:
            return (finding.fix, "the fix") if finding.fix else (str(finding), "the problem")
        if focused is self._layers and (line := self._layers.line) is not None:
            return line.title, "the layer"
        if focused is self._why and (text := self._why.block_text()):
            return text, "the line"
        row = self._tree.row
        return (row.entry.key, "the key") if row is not None else None


def _why_not(line: LayerLine | None, what: str) -> str:
    """Why a layer that is in no word cannot be changed here."""
    if line is None or line.layer is None:
        return "there is no layer under the cursor"
    layer = line.layer
    if layer.included_by:
        return f"L{layer.number} is included by L{layer.included_by}, and cannot be {what} by itself"
    reasons = {
        "default": "defaults only fill gaps",
        "env_file": "env.yaml is always read",
        "stand_in": "--no-model brings these in",
    }
    return f"L{layer.number} cannot be {what}: {reasons.get(layer.kind, 'a config_paths names it')}"
