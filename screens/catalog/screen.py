"""The Catalog screen: every component of the search folders, found as somebody types, and what is known of the one under the cursor."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.containers import Container
from textual.reactive import var
from textual.widget import Widget

from backend.catalog.entries import Catalog, CatalogEntry
from backend.catalog.kinds import KINDS
from backend.catalog.query import parse_query
from backend.errors import GymError
from backend.io.roots import EXTRA_ROOTS_VARIABLE, search_roots
from backend.rollouts.run_list import RunCache
from screens.catalog.arranging import (
    ORDERS,
    Arrangement,
    Component,
    ComponentKey,
    Wish,
    arranged,
    component_key,
    nearest_names,
)
from screens.catalog.component_rows import COLUMNS, SORTABLE, ComponentRows, chips
from screens.catalog.detail_blocks import Surroundings
from screens.catalog.detail_pane import DetailPane
from screens.catalog.finding import FoundRuns, Names, find_components, find_recent_runs
from screens.catalog.links import Jump, ShowRun, TypeCommand
from screens.catalog.picks import Picks, equal_command, picked, run_command
from screens.widgets import formatting
from screens.widgets.background import Failure
from screens.widgets.filter_box import FilterBox
from screens.widgets.frame import FrameLine
from screens.widgets.key_table import bindings
from screens.widgets.outside import editor_command, opening, pager_command, run_outside
from screens.widgets.pane import Pane
from screens.widgets.virtual_list import VirtualList
from screens.widgets.workbench import Target
from screens.widgets.workbench_screen import WorkbenchScreen

_MOST_JUMPS = 50


class CatalogScreen(WorkbenchScreen):
    """The catalogue. It is read in a thread; filtering and sorting happen at once, at every key."""

    SCREEN_NAME = "catalog"
    PANES = ("components", "detail")
    KEY_BAR = ("catalog.filter", "list.open", "list.mark", "catalog.run", "catalog.config", "screen.copy")
    BINDINGS = bindings("catalog")
    DEFAULT_CSS: ClassVar[str] = """
    CatalogScreen {
        & #split { layout: horizontal; }
        & #components.-message > #catalog-filter.-open { display: block; }
        & #components.-message > #chips { display: block; }
    }
    """

    wish = var(Wish())

    def __init__(self) -> None:
        super().__init__()
        self._components: tuple[Component, ...] = ()
        self._catalog: Catalog | None = None
        """None until files have been read."""
        self._reading = False
        self._failure: Failure | None = None
        """Why the last reading failed: what is shown stays old until one ends well."""
        self._asked = True
        """Whether somebody waits for what is being read."""
        self._roots: tuple[Path, ...] = ()
        self._arrangement = Arrangement()
        self._marked: list[ComponentKey] = []
        """In the order in which they were marked."""
        self._jumps: list[ComponentKey] = []
        """Where jumps began, the last one last."""
        self._wanted: ComponentKey | tuple[str, ...] | None = None
        """What the cursor is to be put on once it is there: a component, or one by the words that load it."""
        self._run_cache = RunCache()
        self._runs: FoundRuns | None = None
        self._runs_wanted = True
        """Whether runs are to be looked for as soon as somebody wants to know."""

    def compose_body(self) -> Iterable[Widget]:
        with Container(id="split"):
            with Pane("Components", id="components", classes="-solo -current"):
                yield FilterBox("letters of names, domain:math, status:broken, -word", id="catalog-filter")
                yield FrameLine(id="chips")
                yield VirtualList(COLUMNS, id="component-list", markable=True)
            yield DetailPane(self._surroundings, id="detail", classes="-solo")

    def on_mount(self) -> None:
        self._read()
        self._list.focus()

    def on_screen_resume(self, _event: events.ScreenResume) -> None:
        if self._catalog is not None and not self._reading:
            self._asked = False
            self._runs_wanted = True
            self._read()

    def show_target(self, target: Target) -> None:
        """Put the cursor on the component that the target's words load."""
        if target.words:
            self._wanted = target.words[:2]
            self._arrange()

    @property
    def _list(self) -> VirtualList:
        return self.query_one("#component-list", VirtualList)

    @property
    def _pane(self) -> Pane:
        return self.query_one("#components", Pane)

    @property
    def _detail(self) -> DetailPane:
        return self.query_one("#detail", DetailPane)

    @property
    def _current(self) -> Component | None:
        index = self._list.cursor
        shown = self._arrangement.shown
        return shown[index].entry if index < len(shown) else None

    @property
    def _entry(self) -> CatalogEntry | None:
        """The component under the cursor, once its files are read."""
        current = self._current
        return current if isinstance(current, CatalogEntry) else None

    # Reading

    def _read(self) -> None:
        self._reading = True
        roots = self._roots = self._detail.roots = search_roots(())
        self.background.start(
            "components",
            lambda reporter: find_components(roots, reporter),
            done=self._have_read,
            failed=self._not_read,
            partly=self._have_names,
        )
        self._draw()

    def _have_names(self, names: Names) -> None:
        if self._catalog is None:
            self._components = names.names
            self._arrange()

    def _have_read(self, catalog: Catalog) -> None:
        self._reading = False
        self._failure = None
        if catalog == self._catalog:
            self._draw()
            self._detail.surroundings_changed()
            return
        self._catalog = catalog
        self._components = catalog.entries
        there = set(map(component_key, catalog.entries))
        self._marked = [key for key in self._marked if key in there]
        self._list.marks = set(self._marked)
        self._arrange()
        self._detail.surroundings_changed()

    def _not_read(self, failure: Failure) -> None:
        self._reading = False
        self._failure = failure
        if self._catalog is None:
            self._components = ()
            self._arrange()
        else:
            self._draw()

    def _surroundings(self) -> Surroundings:
        """What the detail says of other components and of runs; the runs are looked for when somebody wants to know."""
        if self._runs_wanted and self._detail.tab == "links":
            self._look_for_runs()
        return Surroundings(self._components, self._runs, self.workbench.clock(), self.workbench.shown_path)

    def _look_for_runs(self) -> None:
        root, cache, now = self.workbench.root, self._run_cache, self.workbench.clock()
        self._runs_wanted = False
        self.background.start(
            "runs",
            lambda reporter: find_recent_runs(root, cache, now, reporter),
            done=self._have_runs,
            failed=lambda _failure: self._have_runs(FoundRuns((), True)),
        )

    def _have_runs(self, runs: FoundRuns) -> None:
        self._runs = runs
        self._detail.surroundings_changed()

    # The list

    def watch_wish(self, old: Wish, new: Wish) -> None:
        if old != new and self.is_mounted:
            by_text = old.text != new.text and bool(new.text)
            self._arrange(keep_place=not (by_text and new.order == "match"))

    def _arrange(self, *, keep_place: bool = True) -> None:
        """Filter and sort what there is, and show it; the cursor goes to the best match while somebody types, else it stays."""
        wish = self.wish
        self._arrangement = arranged(self._components, wish)
        self._list.show(ComponentRows(self._arrangement), keep_place=keep_place)
        self._list.show_order(wish.order if wish.order in SORTABLE else None, descending=wish.upside_down)
        self._go_to_wanted()
        self._draw()
        self._follow()

    def _go_to_wanted(self) -> None:
        wanted = self._wanted
        if wanted is None or self._catalog is None:
            return
        self._wanted = None
        key = next((component_key(entry) for entry in self._catalog.entries if (entry.flag, entry.selector) == wanted), wanted)
        if not self._list.move_to_key(key):
            self.workbench.tell(f"the catalogue has no {' '.join(key)}", "warning")

    def _follow(self) -> None:
        self._detail.follow(self._current)
        words = parse_query(self.wish.text).words if not self._arrangement.problem else ()
        self.say_command(equal_command(self._entry, self.wish.kind, words))

    def _draw(self) -> None:
        """The state of the list's pane, the chips, and what the border says."""
        pane, arrangement = self._pane, self._arrangement
        shown, total = len(arrangement.shown), len(self._components)
        is_known = self._failure is None or self._catalog is not None
        self.query_one("#chips", FrameLine).left = chips(arrangement, self.wish.kind, needy=self.wish.needy) if is_known else ()
        if self._failure is not None and not is_known:
            pane.show_failure(self._failure, "ctrl+r tries again")
        elif self._failure is not None and shown:
            pane.show_stale("old")
        elif shown:
            pane.show_ready()
            if self._reading and self._asked:
                pane.show_loading("reading", keep=True)
        elif total and not shown:
            near = nearest_names(self._components, self.wish.text)
            nearest = f"nearest: {', '.join(near)}" if near else ""
            pane.show_empty(self._nothing_passes(), formatting.joined((nearest, "esc shows all again"), "\n"))
        elif not total and not self._reading:
            folders = ", ".join(self.workbench.shown_path(root) for root in self._roots)
            pane.show_empty(f"No components below {folders}", f"{EXTRA_ROOTS_VARIABLE} names more folders to look in")
        elif not total:
            pane.show_loading("Looking for components …")
        pane.set_heading(right=self._counted(shown, total) if is_known else "", foot=self._foot())

    def _nothing_passes(self) -> str:
        wish = self.wish
        kind = KINDS[wish.kind].title if wish.kind else "component"
        which = " that needs something" if wish.needy else ""
        return f"No {kind}{which} matches {wish.text}" if wish.text else f"There is no {kind}{which}"

    def _counted(self, shown: int, total: int) -> str:
        wish = self.wish
        narrowed = wish.text or wish.kind or wish.needy
        count = f"{formatting.count(shown)} of {formatting.count(total)}" if narrowed else formatting.count(total)
        order = "kind" if wish.order == "match" and not self._arrangement.has_words else wish.order
        marked = f"{len(self._marked)} marked" if self._marked else ""
        return formatting.joined((marked, count, f"by {order}{', reversed' if wish.upside_down else ''}"), " · ")

    def _foot(self) -> str:
        if self._arrangement.problem:
            return self._arrangement.problem
        if self._failure is not None and self._catalog is not None:
            return self._failure.message
        warnings = self._catalog.warnings if self._catalog is not None else ()
        if self.wish.text or self.wish.kind or self.wish.needy:
            return "esc shows all again"
        return f"{formatting.count(len(warnings))} remarks: {warnings[0]}" if warnings else ""

    @on(FilterBox.Filtered, "#catalog-filter")
    def _filter_typed(self, message: FilterBox.Filtered) -> None:
        message.stop()
        self.wish = replace(self.wish, text=message.text.strip())

    @on(FilterBox.Left, "#catalog-filter")
    def _filter_left(self, message: FilterBox.Left) -> None:
        message.stop()
        self.call_after_refresh(self._list.focus)

    @on(VirtualList.HeaderClicked, "#component-list")
    def _header_clicked(self, message: VirtualList.HeaderClicked) -> None:
        message.stop()
        if message.column in SORTABLE:
            again = message.column == self.wish.order
            self.wish = replace(self.wish, order=message.column, upside_down=again and not self.wish.upside_down)

    @on(VirtualList.Highlighted, "#component-list")
    def _highlighted(self, message: VirtualList.Highlighted) -> None:
        message.stop()
        self._follow()

    @on(VirtualList.MarksChanged, "#component-list")
    def _marks_changed(self, message: VirtualList.MarksChanged) -> None:
        message.stop()
        marks = self._list.marks
        kept = [key for key in self._marked if key in marks]
        self._marked = [*kept, *(key for key in marks if isinstance(key, tuple) and key not in kept)]
        self._draw()

    def action_filter(self) -> None:
        """Open the filter."""
        self.show_pane("components")
        self.query_one("#catalog-filter", FilterBox).open()

    def action_choose_kind(self, kind: str) -> None:
        """Only components of one kind; the same one again, or none, for all."""
        self.wish = replace(self.wish, kind=kind if kind and kind != self.wish.kind else None)

    def action_next_kind(self) -> None:
        """The next kind that has something in it, and after the last one all."""
        kinds: list[str | None] = [None, *(kind for kind in KINDS if self._arrangement.counts.get(kind))]
        index = kinds.index(self.wish.kind) if self.wish.kind in kinds else 0
        self.wish = replace(self.wish, kind=kinds[(index + 1) % len(kinds)])

    def action_toggle_needy(self) -> None:
        """Only what cannot be used as it is, or all again."""
        self.wish = replace(self.wish, needy=not self.wish.needy)

    def action_sort(self) -> None:
        """The next order."""
        index = ORDERS.index(self.wish.order)
        self.wish = replace(self.wish, order=ORDERS[(index + 1) % len(ORDERS)], upside_down=False)

    def action_reverse(self) -> None:
        """The same order the other way round."""
        self.wish = replace(self.wish, upside_down=not self.wish.upside_down)

    def action_rescan(self) -> None:
        """Look again now, and read the details again."""
        self._pane.show_ready()
        self._runs_wanted = True
        self._asked = True
        self._read()
        self._detail.read_again()

    def close_innermost(self) -> bool:
        if super().close_innermost():
            return True
        if self._detail.text.has_focus:
            self.show_pane("components")
            return True
        narrowed = self.query_one("#catalog-filter", FilterBox).clear_and_close()
        if narrowed or self.wish != replace(self.wish, text="", kind=None, needy=False):
            self.wish = replace(self.wish, text="", kind=None, needy=False)
            self._list.focus()
            return True
        return False

    # The detail

    @on(VirtualList.Opened, "#component-list")
    def _opened(self, message: VirtualList.Opened) -> None:
        message.stop()
        if self._current is not None:
            self.show_pane("detail")

    def action_show_tab(self, tab: str) -> None:
        """Bring a tab of the detail to the front."""
        self._detail.show_tab(tab)

    def action_step_tab(self, step: int) -> None:
        """The next or the previous tab of the detail."""
        self._detail.step_tab(step)

    @on(DetailPane.Followed)
    def _followed(self, message: DetailPane.Followed) -> None:
        message.stop()
        link = message.link
        if isinstance(link, Jump):
            current = self._current
            if current is not None:
                self._jumps = [*self._jumps[-_MOST_JUMPS:], component_key(current)]
            self._jump(link.target)
        elif isinstance(link, ShowRun):
            self.workbench.open_screen("results", Target(link.rollouts))
        elif isinstance(link, TypeCommand):
            self.workbench.prefill_command(" ".join(link.words))

    def action_jump_back(self) -> None:
        """Back to the component from which the last jump went."""
        if self._jumps:
            self._jump(self._jumps.pop())
        else:
            self.workbench.tell("no jump to go back from", "warning")

    def _jump(self, key: ComponentKey) -> None:
        """Put the cursor on a component, and show all of them again where it is hidden."""
        if self._list.rows.index_of(key) is None:
            self.query_one("#catalog-filter", FilterBox).clear_and_close()
            self.wish = replace(self.wish, text="", kind=None, needy=False)
        if not self._list.move_to_key(key):
            self.workbench.tell(f"{key[1]} is not there any more", "warning")

    # What can be done with components

    def action_configure(self) -> None:
        """Open the picks in Config."""
        picks = self._picks()
        if picks is not None:
            self.workbench.open_screen("config", Target(Path.cwd(), words=picks.words))

    def action_run(self) -> None:
        """Put a command that evaluates the picks on the command line."""
        picks = self._picks()
        if picks is not None:
            self.workbench.prefill_command(run_command(picks, os.path.exists))

    def _picks(self) -> Picks | None:
        """What is marked, else what the cursor is on; None, with a word about it, when there is nothing that a command can load."""
        catalog = self._catalog
        if catalog is None or self._entry is None:
            self.workbench.tell("no component is under the cursor" if catalog else "components are still being read", "warning")
            return None
        by_key = {component_key(entry): entry for entry in catalog.entries}
        picks = picked([by_key[key] for key in self._marked] or [self._entry])
        for remark in picks.remarks:
            self.workbench.tell(remark, "warning")
        return picks if picks.entries else None

    def action_pager(self) -> None:
        """The file in the user's pager."""
        self._open_outside("pager")

    def action_editor(self) -> None:
        """The file in the user's editor; afterwards everything is read again."""
        if self._open_outside("editor"):
            self.action_rescan()

    def _open_outside(self, what: str) -> bool:
        found = self._detail.file_under_cursor()
        if found is None:
            self.workbench.tell("there is no file to open here", "warning")
            return False
        command = pager_command() if what == "pager" else editor_command()
        try:
            run_outside(self.app, what, opening(command, *found))
        except GymError as error:
            self.workbench.tell(str(error), "error")
            return False
        return True

    def thing_to_copy(self) -> tuple[str, str] | None:
        """In the list the selector of the component; in the detail the part under the cursor."""
        entry = self._entry
        if self._detail.text.has_focus and (part := self._detail.part_under_cursor()) is not None:
            return part
        if entry is None:
            return None
        words = picked([entry]).words
        return (" ".join(words), "the selector") if words else (str(entry.path), "the path")
