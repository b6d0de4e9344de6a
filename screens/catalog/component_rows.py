"""Components as rows of the list, and the chips above it."""

from __future__ import annotations

from collections.abc import Hashable

from backend.catalog.entries import BROKEN, NO_DATA, READY, CatalogEntry
from backend.catalog.kinds import KINDS
from backend.catalog.query import Ranked
from screens.catalog.arranging import Arrangement, Component, component_key
from screens.widgets import formatting, glyphs
from screens.widgets.columns import Column
from screens.widgets.frame import Part
from screens.widgets.virtual_list import Cell, Row

COLUMNS = (
    Column("name", "NAME", least=22),
    Column("kind", "KIND", 5),
    Column("domain", "DOMAIN", 10, keep=2),
    Column("status", "STATUS", 8),
    Column("description", "DESCRIPTION", least=30, keep=1),
)
SORTABLE = ("name", "kind", "domain", "status")
_STATE_STYLES = {READY: "plain", NO_DATA: "warn", BROKEN: "bad"}


class ComponentRows:
    """The rows of an arrangement."""

    def __init__(self, arrangement: Arrangement = Arrangement()) -> None:
        self.shown = arrangement.shown
        self._places = {component_key(ranked.entry): index for index, ranked in enumerate(self.shown)}

    def __len__(self) -> int:
        return len(self.shown)

    def key(self, index: int) -> Hashable:
        return component_key(self.shown[index].entry)

    def index_of(self, key: Hashable) -> int | None:
        return self._places.get(key)  # type: ignore[call-overload]

    def row(self, index: int) -> Row:
        ranked = self.shown[index]
        component = ranked.entry
        name = Cell(component.name, "strong", ranked.name_positions)
        kind = KINDS[component.kind].short
        if not isinstance(component, CatalogEntry):
            unread = Cell(glyphs.current().ellipsis, "muted")
            return Row((name, kind, unread, unread, unread))
        broken = component.broken is not None
        cells = (
            name,
            kind,
            component.domain or glyphs.current().nothing,
            Cell(component.state, _STATE_STYLES[component.state]),
            _description(ranked, component),
        )
        return Row(cells, glyphs.current().warning if broken else "", "bad" if broken else "plain")


def _description(ranked: Ranked[Component], component: CatalogEntry) -> Cell:
    return Cell(component.description or "", "muted", ranked.description_positions)


def chips(arrangement: Arrangement, kind: str | None, *, needy: bool) -> tuple[Part, ...]:
    """The kinds with their counts, the chosen one in brackets, and a chip for what needs something."""
    parts = [
        Part(" "),
        _chip(f"all {formatting.count(arrangement.of_all_kinds)}", kind is None, "screen.choose_kind('')", "all kinds"),
    ]
    for described in KINDS.values():
        count = arrangement.counts.get(described.name, 0)
        action = f"screen.choose_kind('{described.name}')"
        parts.append(
            _chip(f"{described.short} {formatting.count(count)}", kind == described.name, action, f"only {described.plural}")
        )
    if arrangement.needy or needy:
        text = f"{glyphs.current().warning}{formatting.count(arrangement.needy)}"
        parts.append(_chip(text, needy, "screen.toggle_needy", "only what is broken or lacks its data"))
    return tuple(parts)


def _chip(text: str, chosen: bool, action: str, tooltip: str) -> Part:
    return Part(f"[{text}]" if chosen else f" {text} ", "active" if chosen else "label", action, tooltip)
