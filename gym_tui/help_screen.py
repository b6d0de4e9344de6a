"""Help: what the focused widget says of itself, and all keys as they are bound now, with a search."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen
from textual.widgets import Static

from screens.widgets.columns import Column, place
from screens.widgets.filter_box import FilterBox
from screens.widgets.key_table import KEYS, SCOPES, Key
from screens.widgets.pane import Pane
from screens.widgets.text_gate import safe
from screens.widgets.virtual_list import Cell, Row, VirtualList


@dataclass(frozen=True, slots=True)
class HelpLine:
    """One line: a heading (without keys), or a key with what it does and its id."""

    what: str
    keys: str = ""
    name: str = ""


def help_lines(scopes: Sequence[str], shown_keys: Mapping[str, str], word: str = "") -> list[HelpLine]:
    """All keys that match `word`, by scope in the order of `scopes`; `shown_keys` gives the keys that are bound now, by id."""
    lines: list[HelpLine] = []
    for scope in scopes:
        matching = [key for key in KEYS if key.scope == scope and _matches(key, shown_keys[key.name], word)]
        if matching:
            lines.append(HelpLine(SCOPES[scope]))
            lines += [HelpLine(key.help, shown_keys[key.name], key.name) for key in matching]
    return lines


def _matches(key: Key, shown: str, word: str) -> bool:
    texts = (key.help, key.label, key.name, shown, SCOPES[key.scope])
    return all(any(part in text.lower() for text in texts) for part in word.lower().split())


_COLUMNS = (Column("keys", "KEY", 16), Column("what", "WHAT IT DOES"), Column("id", "ID", 24, keep=1))


class _HelpRows:
    def __init__(self, lines: Sequence[HelpLine] = ()) -> None:
        self._lines = lines

    def what(self, index: int) -> str:
        """What the key of a row does."""
        return self._lines[index].what

    def __len__(self) -> int:
        return len(self._lines)

    def row(self, index: int) -> Row:
        line = self._lines[index]
        if not line.name:
            return Row(("", Cell(line.what, "strong"), ""))
        return Row((Cell(line.keys, "accent"), line.what, Cell(line.name, "muted")))

    def key(self, index: int) -> Hashable:
        return self._lines[index].name or self._lines[index].what

    def index_of(self, key: Hashable) -> int | None:
        return next((index for index, line in enumerate(self._lines) if key == (line.name or line.what)), None)


class HelpScreen(ModalScreen[None]):
    """`about` is the focused widget's own help; scopes come in the order in which they matter here."""

    BINDINGS: ClassVar = [
        Binding("escape,q,question_mark,f1", "leave_help", show=False),
        Binding("slash", "search", show=False),
    ]
    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        background: $background 60%;
        &:ansi { background: transparent; }
        & > Pane { width: 90%; max-width: 110; height: 85%; background: $surface; }
        & #about { height: auto; max-height: 6; padding: 0 2; color: $text-muted; display: none; }
        & #whole { height: auto; padding: 0 2; display: none; }
        & #file { height: auto; padding: 0 2; color: $text-muted; }
    }
    """

    def __init__(self, about: str, scopes: Sequence[str], shown_keys: Mapping[str, str], key_file: str, word: str = "") -> None:
        super().__init__()
        self._about = about
        self._scopes = scopes
        self._shown_keys = shown_keys
        self._key_file = key_file
        self._word = word

    def compose(self) -> ComposeResult:
        with Pane("Help", id="help"):
            yield FilterBox("search the keys", id="search", anew=True)
            yield Static(safe(self._about.replace("`", "")), id="about", markup=False)
            yield VirtualList(_COLUMNS, id="keys")
            yield Static(id="whole", markup=False)
            yield Static(
                safe(f'other keys: {self._key_file}, for instance\n[keys]\n"app.quit" = "ctrl+x"'), id="file", markup=False
            )

    def on_mount(self) -> None:
        self.query_one("#about").display = bool(self._about)
        self.query_one("#file").display = self.size.height >= 24
        self._show(self._word)
        if self._word:
            box = self.query_one(FilterBox)
            box.value = self._word
            box.add_class("-open")
        self.query_one("#keys").focus()

    def _show(self, word: str) -> None:
        lines = help_lines(self._scopes, self._shown_keys, word)
        number = sum(bool(line.name) for line in lines)
        pane = self.query_one(Pane)
        pane.set_heading(right=f"{number} of {len(KEYS)} keys", foot="/ searches   esc closes")
        rows = self.query_one("#keys", VirtualList)
        rows.show(_HelpRows(lines), keep_place=False)
        rows.display = bool(lines)
        if not lines:
            self.query_one("#whole").display = False

    @on(VirtualList.Highlighted, "#keys")
    def _show_whole(self, message: VirtualList.Highlighted) -> None:
        """What does not fit into the list's line stands below it as well."""
        rows, whole = message.list.rows, self.query_one("#whole", Static)
        room = next((each.width for each in place(_COLUMNS, message.list.size.width) if each.column.name == "what"), 0)
        text = rows.what(message.index) if isinstance(rows, _HelpRows) and message.index < len(rows) else ""
        whole.display = cell_len(text) > room
        whole.update(safe(text))

    @on(FilterBox.Filtered)
    def _filtered(self, message: FilterBox.Filtered) -> None:
        message.stop()
        self._show(message.text)

    @on(FilterBox.Left)
    def _left(self, message: FilterBox.Left) -> None:
        message.stop()
        self.query_one("#keys").focus()

    def action_search(self) -> None:
        self.query_one(FilterBox).open()

    def action_leave_help(self) -> None:
        if not self.query_one(FilterBox).clear_and_close():
            self.dismiss(None)
