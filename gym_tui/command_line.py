"""The command line at the bottom: one line with completion above it. A wrong command says why, and nothing typed is lost."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from backend.errors import GymError
from screens.widgets.columns import Column
from screens.widgets.key_table import bindings
from screens.widgets.text_gate import safe_line
from screens.widgets.virtual_list import Cell, Row, VirtualList
from screens.widgets.workbench import Completion

_MOST_ROWS = 8
_KEPT_LINES = 200


@dataclass(slots=True)
class History:
    """Lines that were typed in this session, oldest first."""

    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Remember a line; one that is repeated moves to the end."""
        if line in self.lines:
            self.lines.remove(line)
        self.lines.append(line)
        del self.lines[:-_KEPT_LINES]


class CommandInput(Input):
    """The line itself."""

    BINDINGS = bindings("command")
    HELP = "Command line: `tab` completes, `up` and `down` bring back earlier lines, `enter` runs, `esc` closes."
    DEFAULT_CSS = "CommandInput, CommandInput:focus { border: none; height: 1; padding: 0; background: transparent; width: 1fr; }"

    class Asked(Message):
        """A key of the line was pressed: `complete`, `earlier`, `later` or `close`."""

        def __init__(self, what: str) -> None:
            super().__init__()
            self.what = what

    def action_complete(self) -> None:
        self.post_message(self.Asked("complete"))

    def action_earlier(self) -> None:
        self.post_message(self.Asked("earlier"))

    def action_later(self) -> None:
        self.post_message(self.Asked("later"))

    def action_close(self) -> None:
        self.post_message(self.Asked("close"))


class _CompletionRows:
    """The completions as rows."""

    def __init__(self, found: Sequence[Completion]) -> None:
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    def row(self, index: int) -> Row:
        return Row((Cell(self._found[index].shown, "accent"), Cell(self._found[index].help, "muted")))

    def key(self, index: int) -> Hashable:
        return self._found[index].text

    def index_of(self, key: Hashable) -> int | None:
        return next((index for index, each in enumerate(self._found) if each.text == key), None)


class CommandLine(ModalScreen[Callable[[], object] | None]):
    """`plan` gives what a line asks for, or raises `GymError`; `complete` gives completions. The result is what is to be done.

    `place` is the folder in which a command will run, when that is worth saying. A line that is longer than the terminal is wide
    is also shown whole.
    """

    DEFAULT_CSS = """
    CommandLine {
        background: transparent;
        & > Vertical { dock: bottom; height: auto; background: $surface; }
        & VirtualList { height: auto; display: none; }
        & #message { display: none; color: $text-error; padding: 0 1; height: auto; max-height: 4; }
        & #whole { display: none; color: $text-muted; padding: 0 2; height: auto; max-height: 6; }
        & Horizontal { height: 1; }
        & #sign { width: 2; color: $text-accent; text-style: bold; }
    }
    """

    def __init__(
        self,
        plan: Callable[[str], Callable[[], object]],
        complete: Callable[[str], list[Completion]],
        history: History,
        text: str = "",
        place: str = "",
    ) -> None:
        super().__init__()
        self._plan = plan
        self._complete = complete
        self._history = history
        self._text = text
        self._place = place
        self._draft = text
        self._at: int | None = None
        """Which line of the history is shown; None for the one being typed."""
        self._found: list[Completion] = []
        self._chosen: int | None = None
        """Which completion `tab` has put into the line."""

    def compose(self) -> ComposeResult:
        with Vertical():
            yield VirtualList([Column("word", "", 30), Column("help", "")], id="found", header=False)
            yield Static(id="message", markup=False)
            yield Static(id="whole", markup=False)
            with Horizontal():
                yield Static(":", id="sign", markup=False)
                yield CommandInput(self._text, select_on_focus=False, id="line")

    def on_mount(self) -> None:
        self.query_one("#found", VirtualList).can_focus = False
        self._line.focus()
        self._look_up(self._text)
        self.call_after_refresh(self._to_the_end)

    def _to_the_end(self) -> None:
        """An input scrolls to its cursor only when that moves, and only when it has its size."""
        self._line.cursor_position = 0
        self._line.cursor_position = len(self._line.value)

    def on_resize(self) -> None:
        self._show_whole(self._line.value)

    @property
    def _line(self) -> CommandInput:
        return self.query_one("#line", CommandInput)

    @property
    def message(self) -> str:
        """What the line says is wrong; for tests."""
        said = self.query_one("#message", Static)
        return str(said.content) if said.display else ""

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._say("")
        self._look_up(event.value)
        self._show_whole(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip().removeprefix(":").strip()
        if not text:
            self.dismiss(None)
            return
        try:
            action = self._plan(text)
        except GymError as error:
            self._say(f"{error.message}. {error.hint}" if error.hint else error.message)
            return
        self._history.add(text)
        self.dismiss(action)

    @on(CommandInput.Asked)
    def _asked(self, message: CommandInput.Asked) -> None:
        message.stop()
        if message.what == "close":
            self.dismiss(None)
        elif message.what == "complete":
            self._next_completion()
        else:
            self._step(-1 if message.what == "earlier" else 1)

    @on(VirtualList.Opened)
    @on(VirtualList.Highlighted)
    def _picked(self, message: VirtualList.Highlighted) -> None:
        message.stop()
        if isinstance(message, VirtualList.Opened) and message.index < len(self._found):
            self._put(self._found[message.index].text, keep_found=False)

    def _look_up(self, text: str) -> None:
        self._found = self._complete(text)
        self._chosen = None
        rows = self.query_one("#found", VirtualList)
        rows.show(_CompletionRows(self._found), keep_place=False)
        rows.display = bool(self._found)
        rows.styles.height = min(_MOST_ROWS, len(self._found), max(1, self.size.height - 6))

    def _next_completion(self) -> None:
        """`tab`: the common beginning of all completions, or one after the other."""
        if not self._found:
            return
        if len(self._found) == 1:
            self._put(self._found[0].text, keep_found=False)
            return
        common = _common_beginning([each.text.rstrip() for each in self._found])
        if self._chosen is None and len(common) > len(self._line.value):
            self._put(common, keep_found=False)
            return
        self._chosen = 0 if self._chosen is None else (self._chosen + 1) % len(self._found)
        self.query_one("#found", VirtualList).move_to(self._chosen)
        self._put(self._found[self._chosen].text.rstrip(), keep_found=True)

    def _step(self, step: int) -> None:
        lines = self._history.lines
        if not lines:
            return
        if self._at is None:
            if step > 0:
                return
            self._draft = self._line.value
            self._at = len(lines)
        self._at += step
        if self._at >= len(lines):
            self._at = None
            self._put(self._draft, keep_found=False)
        else:
            self._at = max(0, self._at)
            self._put(lines[self._at], keep_found=False)

    def _put(self, text: str, *, keep_found: bool) -> None:
        with self.prevent(Input.Changed):
            self._line.value = text
        self._line.cursor_position = len(text)
        self._say("")
        self._show_whole(text)
        if not keep_found:
            self._look_up(text)

    def _say(self, text: str) -> None:
        said = self.query_one("#message", Static)
        said.update(safe_line(text))
        said.display = bool(text)

    def _show_whole(self, text: str) -> None:
        whole = self.query_one("#whole", Static)
        too_long = cell_len(text) + 4 > self.size.width
        parts = [f"in {self._place}" if self._place else "", text if too_long else ""]
        said = Content("\n").join(safe_line(part) for part in parts if part)
        whole.update(said)
        whole.display = bool(said.plain)


def _common_beginning(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)
    size = next((index for index, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[:size]
