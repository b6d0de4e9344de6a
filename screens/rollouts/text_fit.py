"""Texts for the cells that there are."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from screens.widgets.formatting import joined
from screens.widgets.text_gate import fit


def first_that_fits(texts: Sequence[str], width: int) -> str:
    """The first text that fits, longest first; else the last one, shortened."""
    return next((text for text in texts if cell_len(text) <= width), fit(texts[-1], width).rstrip())


def joined_within(parts: Sequence[str], width: int, gap: str) -> str:
    """The parts that say something, in one line, those at the end left out that have no room; the first one is always there."""
    kept = [part for part in parts if part]
    while len(kept) > 1 and cell_len(joined(kept, gap)) > width:
        kept.pop()
    return joined(kept, gap)
