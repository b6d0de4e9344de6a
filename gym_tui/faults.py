"""What happens when the workbench itself is at fault: a report in a file, and a window or one line that names it."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Static

from backend.errors import GymError
from backend.io.redact import Redactor
from backend.package_info import GYM_TUI_VERSION
from gym_tui.private_files import home_relative, keep_private
from screens.widgets.text_gate import MUTED, safe
from screens.widgets.workbench import workbench_of

_LONGEST_MESSAGE = 400


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: what a person reads, and the file with the details; None when none could be written."""

    message: str
    report: Path | None

    @property
    def line(self) -> str:
        """All in one line, for the terminal after the workbench is gone."""
        where = f"; the details are in {self.report}" if self.report else ""
        return " ".join(f"the workbench had a fault of its own: {self.message}{where}".split())


def record_fault(error: BaseException) -> Fault:
    """Write the traceback of `error`, with known forms of secrets masked, to a file of the user's."""
    mask = Redactor().text
    message = mask(f"{type(error).__name__}: {error}")[:_LONGEST_MESSAGE]
    details = "".join(traceback.format_exception(error))
    try:
        report = keep_private("faults", "fault", mask(f"gym-tui {GYM_TUI_VERSION}\n\n{details}"))
    except GymError:
        report = None
    return Fault(message, report)


class FaultWindow(Screen[bool]):
    """Covers the whole screen, because what is below may be what cannot be drawn. Its result: whether to go on."""

    BINDINGS: ClassVar = [
        Binding("y", "copy_fault", "Copy"),
        Binding("enter,r", "go_on", "Open the screen anew"),
        Binding("q,escape,ctrl+q", "give_up", "Quit"),
    ]
    DEFAULT_CSS = """
    FaultWindow {
        align: center middle;
        background: $background;
        & > Vertical { border: round $error; border-title-color: $text-error; width: 90%; max-width: 100; height: auto; padding: 1 2; }
        & Static { height: auto; margin-bottom: 1; }
        & #keys { color: $text-muted; margin-bottom: 0; }
    }
    """

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.fault = fault

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = "A fault of the workbench"
        with box:
            yield Static(safe(self.fault.message), markup=False)
            if self.fault.report is not None:
                yield Static(safe(f"details: {home_relative(self.fault.report)}", MUTED), markup=False)
            yield Static("Runs and jobs are not touched by this.", markup=False)
            yield Static("y copies this   enter opens the screen anew   q leaves", id="keys", markup=False)

    def action_copy_fault(self) -> None:
        workbench_of(self).copy_text(self.fault.line, "the fault")

    def action_go_on(self) -> None:
        self.dismiss(True)

    def action_give_up(self) -> None:
        self.dismiss(False)
