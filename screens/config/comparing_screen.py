"""The part of the Config screen that compares: stages of the configuration on screen, runs, files."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from backend.config.stages import READ
from backend.io.redact import Redactor
from screens.config import words
from screens.config.comparing import NOW, Comparison, compare_sides
from screens.config.completing import Known, complete_side, runs_below
from screens.config.diff_view import DiffView
from screens.config.resolving import Resolution
from screens.config.tree_pane import TreePane
from screens.config.words import Entry
from screens.widgets.key_table import KEYS
from screens.widgets.pane import Pane
from screens.widgets.workbench_screen import WorkbenchScreen

_DIFF_KEYS = ("configdiff.inline", "configdiff.all", "configdiff.next", "configdiff.swap", "config.side_a", "screen.back")
_DIFF_ACTIONS = frozenset(key.action.partition("(")[0] for key in KEYS if key.scope == "configdiff")


class ComparingScreen(WorkbenchScreen):
    """Shows a diff in place of its panes. Subclasses resolve, and say the words of the configuration with `say_words`."""

    def __init__(self) -> None:
        super().__init__()
        self._entries: tuple[Entry, ...] = ()
        self._resolution: Resolution | None = None
        self._known = Known()
        self._sides = (NOW, NOW)
        self._inline: bool | None = None
        """Whether a diff has one column; None for what fits."""
        self._all_keys = False

    def say_words(self) -> None:
        """Show the command that equals the screen."""

    @property
    def _tree(self) -> TreePane:
        return self.query_one("#tree", TreePane)

    @property
    def _diff(self) -> DiffView:
        return self.query_one("#config-diff", DiffView)

    @property
    def is_comparing(self) -> bool:
        """Whether a diff is on show."""
        return self._diff.display

    def panes(self) -> list[Pane]:
        return list(self._diff.panes) if self.is_comparing else super().panes()

    def key_bar(self) -> tuple[str, ...]:
        return _DIFF_KEYS if self.is_comparing else self.KEY_BAR

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In a diff its keys come before those of the tree that are the same."""
        return self.is_comparing if action in _DIFF_ACTIONS else super().check_action(action, parameters)

    def action_diff(self) -> None:
        """Compare the stage on show with the one before, or leave the diff."""
        if self._leave_diff() or self._resolution is None:
            return
        names = [tree.name for tree in self._resolution.trees if tree.name != READ]
        if len(names) < 2:
            self.workbench.tell("there are no two stages to compare; A and B choose sides", "warning")
            return
        at = max(1, names.index(self._tree.tree_shown.name) if self._tree.tree_shown.name in names else 0)
        self._sides = (names[at - 1], names[at] if at < len(names) - 1 else NOW)
        self._compare()

    def action_choose_side(self, side: int) -> None:
        """Ask for the left (0) or right (1) side: a stage, a run, a file, or arguments."""
        if not self._known.runs:
            root, here = self.workbench.root, Path.cwd()

            def done(runs: tuple[str, ...]) -> None:
                self._known = replace(self._known, runs=runs)

            self.background.start("runs", lambda reporter: runs_below(root, here, reporter), done=done, failed=lambda _: None)

        def plan(typed: str) -> Callable[[], object]:
            text = _unquoted(typed)
            sides = (text, self._sides[1]) if side == 0 else (self._sides[0], text)
            return lambda: self._compare(sides)

        command = self.workbench.complete_command
        self.workbench.ask_line(plan, lambda typed: complete_side(typed, self._known, command))

    def action_swap_sides(self) -> None:
        """Left becomes right."""
        self._compare((self._sides[1], self._sides[0]))

    def action_inline(self) -> None:
        """One column or two."""
        self._inline = not self._diff.inline
        if self._diff.comparison is not None:
            self._show_comparison(self._diff.comparison, True)

    def action_all_keys(self) -> None:
        """Also the keys that are equal, or not."""
        self._all_keys = not self._all_keys
        self._compare(keep_place=True)

    def action_step_change(self, by: int) -> None:
        """Go to the next or previous change."""
        if not self._diff.step(by):
            self.workbench.tell("no further change" if by > 0 else "no change before this one")

    def _compare(self, sides: tuple[str, str] | None = None, *, keep_place: bool = False) -> None:
        if self._resolution is None:
            return
        self._sides = sides = sides or self._sides
        opening = not self.is_comparing
        self._show_diff(True)
        if opening:
            self._diff.lists[0].focus()
        view, paths, all_keys = self._resolution.view, self._resolution.paths, self._all_keys
        self._diff.make_room(sides, inline=self._is_inline)
        self._diff.show_loading("comparing")
        self.background.start(
            "compare",
            lambda _reporter: compare_sides(sides, view, all_keys=all_keys, shown=paths.text),
            done=lambda comparison: self._show_comparison(comparison, keep_place),
            failed=self._diff.show_failure,
        )
        self._say_comparison()

    def _show_comparison(self, comparison: Comparison, keep_place: bool) -> None:
        self._diff.show(comparison, inline=self._is_inline, keep_place=keep_place)

    @property
    def _is_inline(self) -> bool:
        return self.has_class("-narrow") if self._inline is None else self._inline

    def _show_diff(self, shown: bool) -> None:
        """Change places without a class of the screen, for which all of it would be styled anew."""
        self._diff.display = shown
        self.query_one("#config-main").display = not shown
        self.draw_keys()

    def _leave_diff(self) -> bool:
        if not self.is_comparing:
            return False
        self.background.stop("compare")
        self._show_diff(False)
        self._tree.rows_list.focus()
        self.say_words()
        return True

    def _say_comparison(self) -> None:
        redactor = self._resolution.view.masker.redactor if self._resolution is not None else Redactor()
        named = [words.shown_words(self._entries, redactor) if side == NOW else side for side in self._sides]
        stages = {tree.name for tree in self._resolution.trees} if self._resolution is not None else set()
        if stages.isdisjoint(self._sides):
            self.say_command(shlex.join(["gym", "env", "diff", *named]))
        else:
            self.say_command(note="compares stages of this configuration; this view starts nothing")


def _unquoted(typed: str) -> str:
    """A path or stage as it was meant when it was quoted for a shell as one word; several words stay as typed."""
    try:
        split = shlex.split(typed)
    except ValueError:
        return typed
    return split[0] if len(split) == 1 else typed
