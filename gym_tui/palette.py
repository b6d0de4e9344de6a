"""The palette: everything that has a name, by fuzzy search. Labels are ours or cleaned, and never markup."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, cast

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider, SearchIcon
from textual.content import Content
from textual.fuzzy import FuzzySearch

from backend.cli.commands import COMMANDS
from backend.errors import GymError
from backend.io.text import clean_line
from gym_tui.screen_table import SCREENS
from screens.widgets import glyphs
from screens.widgets.key_table import SCOPES

if TYPE_CHECKING:
    from gym_tui.app import WorkbenchApp

_MOST_RUNS = 500
_SECONDS_FOR_RUNS = 3.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that can be chosen: what is searched and shown, and what it does."""

    label: str
    do: Callable[[], object]


class Palette(CommandPalette):
    """Textual's palette with signs of one cell."""

    DEFAULT_CSS = """
    Palette {
        & > Vertical { background: $surface; }
        & #--input { border: hkey $foreground 30%; }
        & CommandList { border-bottom: hkey $foreground 30%; }
        & SearchIcon { color: $text-accent; }
    }
    """

    def on_mount(self) -> None:
        self.query_one(SearchIcon).icon = glyphs.current().cursor


class WorkbenchProvider(Provider):
    """Finds among entries that are collected once, when the palette opens."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self._entries: list[Entry] = []
        self._fuzzy = FuzzySearch()

    @property
    def workbench(self) -> WorkbenchApp:
        return cast("WorkbenchApp", self.app)

    async def discover(self) -> Hits:
        for entry in self._entries:
            yield DiscoveryHit(Content(entry.label), self.workbench.guarded(entry.do), text=entry.label)

    async def search(self, query: str) -> Hits:
        for entry in self._entries:
            score, positions = self._fuzzy.match(query, entry.label)
            if score > 0:
                shown = Content(entry.label)  # Textual's own highlighting reads labels as markup
                for position in positions:
                    shown = shown.stylize(self.match_style or "underline", position, position + 1)
                yield Hit(score, shown, self.workbench.guarded(entry.do), text=entry.label)


class VerbProvider(WorkbenchProvider):
    """Screens, themes, commands, and every key that does something here."""

    async def startup(self) -> None:
        self._entries = list(_verbs(self.workbench))


class RunProvider(WorkbenchProvider):
    """The runs below the folder of the workbench."""

    async def startup(self) -> None:
        root = self.workbench.root
        stop = False

        def find() -> list[Entry]:
            from backend.rollouts.run_list import find_runs

            runs = islice(find_runs(root, go_on=lambda: not stop), _MOST_RUNS)
            return [_opening(self.workbench, run.paths.rollouts) for run in runs]

        try:
            async with asyncio.timeout(_SECONDS_FOR_RUNS):
                self._entries = await asyncio.to_thread(find)
        except (TimeoutError, GymError):
            pass  # the palette does without them
        finally:
            stop = True


def _opening(app: WorkbenchApp, path: object) -> Entry:
    from pathlib import Path

    file = Path(str(path))
    return Entry(f"open: {clean_line(app.shown_path(file))}", lambda: app.open_path(file))


def _verbs(app: WorkbenchApp) -> Iterator[Entry]:
    for entry in SCREENS:
        yield Entry(f"screen: {entry.title}: {entry.summary}", _call(app.open_screen, entry.name))
    for command in COMMANDS:
        if command.path != ("tui",):
            words = " ".join(command.path)
            yield Entry(f"run: gym {words}: {command.summary}", _call(app.prefill_command, f"gym {words} "))
    yield Entry("open: a file or a folder", _call(app.prefill_command, "open "))
    for key, action, node in app.reachable_keys():
        shown = app.shown_keys(key.name)
        keys = f" ({shown})" if shown else ""
        yield Entry(f"{SCOPES[key.scope]}: {key.help}{keys}", _call(app.run_action_soon, action, node))
    for theme in sorted(app.available_themes):
        yield Entry(f"theme: {theme}", _call(app.choose_theme, theme))


def _call(function: Callable[..., object], *arguments: object) -> Callable[[], object]:
    return lambda: function(*arguments)
