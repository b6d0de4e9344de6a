"""The Results screen: the runs below a folder, narrowed and sorted, and what is known of the one under the cursor."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.containers import Container
from textual.reactive import var
from textual.widget import Widget

from backend.errors import GymError
from backend.rollouts.run_entry import NO_RECORD, RUNNING, RunEntry
from backend.rollouts.run_list import RunCache
from backend.rollouts.run_query import SORT_KEYS, sort_runs
from screens.results.detail_pane import DetailPane
from screens.results.finding import Batch, Found, look_again, run_key, search
from screens.results.prefill import Prefill, go_on, run_again
from screens.results.run_filter import Matches, matching_runs, nearest_names
from screens.results.run_rows import COLUMNS, SORTABLE, RunRows, shared_folder
from screens.widgets import formatting
from screens.widgets.background import Failure
from screens.widgets.filter_box import FilterBox
from screens.widgets.key_table import bindings
from screens.widgets.pane import Pane, PaneState
from screens.widgets.virtual_list import VirtualList
from screens.widgets.workbench import Target, first_run
from screens.widgets.workbench_screen import WorkbenchScreen

LOOK_SECONDS = 2.0
ORDERS = ("age", "score", "name", "failed", "state")
"""What the sort key goes through; the columns' titles offer more."""


