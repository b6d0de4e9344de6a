"""The base of all screens: the frame, panes, zoom, narrow terminals, background work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from screens.widgets.background import Background, Reported
from screens.widgets.frame import CommandEcho, FrameLine, Part, parts_that_fit
from screens.widgets.key_table import bindings, key_named
from screens.widgets.pane import Pane
from screens.widgets.virtual_list import VirtualList
from screens.widgets.virtual_text import VirtualText
from screens.widgets.workbench import Target, Workbench, workbench_of

LEAST_WIDTH, LEAST_HEIGHT = 60, 16


class WorkbenchScreen(Screen[None]):
    """A screen with its frame. Subclasses give `compose_body` and react to `show_target`.

    In narrow terminals panes with the class `-solo` are shown one at a time: the one with the class `-current`.
    """

    BINDINGS = bindings("screen")
    AUTO_FOCUS = ""
    """Each screen focuses a list of its own. Textual would take the first widget as soon as it is there: a filter box that is not hidden yet."""
    SCREEN_NAME: ClassVar[str] = ""
    KEY_BAR: ClassVar[tuple[str, ...]] = ()
    """Ids of at most six keys for the bottom row."""
    PANES: ClassVar[tuple[str, ...]] = ()
    """Ids of the panes in the order in which `tab` visits them; the screen has the class `-show-<id>` of the last one shown."""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - the type is Textual's
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]  # noqa: RUF012
    DEFAULT_CSS = """
    WorkbenchScreen {
        background: $background;
        & > #body { height: 1fr; }
        & > #too-small { display: none; height: 1fr; content-align: center middle; }
        &.-narrow Pane.-solo { display: none; }
        &.-narrow Pane.-solo.-current { display: block; }
        & .-hidden-by-zoom { display: none; }
        &.-too-small > #too-small { display: block; }
        &.-too-small > #body, &.-too-small > FrameLine, &.-too-small > CommandEcho { display: none; }
    }
    """

    CSS = """
    .-zoomed, .-holds-zoom { height: 1fr !important; max-height: 100% !important; width: 1fr !important; }
    """
    """Not in DEFAULT_CSS, because it wins over the sizes that screens give to their panes."""

    def __init__(self) -> None:
        super().__init__()
        self.background = Background[Any](self)
        self._lone_pane: Pane | None = None

    @property
    def workbench(self) -> Workbench:
        """The program around this screen."""
        return workbench_of(self)

    def compose(self) -> ComposeResult:
        yield FrameLine(id="tabs")
        with Container(id="body"):
            yield from self.compose_body()
        yield Static(f"needs {LEAST_WIDTH}x{LEAST_HEIGHT}", id="too-small", markup=False)
        yield CommandEcho(id="echo")
        yield FrameLine(id="keys")

    def compose_body(self) -> Iterable[Widget]:
        """The panes."""
        return ()

    def show_target(self, target: Target) -> None:
        """Show a run or a file; called when the screen is brought to the front with one."""

    def panes_changed(self) -> None:
        """Called when other panes are visible, or the same ones in other sizes."""

    def chosen_words(self) -> tuple[str, ...]:
        """Flags and overrides that are chosen here, for commands that take a configuration."""
        return ()

    def equal_command(self) -> str:
        """The `gym` command that equals this screen, for `Y`; empty when there is none."""
        return self.query_one("#echo", CommandEcho).words

    def thing_to_copy(self) -> tuple[str, str] | None:
        """What `y` copies: the text, and what to call it."""
        return None

    def text_to_write(self) -> str:
        """What `w` writes: by default the lines on screen."""
        return "\n".join(self.lines_on_screen()) + "\n"

    def lines_on_screen(self) -> list[str]:
        """The screen as plain lines."""
        return [strip.text.rstrip() for strip in self._compositor.render_strips()]

    def say_command(self, words: str = "", note: str = "") -> None:
        """Change the line above the keys."""
        echo = self.query_one("#echo", CommandEcho)
        echo.words, echo.note = words, note

    def draw_frame(self, tabs: tuple[Part, ...], jobs: tuple[Part, ...]) -> None:
        """Called by the workbench whenever tabs, jobs or keys have changed."""
        line = self.query_one("#tabs", FrameLine)
        line.left, line.right = tabs, jobs
        self.draw_keys()

    def key_bar(self) -> tuple[str, ...]:
        """Ids of the keys for the bottom row as things are now; `draw_keys` when this changes."""
        return self.KEY_BAR

    def draw_keys(self) -> None:
        """Draw the bottom row anew."""
        line = self.query_one("#keys", FrameLine)
        groups = [self._key_parts(name) for name in self.key_bar()]
        line.left = parts_that_fit(groups, self._key_parts("app.help"), self.size.width)

    def _key_parts(self, name: str) -> tuple[Part, ...]:
        key = key_named(name)
        shown = self.app.get_key_display(Binding(self._first_key(name), key.action))
        action = f"app.{key.action}" if key.scope == "app" else f"screen.{key.action}"
        return (Part(f" {shown}", "key", action, key.help), Part(f" {key.label} ", "label", action, key.help))

    def _first_key(self, name: str) -> str:
        """The key that is bound now, after rebinding."""
        rebound: str | None = self.app._keymap.get(name)
        return (rebound or key_named(name).keys).split(",")[0]

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < LEAST_WIDTH or event.size.height < LEAST_HEIGHT, "-too-small")
        self.call_after_refresh(self.workbench.draw_frame)
        self.call_after_refresh(self._show_lone_pane)

    def on_reported(self, message: Reported) -> None:
        self.background.receive(message)

    def on_unmount(self) -> None:
        self.background.stop_all()

    def panes(self) -> list[Pane]:
        """The panes that exist, in order of `tab`."""
        return [self.query_one(f"#{name}", Pane) for name in self.PANES]

    def current_pane(self) -> Pane | None:
        """The pane with the focus, else the one that is shown alone."""
        focused = self.focused
        with_focus = next((pane for pane in self.panes() if focused is not None and pane in focused.ancestors_with_self), None)
        alone = self.has_class("-narrow") and focused is None
        return next((pane for pane in self.panes() if pane.has_class("-current")), None) if alone else with_focus

    def show_pane(self, name: str) -> None:
        """Bring a pane to the front and give it the focus."""
        pane = self.query_one(f"#{name}", Pane)
        if pane.has_class("-solo"):
            self.bring_forward(pane)
        self._unzoom_unless(pane)
        self.call_after_refresh(self.panes_changed)
        target = self._focusable_in(pane)
        if target is not None:
            target.focus()
        else:
            self.set_focus(None)

    def bring_forward(self, pane: Pane) -> None:
        """Make a pane the one that narrow terminals show. In wide ones nothing is styled anew: that takes 0.1 s."""
        self._lone_pane = pane
        self._show_lone_pane()

    def _show_lone_pane(self) -> None:
        pane = self._lone_pane
        if pane is not None and self.has_class("-narrow") and not pane.has_class("-current"):
            for other in self.panes():
                other.set_class(other is pane, "-current")
                self.set_class(other is pane, f"-show-{other.id}")

    def action_next_pane(self) -> None:
        self._step_pane(1)

    def action_previous_pane(self) -> None:
        self._step_pane(-1)

    def panes_to_visit(self) -> list[Pane]:
        """Where `tab` goes: panes that can have the focus; in narrow terminals also those that are only looked at."""
        narrow = self.has_class("-narrow")
        return [pane for pane in self.panes() if (narrow and pane.has_class("-solo")) or self._focusable_in(pane) is not None]

    def _focusable_in(self, pane: Pane) -> Widget | None:
        able = [widget for widget in pane.query("*").results(Widget) if widget.can_focus and not widget.disabled]
        return next((widget for widget in able if widget.display), None) or next(
            (widget for widget in able if isinstance(widget, (VirtualList, VirtualText))), None
        )

    def _step_pane(self, step: int) -> None:
        panes = self.panes_to_visit()
        if not panes:
            return
        current = self.current_pane()
        index = panes.index(current) if current in panes else -1 if step > 0 else 0
        self.show_pane(panes[(index + step) % len(panes)].id or "")

    def action_zoom(self) -> None:
        """The pane with the focus alone, or all panes again."""
        pane = self.current_pane()
        zoomed = pane is not None and pane.has_class("-zoomed")
        self._zoom(None if zoomed else pane)

    def action_back(self) -> None:
        if not self.close_innermost():
            self.query(".drawer").remove()

    def action_copy_thing(self) -> None:
        thing = self.thing_to_copy()
        if thing is None:
            self.workbench.tell("nothing to copy here", "warning")
        else:
            self.workbench.copy_text(*thing)

    def action_copy_command(self) -> None:
        command = self.equal_command()
        if command:
            self.workbench.copy_text(command, "the command")
        else:
            self.workbench.tell("this screen starts nothing, so there is no command to copy", "warning")

    def action_write_text(self) -> None:
        self.workbench.write_text(self.text_to_write(), self.SCREEN_NAME)

    def on_command_echo_clicked(self, _message: CommandEcho.Clicked) -> None:
        self.action_copy_command()

    def close_innermost(self) -> bool:
        """What `esc` does here: leave the zoom, and what subclasses add. False when nothing was open."""
        if any(pane.has_class("-zoomed") for pane in self.panes()):
            self._zoom(None)
            return True
        return False

    def _unzoom_unless(self, pane: Pane) -> None:
        if any(other.has_class("-zoomed") for other in self.panes() if other is not pane):
            self._zoom(pane)

    def _zoom(self, pane: Pane | None) -> None:
        """Hide what is beside the pane at every level, so that the frame stays."""
        for widget in self.query("#body *").results(Widget):
            widget.remove_class("-zoomed", "-holds-zoom", "-hidden-by-zoom")
        self.call_after_refresh(self.panes_changed)
        if pane is None:
            return
        pane.add_class("-zoomed")
        node: Widget = pane
        while node.id != "body" and isinstance(node.parent, Widget):
            for sibling in node.parent.children:
                if sibling is not node:
                    sibling.add_class("-hidden-by-zoom")
            node = node.parent
            node.set_class(node.id != "body", "-holds-zoom")
