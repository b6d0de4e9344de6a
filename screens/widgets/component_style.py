"""Styles of component classes, for widgets that draw their own lines."""

from __future__ import annotations

from rich.style import Style
from textual.widget import Widget


def component_style(widget: Widget, name: str) -> Style:
    """The whole style of a component class: automatic and half-transparent colours (`$text-muted`) are blended with what is behind.

    `Widget.get_component_rich_style(partial=True)` would draw these at full strength, and `get_visual_style` alone forgets `reverse`.
    """
    style = widget.get_visual_style(name).rich_style
    return style + Style(reverse=True) if widget.get_component_styles(name).text_style.reverse else style


def partial_component_style(widget: Widget, name: str) -> Style:
    """What a component class says itself, with its colours blended: to be laid over another style."""
    own = widget.get_component_rich_style(name, partial=True)
    whole = component_style(widget, name)
    colours = Style(color=whole.color if own.color else None, bgcolor=whole.bgcolor if own.bgcolor else None)
    return own + colours
