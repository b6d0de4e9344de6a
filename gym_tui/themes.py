"""Two themes of our own beside Textual's; `ansi-dark` and `ansi-light` use the terminal's own colours."""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="gym-dark",
    primary="#6cb6eb",
    secondary="#8a9fd1",
    accent="#e0b266",
    warning="#e5a445",
    error="#ef6b73",
    success="#7fc383",
    foreground="#d6dae0",
    background="#15181d",
    surface="#1b1f26",
    panel="#242a33",
    dark=True,
    variables={"text-muted": "#9aa1ab"},
)
LIGHT = Theme(
    name="gym-light",
    primary="#1f6fae",
    secondary="#5a6b9c",
    accent="#8f5d00",
    warning="#a05a00",
    error="#b3262e",
    success="#2f7d39",
    foreground="#20262e",
    background="#fbfbf9",
    surface="#f1f1ee",
    panel="#e4e5e2",
    dark=False,
    variables={"text-muted": "#5a6169", "block-cursor-foreground": "#ffffff"},
)
OWN = (DARK, LIGHT)
DEFAULT = DARK.name
CYCLE = ("gym-dark", "gym-light", "ansi-dark", "ansi-light")
"""What the theme key goes through; the palette offers all."""
