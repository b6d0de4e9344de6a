"""The pane that shows one component in four tabs; it follows the list's cursor a moment late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.message import Message
from textual.timer import Timer

from backend.catalog.entries import CatalogEntry
from screens.catalog.arranging import Component, component_key
from screens.catalog.detail_blocks import TABS, Surroundings, file_under, tab_blocks
from screens.catalog.links import Jump, Link, ShowRun, TypeCommand
from screens.catalog.reading import Reading, read_component
from screens.widgets.background import Background, Failure, Reported
from screens.widgets.frame import FrameLine, Part
from screens.widgets.pane import Pane
from screens.widgets.text_blocks import plain_text
from screens.widgets.virtual_text import VirtualText
from screens.widgets.workbench import workbench_of

DETAIL_SECONDS = 0.12


class DetailPane(Pane):
    """Details of a component, read in a thread; `follow` tells it of which."""

    DEFAULT_CSS = """
    DetailPane > #detail-text { padding: 0 0 0 1; }
    """

    class Followed(Message):
        """A link in the text was opened."""

        def __init__(self, link: Link) -> None:
            super().__init__()
            self.link = link

    def __init__(self, around: Callable[[], Surroundings], *, id: str, classes: str) -> None:
        super().__init__("Component", id=id, classes=classes)
        self.background = Background[Any](self)
        self.roots: Sequence[Path] = ()
        self.tab = next(iter(TABS))
        self.reading: Reading | None = None
        self._around = around
        self._wanted: Component | None = None
        self._shown: Component | None = None
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield FrameLine(id="detail-tabs")
        yield VirtualText(id="detail-text")

    def on_mount(self) -> None:
        self._draw_tabs()

    @property
    def text(self) -> VirtualText:
        """Where the details stand."""
        return self.query_one("#detail-text", VirtualText)

    def on_reported(self, message: Reported) -> None:
        self.background.receive(message)

    def on_unmount(self) -> None:
        self.background.stop_all()

    def follow(self, component: Component | None, why: str = "") -> None:
        """Show this component, when no other is wanted for a moment; None for nothing, and `why`."""
        wanted, self._wanted = self._wanted, component
        if component is None:
            self._show_nothing(why)
        elif component == self._shown:
            return
        elif self._timer is None:
            workbench_of(self).begin_work()
            self._timer = self.set_timer(DETAIL_SECONDS, self._begin)
        elif wanted is None or component_key(component) != component_key(wanted):
            self._timer.reset()

    def read_again(self) -> None:
        """Read the files of the component once more."""
        component, self._shown = self._wanted, None
        self.follow(component)

    def surroundings_changed(self) -> None:
        """Draw the text again, with what is known now of other components and of runs."""
        if self.reading is not None and self.tab == "links":
            self._show(keep=True)

    def show_tab(self, tab: str) -> None:
        """Bring one of the tabs to the front."""
        if tab != self.tab:
            self.tab = tab
            self._draw_tabs()
            self._show(keep=False)

    def step_tab(self, step: int) -> None:
        """The next tab, or the one before."""
        names = list(TABS)
        self.show_tab(names[(names.index(self.tab) + step) % len(names)])

    def part_under_cursor(self) -> tuple[str, str] | None:
        """The text of a part of the details, and what it is called."""
        blocks = self.text.blocks
        if self.reading is None or not blocks:
            return None
        block = blocks[self.text.cursor]
        path = file_under(self.reading, block.key)[0]
        file = next((file for file in self.reading.configs if file.path == path and block.key == ("file", str(path))), None)
        return (file.text if file else block.body or plain_text(block).strip()), block.head.strip().lower() or "the part"

    def file_under_cursor(self) -> tuple[Path, int | None] | None:
        """The file that a pager or an editor should open, and the line to begin with."""
        key = self.text.cursor_key if self.text.has_focus else None
        return file_under(self.reading, key, self.tab) if self.reading is not None else None

    @on(VirtualText.Chosen, "#detail-text")
    def _chosen(self, message: VirtualText.Chosen) -> None:
        message.stop()
        if isinstance(message.key, Jump | ShowRun | TypeCommand):
            self.post_message(self.Followed(message.key))

    def _begin(self) -> None:
        self._timer = None
        component = self._shown = self._wanted
        if component is not None:
            # The text of another component stays until this one's is there: a message in between would only flicker.
            self.show_loading(f"reading {component.name}", keep=self.reading is not None)
            if isinstance(component, CatalogEntry):
                entry, roots = component, self.roots
                self.background.start(
                    "details",
                    lambda reporter: read_component(entry, roots, lambda: reporter.cancelled),
                    done=self._read,
                    failed=self._not_read,
                )
        workbench_of(self).end_work()

    def _read(self, reading: Reading) -> None:
        same = self.reading is not None and component_key(self.reading.entry) == component_key(reading.entry)
        self.reading = reading
        self._show(keep=same)

    def _not_read(self, failure: Failure) -> None:
        self.reading = None
        self.show_failure(failure, "ctrl+r tries again")

    def _show(self, *, keep: bool) -> None:
        reading = self.reading
        if reading is not None:
            self.show_ready()
            entry = reading.entry
            self.set_heading(f"{entry.name} · {entry.described_kind.title}", entry.state, "o pager · O editor")
            self.text.set_blocks(tab_blocks(self.tab, reading, self._around()), keep_place=keep)

    def _show_nothing(self, why: str) -> None:
        self.background.stop("details")
        self._shown = self.reading = None
        self.show_empty(why or "No component under the cursor")
        self.set_heading("Component", "", "")

    def _draw_tabs(self) -> None:
        parts = [Part(" ")]
        for name, title in TABS.items():
            here = name == self.tab
            text = f"[{title}]" if here else f" {title} "
            parts.append(Part(text, "active" if here else "label", f"screen.show_tab('{name}')", f"the tab {title}"))
        self.query_one("#detail-tabs", FrameLine).left = tuple(parts)
