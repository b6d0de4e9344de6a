"""Which components are listed, in which order, and how many there are of each kind: computed anew at every key."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from backend.catalog.entries import READY, CatalogEntry, EntryName
from backend.catalog.kinds import KINDS
from backend.catalog.query import CatalogQuery, Ranked, parse_query, rank
from backend.errors import GymError

Component = CatalogEntry | EntryName
ComponentKey = tuple[str, str]
"""Kind and name: what makes a component itself."""

ORDERS = ("match", "name", "kind", "domain", "status")
"""`match`: what the filter means best comes first; by kind as long as it has no words."""
_KIND_PLACES = {kind: place for place, kind in enumerate(KINDS)}
_COMPARED_NAMES = 1000


def component_key(component: Component) -> ComponentKey:
    """What makes a component itself in the list."""
    return component.kind, component.name


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants to see."""

    text: str = ""
    kind: str | None = None
    needy: bool = False
    """Only what cannot be used as it is."""
    order: str = "match"
    upside_down: bool = False


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What is listed."""

    shown: Sequence[Ranked[Component]] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    """By kind, of what the rest of the wish lets pass."""
    needy: int = 0
    """How many of all components cannot be used as they are."""
    problem: str = ""
    """What is wrong with the text; then its last term does not count."""
    has_words: bool = False

    @property
    def of_all_kinds(self) -> int:
        return sum(self.counts.values())


def needs_something(component: Component) -> bool:
    """Whether a component is broken or lacks its data."""
    return isinstance(component, CatalogEntry) and component.state != READY


def arranged(components: Sequence[Component], wish: Wish) -> Arrangement:
    """`components` as `wish` wants them. Never fails: a mistake in the text is told in `problem`."""
    query, problem = _query_of(wish.text)
    found: list[Ranked[Component]] = rank(components, query)
    if wish.needy:
        found = [ranked for ranked in found if needs_something(ranked.entry)]
    counts = Counter(ranked.entry.kind for ranked in found)
    if wish.kind is not None:
        found = [ranked for ranked in found if ranked.entry.kind == wish.kind]
    if wish.order != "match" or not query.words:
        found.sort(key=lambda ranked: _place(ranked.entry, wish.order))
    if wish.upside_down:
        found.reverse()
    return Arrangement(found, counts, sum(map(needs_something, components)), problem, bool(query.words))


def nearest_names(components: Sequence[Component], text: str, most: int = 3) -> list[str]:
    """Names of components that look like the words of a text."""
    typed = " ".join(_query_of(text)[0].words)
    names = list(dict.fromkeys(component.name for component in components[:_COMPARED_NAMES]))
    return difflib.get_close_matches(typed, names, n=most, cutoff=0.4) if typed else []


def _query_of(text: str) -> tuple[CatalogQuery, str]:
    """The query of a text, and what is wrong with it; without its last term then, which is usually the one that is being typed."""
    try:
        return parse_query(text), ""
    except GymError as error:
        problem = f"{error.message}; {error.hint}" if error.hint else error.message
    try:
        return parse_query(text.rstrip().rpartition(" ")[0]), problem
    except GymError:
        return CatalogQuery(), problem


def _place(component: Component, order: str) -> tuple[object, ...]:
    by_name = (component.name.casefold(), component.name)
    kind = _KIND_PLACES[component.kind]
    if order == "name":
        return *by_name, kind
    if isinstance(component, CatalogEntry) and order == "domain":
        return component.domain is None, component.domain or "", *by_name, kind
    if isinstance(component, CatalogEntry) and order == "status":
        return component.state == READY, component.state, *by_name, kind
    return kind, *by_name
