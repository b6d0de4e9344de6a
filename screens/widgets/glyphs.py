"""The signs of the workbench: shape carries the meaning, colour only repeats it. All of them take one cell, but for the ASCII plus-minus."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of signs."""

    up: str = "●"
    starting: str = "◐"
    stopped: str = "○"
    failed: str = "✗"
    warning: str = "!"
    good: str = "✓"
    neutral: str = "·"
    unknown: str = "?"
    cursor: str = "▸"
    prompt: str = "›"
    folded: str = "▸"
    unfolded: str = "▾"
    mark: str = "*"
    full: str = "■"
    empty: str = "□"
    between: str = "▒"
    bar: str = "█"
    bar_rest: str = "░"
    ellipsis: str = "…"
    rule: str = "─"
    gutter: str = "┃"
    running: str = "▶"
    enter: str = "⏎"
    nothing: str = "—"
    minus: str = "−"
    plus_minus: str = "±"
    times: str = "×"
    dash: str = "–"
    arrow: str = "→"


UNICODE = Glyphs()
ASCII = Glyphs(
    up="O", starting="o", stopped=".", failed="x", warning="!", good="v", neutral=".", unknown="?", cursor=">", prompt=">", folded="+",
    unfolded="-", mark="*", full="#", empty="_", between="%", bar="#", bar_rest=".", ellipsis="~", rule="-", gutter="|",
    running=">", enter="<", nothing="-", minus="-", plus_minus="+-", times="x", dash="-", arrow=">",
)  # fmt: skip

_active = UNICODE


def current() -> Glyphs:
    """The set in use."""
    return _active


def use(glyphs: Glyphs) -> None:
    """Choose the set; there is one terminal, so there is one set. The workbench does this once, before it draws."""
    global _active
    _active = glyphs


def is_ascii() -> bool:
    """Whether only ASCII is to be drawn."""
    return _active is ASCII
