"""What the border of the viewer's list says: how many there are of what, and how far the file is read."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from backend.io.text import clean_line
from screens.viewer.loading import Listed, Progress
from screens.widgets import glyphs
from screens.widgets.formatting import count

_SHORTEST_NAME = 8
"""Cells of the file's name below which the border rather goes without it."""


@dataclass(frozen=True, slots=True)
class CountTexts:
    """How much is listed, in several lengths, the longest first."""

    whole: tuple[str, ...]
    shortened: tuple[str, ...]
    """Without the noun."""


def count_texts(listed: Listed, *, brief: bool = False) -> CountTexts:
    """How many tasks or rollouts are listed, and, unless that has to be `brief`, how many rows are none."""
    total, unreadable = listed.total, listed.unreadable
    of = f"{count(listed.shown)} of {count(total)}" if listed.is_narrowed else count(total)
    sort = listed.sort
    by = f" by {sort.field}" if sort is not None and sort.field not in ("reward", "tokens") else ""
    noun = ("task" if listed.order.by_task else "rollout") + ("" if total == 1 else "s")
    whole, short = f"{of} {noun}{by}", f"{of}{by}"
    if brief or not unreadable:
        return CountTexts((whole,), (short,))
    bad, sign = f" · {count(unreadable)} unreadable", f" · {count(unreadable)} {glyphs.current().warning}"
    return CountTexts((whole + bad, whole + sign), (short + bad, short + sign, short))


def titles(name: str, counts: CountTexts, width: int) -> tuple[str, str]:
    """The name and the longest of `counts`, as far as they fit into `width` cells: the name goes before the noun does."""
    least = min(cell_len(clean_line(name)), _SHORTEST_NAME) + 2
    beside = next((text for text in counts.whole if cell_len(text) + least <= width), None)
    if width <= 0 or beside is not None:
        return name, beside or counts.whole[0]
    alone = (*counts.whole, *counts.shortened)
    return "", next((text for text in alone if cell_len(text) <= width), alone[-1])


def foot_text(progress: Progress, listed: Listed | None, searched: str, problems: str) -> str:
    """How far the file is read; when it is, how far it is `searched`, else what counts as `problems`, else its rows."""
    if progress.indexed < 1:
        return f"indexing {progress.indexed:.0%}"
    if not progress.complete:
        return f"reading {progress.scanned / max(1, progress.rows):.0%}"
    if searched:
        return searched
    if listed is not None and listed.is_narrowed and not len(listed.listing):
        return "nothing matches; esc clears"
    torn = f", {count(progress.torn_bytes)} bytes unfinished" if progress.torn_bytes else ""
    return problems or f"{count(progress.rows)} rows{torn}"
