"""The rows around every screen: tabs and running jobs above, the equal command and the keys below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from screens.widgets.component_style import component_style
from screens.widgets.text_gate import fit, one_line


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a frame line: text, one of the line's styles, and the action that a click runs."""

    text: str
    style: str = "label"
    action: str = ""
    tooltip: str = ""


class FrameLine(Widget):
    """One row of parts, from the left, and at the right edge."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "frame--label",
        "frame--key",
        "frame--active",
        "frame--note",
        "frame--busy",
        "frame--bad",
    }
    DEFAULT_CSS = """
    FrameLine {
        height: 1;
        background: transparent;
        & > .frame--label { color: $text-muted; }
        & > .frame--key { color: $text-accent; text-style: bold; }
        & > .frame--active { color: $text-primary; text-style: bold; }
        & > .frame--note { color: $text-muted; }
        & > .frame--busy { color: $text-success; text-style: bold; }
        & > .frame--bad { color: $text-error; text-style: bold; }
    }
    """

    left: reactive[tuple[Part, ...]] = reactive((), init=False)
    right: reactive[tuple[Part, ...]] = reactive((), init=False)

    def render_line(self, y: int) -> Strip:
        """The row: what stands right is kept whole, what stands left is shortened."""
        base = self.get_visual_style().rich_style
        width = self.size.width
        right = [Segment(one_line(part.text), self._style(part, base)) for part in self.right]
        room = width - sum(segment.cell_length for segment in right)
        left = Strip([Segment(one_line(part.text), self._style(part, base)) for part in self.left])
        if left.cell_length > room and room > 0:
            left = Strip([*left.crop(0, room - 1), Segment(fit("xx", 1)[-1:], base)])
        return Strip([*left.adjust_cell_length(max(0, room), base), *right]).adjust_cell_length(width, base)

    def part_at(self, x: int) -> Part | None:
        """The part in column `x`."""
        widths = sum(cell_len(one_line(part.text)) for part in self.right)
        for parts, at in ((self.right, self.size.width - widths), (self.left, 0)):
            for part in parts:
                size = cell_len(one_line(part.text))
                if at <= x < at + size:
                    return part
                at += size
        return None

    async def on_click(self, event: events.Click) -> None:
        part = self.part_at(event.x)
        if part is not None and part.action:
            event.stop()
            await self.screen.run_action(part.action)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        part = self.part_at(event.x)
        self.tooltip = one_line(part.tooltip) if part is not None and part.tooltip else None

    def _style(self, part: Part, base: Style) -> Style:
        return base + component_style(self, f"frame--{part.style}")


class CommandEcho(Widget):
    """The `gym` command that equals the screen, or in brackets what the screen reads; a click copies it."""

    DEFAULT_CSS = """
    CommandEcho { height: 1; background: transparent; color: $text-muted; }
    """

    words: reactive[str] = reactive("")
    """The command without its `$`; empty when there is none."""
    note: reactive[str] = reactive("")

    class Clicked(Message):
        """The command was clicked."""

    def render_line(self, y: int) -> Strip:
        text = f" $ {one_line(self.words)}" if self.words else f" ({one_line(self.note)})" if self.note else ""
        return Strip([Segment(fit(text, self.size.width), self.rich_style)], self.size.width)

    def on_click(self, event: events.Click) -> None:
        event.stop()
        if self.words:
            self.post_message(self.Clicked())


def parts_that_fit(groups: Sequence[Sequence[Part]], last: Sequence[Part], width: int) -> tuple[Part, ...]:
    """Whole groups of parts from the left as far as they fit beside `last`, which always stays."""
    room = width - _cells(last)
    chosen: list[Part] = []
    for group in groups:
        room -= _cells(group)
        if room < 0:
            break
        chosen += group
    return (*chosen, *last)


def _cells(parts: Sequence[Part]) -> int:
    return sum(cell_len(one_line(part.text)) for part in parts)
