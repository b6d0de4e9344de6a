"""The Textual application: it puts the screens together and gives them what they ask for."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from textual import events
from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.driver import Driver
from textual.filter import LineFilter, Monochrome, NoColor
from textual.screen import Screen
from textual.scrollbar import ScrollBar, ScrollBarRender

from backend.errors import ExitCode, GymError
from gym_tui.clipboard import copy_out, masked_command
from gym_tui.export import write_new
from gym_tui.faults import Fault, FaultWindow, record_fault
from gym_tui.job_keeper import JobKeeper
from gym_tui.private_files import home_relative
from gym_tui.screen_table import SCREENS, ScreenEntry
from gym_tui.settings import Settings, remember_theme
from gym_tui.start import first_view
from gym_tui.terminal import hung_up
from gym_tui.themes import CYCLE, DEFAULT, OWN
from gym_tui.typed_ahead import TypedAhead
from screens.widgets import glyphs
from screens.widgets.frame import Part
from screens.widgets.key_table import KEYS, SCOPES, Key, bindings, keys_of
from screens.widgets.text_gate import safe_line
from screens.widgets.workbench import Completion, Target
from screens.widgets.workbench_screen import WorkbenchScreen

_NOTICES = 200
_MOST_FAULTS = 5
_NO_COLOR, _MONOCHROME = NoColor(), Monochrome()
_BLANK = "blank"
"""A mode of nothing, to be in while a broken screen is replaced."""
_TERMINAL_LOOK_SECONDS = 0.5
_KEY_NAMES = {"up": "up", "down": "down", "left": "left", "right": "right", "enter": "enter", "backspace": "backspace"}
"""For terminals without signs for them."""


class WorkbenchApp(App[None], inherit_bindings=False):
    """The workbench. `clock` gives seconds since the epoch; tests pass a fixed one, and `screens` of their own."""

    TITLE = "gym"
    CSS = """
    VirtualList:ansi:nocolor > .list--cursor { text-style: reverse; }
    VirtualText:ansi:nocolor > .virtual-text--cursor { text-style: reverse; }
    Toast { max-width: 80%; padding: 0 1; }
    """
    BINDINGS = [*bindings("app"), Binding("ctrl+c", "help_quit", show=False, system=True)]  # noqa: RUF012 - the type is Textual's
    ENABLE_COMMAND_PALETTE = False
    """Textual's own key for it; ours is in the key table."""

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float] = time.time,
        *,
        screens: Sequence[ScreenEntry] = SCREENS,
        driver_class: type[Driver] | None = None,
    ) -> None:
        super().__init__(driver_class)
        self.settings = settings
        self.screens = screens
        self.root = settings.path if settings.path.is_dir() else settings.path.parent
        self.working_folder = Path.cwd()
        self.notices: list[tuple[float, str, str]] = []
        """What was told: time, severity, text; the last few hundred."""
        self.faults: list[Fault] = []
        self.typed_ahead = TypedAhead(self)
        self.jobs = JobKeeper(self)
        self.lost: Callable[[], object] = partial(self.exit, return_code=int(ExitCode.TERMINATED))
        """Called when nobody is at the other end of the terminal any more."""
        self._clock = clock
        self._work = 0
        self._ascii_filter: list[LineFilter] = []
        self._typed: Any = None
        self.add_mode(_BLANK, Screen)
        for entry in screens:
            self.add_mode(entry.name, entry.factory())
        for theme in OWN:
            self.register_theme(theme)
        self.theme = settings.theme if settings.theme in self.available_themes else DEFAULT
        self._use_ascii(settings.ascii)
        if settings.keymap:
            self.set_keymap(settings.keymap)

    @property
    def idle(self) -> bool:
        """Whether no screen waits for a result; endless following does not count."""
        return self._work == 0

    @property
    def front(self) -> Screen[Any]:
        """The screen of the present mode, whatever is open above it."""
        return self.screen_stack[0]

    def on_mount(self) -> None:
        name, target = self.settings.first_screen, Target(self.settings.path)
        if not name:
            name, target = first_view(self.settings.path)
        self.open_screen(name, target)
        if not self.is_headless and sys.__stdin__ is not None:
            self.set_interval(_TERMINAL_LOOK_SECONDS, partial(self._look_at_terminal, sys.__stdin__.fileno()))
        self.call_after_refresh(self.jobs.begin)

    def _look_at_terminal(self, descriptor: int) -> None:
        """A terminal that is closed does not always say so by a signal; reading from it would keep a core busy."""
        if hung_up(descriptor):
            self.lost()

    def late_failure(self, context: dict[str, Any]) -> None:
        """What asyncio could tell nobody: kept in a report, because the terminal is not the place for it."""
        error = context.get("exception")
        if isinstance(error, Exception):
            self.faults.append(record_fault(error))

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and not event.is_forwarded and self.typed_ahead.keeps(event):
            return
        await super().on_event(event)

    # What screens ask for

    def clock(self) -> float:
        return self._clock()

    def begin_work(self) -> None:
        self._work += 1

    def end_work(self) -> None:
        self._work -= 1

    def open_screen(self, name: str, target: Target | None = None) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.switch_mode(name)
        screen = self.screen
        if isinstance(screen, WorkbenchScreen):
            if target is not None:
                screen.call_after_refresh(screen.show_target, target)
            screen.call_after_refresh(self.draw_frame)

    def open_path(self, path: Path) -> None:
        """Show a folder, a run or a file in the screen that is made for it."""
        try:
            self.open_screen(*first_view(path))
        except GymError as error:
            self.tell(str(error), "error")

    def start_command(self, words: Sequence[str], folder: str | None = None) -> None:
        self.jobs.start(words, Path(folder) if folder is not None else None)

    def prefill_command(self, text: str, folder: str | None = None) -> None:
        from gym_tui.command_line import CommandLine, History
        from gym_tui.verbs import plan

        self._typed = self._typed or History()
        here = self.working_folder
        place = here / folder if folder is not None else here
        complete = partial(self.complete_command, folder=place)
        away = place if place != here else None
        shown = home_relative(place) if away else ""
        line = CommandLine(partial(plan, self, folder=away), complete, self._typed, text, shown)
        self.push_screen(line, self._do)

    def ask_line(
        self, plan: Callable[[str], Callable[[], object]], complete: Callable[[str], list[Completion]], text: str = ""
    ) -> None:
        from gym_tui.command_line import CommandLine, History

        self.push_screen(CommandLine(plan, complete, History(), text), self._do)

    def complete_command(self, text: str, folder: Path | None = None) -> list[Completion]:
        from gym_tui.completion import completions

        names = [entry.name for entry in self.screens]
        return completions(text, screens=names, themes=sorted(self.available_themes), folder=folder or self.working_folder)

    def _do(self, action: Callable[[], object] | None) -> None:
        if action is not None:
            self.guarded(action)()

    def chosen_words(self) -> tuple[str, ...]:
        config = next(iter(self._screen_stacks.get("config", [])), None)
        return config.chosen_words() if isinstance(config, WorkbenchScreen) else ()

    def copy_text(self, text: str, what: str) -> None:
        if what.endswith("command"):
            text = masked_command(text)
        self.tell(copy_out(self, text, what))

    def copy_to_clipboard(self, text: str) -> None:
        """What Textual's widgets copy, such as a selection."""
        self._clipboard = text
        self.tell(copy_out(self, text, "the selection"))

    def write_text(self, text: str, name: str) -> None:
        self._write(partial(write_new, text, name, ".txt", folder=self.working_folder))

    def tell(self, text: str, severity: str = "information") -> None:
        self.notices.append((self.clock(), severity, text))
        del self.notices[:-_NOTICES]
        self.notify(safe_line(text).plain, severity=severity, markup=False)  # type: ignore[arg-type]

    def shown_path(self, path: Path) -> str:
        try:
            return str(path.relative_to(self.root))
        except ValueError:
            pass
        relative = os.path.relpath(path, self.root)
        return relative if len(relative) < len(str(path)) else str(path)

    # The frame

    def draw_frame(self) -> None:
        """Draw tabs, jobs and keys of the screen in front."""
        screen = self.front
        if isinstance(screen, WorkbenchScreen) and screen.is_mounted:
            screen.draw_frame(self._tabs(screen), self.jobs.parts())

    def _tabs(self, screen: WorkbenchScreen) -> tuple[Part, ...]:
        narrow = self.size.width < 100
        parts = [Part(" gym ", "label")]
        for entry in self.screens:
            here = entry.name == screen.SCREEN_NAME
            digit = self.get_key_display(Binding(keys_of(f"app.{entry.name}", self._keymap)[0], ""))
            text = f"{digit} {entry.title}" if here or not narrow else digit
            action = f"app.open_screen('{entry.name}')"
            parts.append(Part(f" [{text}] " if here else f"  {text}  ", "active" if here else "label", action, entry.summary))
        return tuple(parts)

    def get_key_display(self, binding: Binding) -> str:
        return (glyphs.is_ascii() and _KEY_NAMES.get(binding.key)) or super().get_key_display(binding)

    def shown_keys(self, name: str) -> str:
        """The keys that are bound to an entry of the key table now, for people."""
        action = next(key.action for key in KEYS if key.name == name)
        return " ".join(self.get_key_display(Binding(key, action)) for key in keys_of(name, self._keymap))

    def reachable_keys(self) -> list[tuple[Key, str, DOMNode]]:
        """The entries of the key table that do something where the focus is: with action and the node that has it."""
        focused = self.front.focused
        nodes: Iterable[DOMNode] = focused.ancestors_with_self if focused is not None else (self.front, self)
        entries = {key.name: key for key in KEYS}
        found: dict[str, tuple[Key, str, DOMNode]] = {}
        for node in nodes:
            for bound in node._bindings.key_to_bindings.values():
                for binding in bound:
                    if binding.id in entries and binding.id not in found:
                        found[binding.id] = (entries[binding.id], binding.action, node)
        return [found[name] for name in entries if name in found]

    # Faults of our own

    def guarded(self, do: Callable[[], object]) -> Callable[[], None]:
        """`do`, but with its failure told."""

        def run() -> None:
            try:
                do()
            except GymError as error:
                self.tell(str(error), "error")
            except Exception as error:
                self._take_fault(error)

        return run

    def run_action_soon(self, action: str, node: DOMNode) -> None:
        """Run an action of a node of the screen in front."""
        self.call_later(self.run_action, action, node)

    async def run_action(self, *arguments: Any, **options: Any) -> bool:
        """As Textual does, but a failing action does not end the application's message loop."""
        try:
            return await super().run_action(*arguments, **options)
        except GymError as error:
            self.tell(str(error), "error")
        except Exception as error:
            self._take_fault(error)
        return True

    def _handle_exception(self, error: Exception) -> None:
        """Called by Textual. What fails in the application's own message loop ends it, other faults end only the widget they are in."""
        from textual._context import active_message_pump

        self._take_fault(error, fatal=active_message_pump.get(None) is self)

    def _take_fault(self, error: Exception, *, fatal: bool = False) -> None:
        """Write a report, and show a window instead of Textual's traceback; when that is not possible, the end says where the report is."""
        if self.is_headless:
            super()._handle_exception(error)
            return
        self.faults.append(record_fault(error))
        if fatal or not self._running or len(self.faults) > _MOST_FAULTS:
            self._return_code = 1
            self._close_messages_no_wait()
        elif not any(isinstance(screen, FaultWindow) for screen in self.screen_stack):
            self.call_later(self.push_screen, FaultWindow(self.faults[-1]), self._after_fault)

    async def _after_fault(self, go_on: bool | None) -> None:
        if not go_on:
            self.exit(return_code=1)
            return
        broken = self.current_mode
        entry = next((each for each in self.screens if each.name == broken), None)
        if entry is None:
            self.exit(return_code=1)
            return
        self.switch_mode(_BLANK)
        await self.remove_mode(broken)
        self.add_mode(broken, entry.factory())
        self.open_screen(broken, Target(self.settings.path))

    # Actions of the key table

    def action_open_screen(self, name: str) -> None:
        self.open_screen(name)

    def action_command_palette(self) -> None:
        from gym_tui.palette import Palette, RunProvider, VerbProvider

        if not isinstance(self.screen, Palette):
            self.push_screen(
                Palette(
                    (VerbProvider, RunProvider),
                    placeholder="screen, theme, run, open, or any key's action",
                    id="--command-palette",
                )
            )

    def action_command_line(self) -> None:
        self.prefill_command("")

    def action_help(self) -> None:
        self.show_help()

    def show_help(self, word: str = "") -> None:
        """All keys, or those about a word."""
        from gym_tui.help_screen import HelpScreen
        from gym_tui.settings import shown_key_file

        focused = self.front.focused
        nodes = list(focused.ancestors_with_self) if focused is not None else [self.front]
        about = next((str(node.HELP) for node in nodes if getattr(node, "HELP", None)), "")
        here = list(dict.fromkeys(key.scope for key, _, node in self.reachable_keys() if node is not self))
        own = [scope for scope in here if scope != "screen"]
        scopes = list(dict.fromkeys([*own, "screen", "app", *SCOPES]))
        shown = {key.name: self.shown_keys(key.name) for key in KEYS}
        self.push_screen(HelpScreen(about, scopes, shown, shown_key_file(), word))

    def action_jump(self) -> None:
        from gym_tui.jump import JumpOverlay, places

        screen = self.front
        if isinstance(screen, WorkbenchScreen):
            found = places(screen, lambda action: self.run_action_soon(action, screen))
            self.push_screen(JumpOverlay(found), self._do)

    def action_jobs(self) -> None:
        self.jobs.toggle_drawer()

    def on_jobs_drawer_closed(self) -> None:
        self.jobs.close_drawer()

    def action_next_theme(self) -> None:
        index = CYCLE.index(self.theme) if self.theme in CYCLE else -1
        self.choose_theme(CYCLE[(index + 1) % len(CYCLE)])

    def choose_theme(self, name: str) -> None:
        """Use a theme from now on, and remember it."""
        self.theme = name
        try:
            remember_theme(name)
        except GymError as error:
            self.tell(f"theme {name}, but it is not remembered: {error.message}", "warning")
        else:
            self.tell(f"theme {name}")

    def action_write_picture(self) -> None:
        self.write_picture("")

    def write_picture(self, name: str) -> None:
        """Write what is on screen to an SVG file."""
        screen = self.front
        stem = screen.SCREEN_NAME if isinstance(screen, WorkbenchScreen) else "screen"
        self._write(lambda: write_new(self.export_screenshot(), stem, ".svg", name=name, folder=self.working_folder))

    def write_screen(self, name: str) -> None:
        """Write the text of the screen in front to a file."""
        screen = self.front
        if isinstance(screen, WorkbenchScreen):
            text, stem = screen.text_to_write(), screen.SCREEN_NAME
            self._write(lambda: write_new(text, stem, ".txt", name=name, folder=self.working_folder))

    def _write(self, write: Callable[[], Path]) -> None:
        try:
            self.tell(f"wrote {write()}")
        except GymError as error:
            self.tell(str(error), "error")

    def action_leave(self) -> None:
        self.exit()

    def action_help_quit(self) -> None:
        keys = self.shown_keys("app.quit").split(" ")[0]
        self.tell(f"{keys} leaves; ctrl+c copies selected text")

    # ASCII

    def draw_ascii(self, on: bool) -> None:
        """Draw with ASCII characters only from now on, or not."""
        self._use_ascii(on)
        self.refresh_css(animate=False)
        for node in self.screen.walk_children(with_self=True):
            node.refresh(layout=True)
        self.draw_frame()

    def _use_ascii(self, on: bool) -> None:
        from gym_tui.ascii_drawing import AsciiFilter, PlainScrollBar

        glyphs.use(glyphs.ASCII if on else glyphs.UNICODE)
        ScrollBar.renderer = PlainScrollBar if on else ScrollBarRender
        self._ascii_filter = [AsciiFilter()] if on else []
        self.set_class(on, "-ascii")

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Without colours, what a theme needs: Textual chooses before the theme is known, and would draw the terminal's own black on black."""
        filters = [each for each in super().get_line_filters() if not isinstance(each, Monochrome | NoColor)]
        if self.no_color:
            filters.append(_NO_COLOR if self.native_ansi_color else _MONOCHROME)
        return [*filters, *self._ascii_filter]
