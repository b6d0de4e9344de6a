"""Jump: a letter on each pane, tab and key; pressing it goes there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen
from textual.widgets import Static

from screens.widgets.frame import FrameLine
from screens.widgets.text_gate import one_line
from screens.widgets.workbench_screen import WorkbenchScreen

LETTERS = "asdfghjklqwertyuiopzxcvbnm"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a letter stands, in cells of the screen, and what it does."""

    x: int
    y: int
    go: Callable[[], object]


def places(screen: WorkbenchScreen, run: Callable[[str], object]) -> list[Place]:
    """What one can jump to on a screen: panes first, then what the frame offers; `run` runs an action by its name."""
    found = []
    for pane in screen.panes():
        if pane.region.area and pane.id:
            found.append(Place(pane.region.x + 1, pane.region.y, _going_to(screen, pane.id)))
    for line in screen.query(FrameLine):
        if line.region.area:
            found += _frame_places(line, run)
    return found[: len(LETTERS)]


def _going_to(screen: WorkbenchScreen, name: str) -> Callable[[], object]:
    return lambda: screen.show_pane(name)


def _running(run: Callable[[str], object], action: str) -> Callable[[], object]:
    return lambda: run(action)


def _frame_places(line: FrameLine, run: Callable[[str], object]) -> list[Place]:
    found: list[Place] = []
    taken: set[str] = set()
    width = line.size.width
    right = sum(cell_len(one_line(part.text)) for part in line.right)
    for parts, at, end in ((line.left, 0, width - right), (line.right, width - right, width)):
        for part in parts:
            if part.action and part.action not in taken and at < end:
                taken.add(part.action)
                found.append(Place(line.region.x + at, line.region.y, _running(run, part.action)))
            at += cell_len(one_line(part.text))
    return found


class JumpOverlay(ModalScreen[Callable[[], object] | None]):
    """The letters above the screen. The result is what the pressed letter does."""

    BINDINGS: ClassVar = [Binding("escape,ctrl+o", "leave_jump", show=False)]
    DEFAULT_CSS = """
    JumpOverlay {
        background: transparent;
        & > Static { position: absolute; width: 3; height: 1; background: $accent; color: $background; text-style: bold; }
        &:ansi > Static { text-style: bold reverse; background: ansi_default; color: ansi_default; }
        &:nocolor > Static { text-style: bold reverse; }
    }
    """

    def __init__(self, found: Sequence[Place]) -> None:
        super().__init__()
        self._letters = dict(zip(LETTERS, found, strict=False))

    def compose(self) -> ComposeResult:
        for letter, place in self._letters.items():
            label = Static(f" {letter} ", markup=False)
            label.styles.offset = (max(0, place.x), max(0, place.y))
            yield label

    def on_key(self, event: events.Key) -> None:
        place = self._letters.get(event.character or "")
        if place is not None:
            event.stop()
            self.dismiss(place.go)

    def on_click(self, event: events.Click) -> None:
        event.stop()
        hit = next(
            (each for each in self._letters.values() if each.y == event.screen_y and each.x <= event.screen_x < each.x + 3), None
        )
        self.dismiss(hit.go if hit else None)

    def action_leave_jump(self) -> None:
        self.dismiss(None)
