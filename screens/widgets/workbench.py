"""What a screen may ask of the program around it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from textual.message_pump import MessagePump

from screens.widgets.free_output import free_output


@dataclass(frozen=True, slots=True)
class Target:
    """What a screen is asked to show: a run or a file, and where in it."""

    path: Path
    task: int | None = None
    rollout: int | None = None
    line: int | None = None
    """1-based line of the rollouts file."""
    words: tuple[str, ...] = ()
    """Flags and overrides of a configuration, as `gym env resolve` takes them."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One way on for a line that is being typed: the whole text with it, and what the list of completions shows."""

    text: str
    shown: str
    help: str = ""


def first_run(taken: Callable[[str], bool] = os.path.exists) -> str:
    """A command for somebody who has no run yet: it needs no key and no address, and replaces nothing."""
    words = "eval run --benchmark first_steps --model-type llama_cpp_model --split benchmark --output"
    return f"{words} {free_output('first_steps', taken)}"


class Workbench(Protocol):
    """The workbench, as its screens see it."""

    root: Path
    """The folder below which runs are looked for; paths are shown relative to it."""

    def clock(self) -> float:
        """Seconds since the epoch."""

    def open_screen(self, name: str, target: Target | None = None) -> None:
        """Bring a screen to the front, and tell it what to show."""

    def start_command(self, words: Sequence[str], folder: str | None = None) -> None:
        """Start `gym <words>` as a job of its own that outlives the workbench, in `folder` where that is not the working directory."""

    def prefill_command(self, text: str, folder: str | None = None) -> None:
        """Open the command line with a text to be completed or confirmed; the command will run in `folder`."""

    def ask_line(
        self, plan: Callable[[str], Callable[[], object]], complete: Callable[[str], list[Completion]], text: str = ""
    ) -> None:
        """Open a line at the bottom for something to be typed.

        `plan` gives what is to be done with a line, or raises `GymError`, and then the line stays open.
        """

    def complete_command(self, text: str) -> list[Completion]:
        """What the command line would complete `text` to."""

    def chosen_words(self) -> tuple[str, ...]:
        """The flags and overrides that are chosen in Config, for a command that takes a configuration; empty when nothing is."""

    def copy_text(self, text: str, what: str) -> None:
        """Put text on the terminal's clipboard, or in a file where that fails; says where it went."""

    def write_text(self, text: str, name: str) -> None:
        """Write text to a new file in the working directory, named after `name`; says where it went."""

    def tell(self, text: str, severity: str = "information") -> None:
        """A notice: a toast that is also kept in the jobs drawer; `severity` is information, warning or error."""

    def draw_frame(self) -> None:
        """Draw tabs, jobs and keys of the screen in front anew; how much of them is shown depends on the terminal's width."""

    def begin_work(self) -> None:
        """Raise the count of what is going on, before it begins."""

    def end_work(self) -> None:
        """Lower it again."""

    def shown_path(self, path: Path) -> str:
        """A path as it is written on screen: relative to the root where that is shorter."""


def workbench_of(node: MessagePump) -> Workbench:
    """The workbench around a widget or a screen."""
    return cast(Workbench, node.app)