class ResultsScreen(WorkbenchScreen):
    """The run list. It looks for runs in a thread, again and again while it is in front; nothing here waits for a disk."""

    SCREEN_NAME = "results"
    PANES = ("runs", "detail")
    KEY_BAR = ("list.open", "results.filter", "results.sort", "results.again", "results.resume", "screen.next_pane")
    BINDINGS = bindings("results")
    DEFAULT_CSS: ClassVar[str] = """
    ResultsScreen {
        & #runs { height: 5fr; }
        & #detail { height: 4fr; }
        & #runs.-message > #runs-filter.-open { display: block; }
        &.-narrow #split Pane { height: 1fr; }
    }
    """

    order = var("age")
    upside_down = var(False)

    def __init__(self) -> None:
        super().__init__()
        self._place = Path()
        """What was asked for: a folder, or a run in it."""
        self._folder = Path()
        self._runs: dict[str, RunEntry] = {}
        self._matches = Matches([])
        self._filter = ""
        self._filter_problem = ""
        self._cache = RunCache()
        self._searching = False
        self._failure: Failure | None = None
        """Why the last search failed: what is shown stays old until one ends well."""
        self._folders = 0
        self._looks_left = 0
        """How often only running runs are looked at until all are searched for again."""
        self._wanted: str | None = None
        """Key of the run that the cursor is to be put on."""
        self._moved = False
        """Whether the cursor stays on its run: somebody has put it there, or all runs are known."""

    def compose_body(self) -> Iterable[Widget]:
        with Container(id="split"):
            with Pane("Runs", id="runs", classes="-solo -current"):
                yield FilterBox("words, state:died, model:…, score<0.5, age<2h", id="runs-filter")
                yield VirtualList(COLUMNS, id="runs-list")
            yield DetailPane(id="detail", classes="-solo")

    def on_mount(self) -> None:
        self._list.show_order(self.order, descending=True)
        self._search(self.workbench.root)
        self.set_interval(LOOK_SECONDS, self._look)
        self._list.focus()

    def on_screen_resume(self, _event: events.ScreenResume) -> None:
        if self._place != Path() and not self._searching:
            self._search(self._place)

    def show_target(self, target: Target) -> None:
        """List the runs below a folder, or those around a run, which gets the cursor."""
        if target.path != self._place:
            self._runs = {}
            self._moved = False
            self._failure = None
            self._runs_pane.show_ready()
            self._search(target.path)
            self._arrange()

    @property
    def _list(self) -> VirtualList:
        return self.query_one("#runs-list", VirtualList)

    @property
    def _runs_pane(self) -> Pane:
        return self.query_one("#runs", Pane)

    @property
    def _detail(self) -> DetailPane:
        return self.query_one("#detail", DetailPane)

    @property
    def _current(self) -> RunEntry | None:
        key = self._list.cursor_key
        return self._runs.get(key) if isinstance(key, str) else None

    # Finding

    def _search(self, place: Path) -> None:
        root, cache, now = self.workbench.root, self._cache, self.workbench.clock()
        self._place = place
        self._searching = True
        self._folders = 0
        self.background.start(
            "search",
            lambda reporter: search(place, root, cache, now, reporter),
            done=self._found,
            failed=self._not_searched,
            partly=self._found_some,
        )
        self._draw()

    def _found_some(self, batch: Batch) -> None:
        self._folders = batch.folders
        if self._runs_pane.state is PaneState.LOADING or not self._moved:
            self._runs.update((run_key(run), run) for run in batch.runs)
            self._arrange()
        else:
            self._draw()

    def _found(self, found: Found) -> None:
        self._searching = False
        self._failure = None
        self._folder = found.folder
        self._folders = found.folders
        self._wanted = None if self._moved else found.wanted
        self._looks_left = int(found.rest_seconds / LOOK_SECONDS)
        self._runs = {run_key(run): run for run in found.runs}
        self._arrange()
        self._moved = True
        self.say_command(shlex.join(["gym", "list", "runs", _from_here(found.folder)]))

    def _not_searched(self, failure: Failure) -> None:
        self._searching = False
        self._failure = failure
        self._looks_left = 0  # the next look is a whole search: only that says that all is well again
        self._draw()
        self._detail.follow(self._current)

    def _look(self) -> None:
        """The regular look while somebody can see the screen: at running runs, and now and then for all."""
        if self._searching or not self.is_current or not self.app.app_focus or self._place == Path():
            return
        if self._looks_left > 0:
            self._looks_left -= 1
            runs, now = tuple(self._runs.values()), self.workbench.clock()
            if any(run.state == RUNNING for run in runs) and not self.background.works_on("look"):
                self.background.start(
                    "look", lambda reporter: look_again(runs, now, reporter), done=self._looked, failed=self._not_searched
                )
        else:
            self._search(self._place)

    def _looked(self, runs: tuple[RunEntry, ...]) -> None:
        self._runs.update((run_key(run), run) for run in runs if run_key(run) in self._runs)
        self._arrange()

    # The list

    def _arrange(self) -> None:
        """Filter and sort what there is, and show it; the cursor stays on its run."""
        now = self.workbench.clock()
        ordered = sort_runs(self._runs.values(), self.order, reverse=self.upside_down)
        try:
            self._matches = matching_runs(ordered, self._filter, now)
            self._filter_problem = ""
        except GymError as error:
            self._filter_problem = f"{error.message}; {error.hint}" if error.hint else error.message
            self._matches = _without_mistake(ordered, self._filter, now)
        folder = shared_folder(self._runs.values())
        rows = RunRows(self._matches.runs, now, self._matches.words, fuzzy=self._matches.fuzzy, folder=folder)
        key = self._list.cursor_key
        self._list.show(rows, keep_place=self._moved and key is not None and rows.index_of(key) is not None)
        if self._wanted is not None and self._list.move_to_key(self._wanted):
            self._moved = True
            self._wanted = None
        self._draw()
        self._detail.follow(self._current)

    def _draw(self) -> None:
        """The state of the list's pane, and what its border says."""
        pane = self._runs_pane
        runs, shown = len(self._runs), len(self._matches.runs)
        if self._failure is not None and not runs:
            pane.show_failure(self._failure, "ctrl+r tries again")
        elif self._failure is not None and shown:
            pane.show_stale("old")
        elif shown:
            pane.show_ready()
            if self._searching and not self._moved:
                pane.show_loading(f"{formatting.count(self._folders)} folders", keep=True)
        elif runs and not shown:
            near = nearest_names(list(self._runs.values()), self._filter)
            nearest = f"nearest: {', '.join(near)}" if near else ""
            pane.show_empty(f"No run matches {self._filter}", formatting.joined((nearest, "esc clears the filter"), "\n"))
        elif not runs and not self._searching:
            pane.show_empty(f"No runs below {_named(self._folder)}", "r puts a first one on the command line")
        elif pane.state in (PaneState.READY, PaneState.LOADING):
            pane.show_loading(f"Looking for runs below {_named(self._place)} … {formatting.count(self._folders)} folders")
        folder = shared_folder(self._runs.values()).rstrip("/")
        pane.set_heading(f"Runs in {folder}" if folder else "Runs", self._counted(shown, runs), self._foot())

    def _counted(self, shown: int, runs: int) -> str:
        count = f"{formatting.count(shown)} of {formatting.count(runs)}" if self._filter else formatting.count(runs)
        order = SORT_KEYS[self.order].title
        return f"{count} · {order}{', reversed' if self.upside_down else ''}"

    def _foot(self) -> str:
        if self._filter_problem:
            return self._filter_problem
        if self._failure is not None and self._runs:
            return self._failure.message
        if self._matches.fuzzy and self._matches.runs:
            return "no run has these words: shown are those with their letters"
        return "esc clears the filter" if self._filter else ""

    @on(FilterBox.Filtered, "#runs-filter")
    def _filter_typed(self, message: FilterBox.Filtered) -> None:
        message.stop()
        if message.text.strip() != self._filter:
            self._filter = message.text.strip()
            self._arrange()

    @on(FilterBox.Left, "#runs-filter")
    def _filter_left(self, message: FilterBox.Left) -> None:
        message.stop()
        self.call_after_refresh(self._list.focus)

    @on(VirtualList.HeaderClicked, "#runs-list")
    def _header_clicked(self, message: VirtualList.HeaderClicked) -> None:
        message.stop()
        if message.column not in SORTABLE:
            return
        self._sort_by(message.column, not self.upside_down if message.column == self.order else False)

    def action_sort(self) -> None:
        """The next order."""
        index = ORDERS.index(self.order) if self.order in ORDERS else -1
        self._sort_by(ORDERS[(index + 1) % len(ORDERS)], False)

    def action_reverse(self) -> None:
        """The same order the other way round."""
        self._sort_by(self.order, not self.upside_down)

    def _sort_by(self, order: str, upside_down: bool) -> None:
        self.order, self.upside_down = order, upside_down
        self._list.show_order(order, descending=SORT_KEYS[order].descending != upside_down)
        self._arrange()

    def action_filter(self) -> None:
        """Open the filter."""
        self.show_pane("runs")
        self.query_one("#runs-filter", FilterBox).open()

    def action_rescan(self) -> None:
        """Search again now, and read the details again."""
        self._search(self._place)
        self._detail.read_again()

    def close_innermost(self) -> bool:
        if super().close_innermost():
            return True
        if self.query_one("#runs-filter", FilterBox).clear_and_close():
            self._list.focus()
            return True
        return False

    @on(VirtualList.Highlighted, "#runs-list")
    def _highlighted(self, message: VirtualList.Highlighted) -> None:
        message.stop()
        self._moved = self._moved or self._list.cursor > 0
        self._detail.follow(self._current)

    # What can be done with a run

    @on(VirtualList.Opened, "#runs-list")
    def _opened(self, message: VirtualList.Opened) -> None:
        message.stop()
        run = self._current
        if run is not None:
            self._open(run, "rollouts" if run.state == RUNNING else "viewer")

    def action_open(self) -> None:
        """Open the run under the cursor, wherever the focus is."""
        self._list.action_open()

    def action_live(self) -> None:
        """Follow the run, or look at how it went."""
        run = self._current
        if run is None:
            self._no_run()
        elif run.state == NO_RECORD:
            self.workbench.tell(f"{run.name} has no run folder with events; v reads its rollouts", "warning")
        else:
            self._open(run, "rollouts")

    def action_read(self) -> None:
        """Read the run's rollouts."""
        run = self._current
        if run is None:
            self._no_run()
        else:
            self._open(run, "viewer")

    def _open(self, run: RunEntry, screen: str) -> None:
        self.workbench.open_screen(screen, Target(run.paths.rollouts))

    def action_again(self) -> None:
        """Put the run's command on the command line, with another output."""
        run = self._current
        if run is None:
            self.workbench.prefill_command(first_run())
        else:
            taken = frozenset(self._runs)
            self._prefill(run_again(run, lambda path: path in taken))

    def action_resume(self) -> None:
        """Put the command that continues the run on the command line."""
        run = self._current
        if run is None:
            self._no_run()
            return
        prefill = go_on(run)
        if prefill is None:
            self.workbench.tell(f"{run.name}: {_why_not_resumed(run)}", "warning")
        else:
            self._prefill(prefill)

    def _prefill(self, prefill: Prefill) -> None:
        for remark in prefill.remarks:
            self.workbench.tell(remark, "warning")
        self.workbench.prefill_command(prefill.text, prefill.folder)

    def _no_run(self) -> None:
        self.workbench.tell("there is no run under the cursor", "warning")

    def thing_to_copy(self) -> tuple[str, str] | None:
        """In the list the run's path; in the detail the part under the cursor."""
        run = self._current
        if run is None:
            return None
        if self._detail.text.has_focus and (part := self._detail.part_under_cursor()) is not None:
            return part
        return str(run.paths.rollouts), "the path"


def _from_here(folder: Path) -> str:
    """A folder as it is named in a command that is typed here."""
    try:
        return str(folder.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(folder.absolute())


def _without_mistake(runs: list[RunEntry], text: str, now: float) -> Matches:
    """What the filter lets pass without its last term, which is usually the one that is being typed; else all runs."""
    try:
        return matching_runs(runs, text.rpartition(" ")[0], now)
    except GymError:
        return Matches(runs)


def _named(folder: Path) -> str:
    name = _from_here(folder)
    return "this folder" if name == "." else name


def _why_not_resumed(run: RunEntry) -> str:
    if run.state == RUNNING:
        return "it is still running"
    if run.command and run.scored is not None and not run.missing and not run.failed:
        return "nothing of it is left to be run"
    return "it left no plan that could be continued"
