"""What people type above the catalogue: `kind:bench domain:math -judge aime` — words are fuzzy, everything else is exact."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from backend.catalog.entries import EXPERIMENTAL, NO_MANIFEST, STATES, CatalogEntry, EntryName
from backend.catalog.fuzzy import fuzzy_match
from backend.catalog.kinds import KINDS, kind_named
from backend.errors import GymError, did_you_mean

Entry = TypeVar("Entry", bound=CatalogEntry | EntryName)

_TERM = re.compile(r"""(?P<minus>-?)(?:(?P<field>[A-Za-z]+):)?(?:"(?P<quoted>[^"]*)"?|(?P<plain>\S*))""")
_IN_DESCRIPTION = 4
"""Points for each letter of a word that only the description has; a letter in the name is worth several times as much."""

FIELDS: Mapping[str, Callable[[CatalogEntry], Iterable[str | None]]] = {
    "kind": lambda entry: (entry.kind,),
    "name": lambda entry: (entry.name,),
    "domain": lambda entry: (entry.domain,),
    "status": lambda entry: (entry.state, entry.status),
    "licence": lambda entry: (entry.manifest.licensing if entry.manifest else None, *(item.license for item in entry.datasets)),
    "modality": lambda entry: (entry.manifest.modality if entry.manifest else None,),
    "lifecycle": lambda entry: (entry.manifest.lifecycle if entry.manifest else None,),
    "agent": lambda entry: (server.implementation for server in entry.agents),
    "server": lambda entry: (server.implementation for server in entry.resources_servers),
    "model": lambda entry: (server.implementation for server in entry.models),
    "dataset": lambda entry: (dataset.name for dataset in entry.datasets),
}
"""What can stand before a colon. Several values after it, with commas between them, mean any of them."""
_ALIASES = {"license": "licence", "licensing": "licence", "state": "status", "rs": "server", "data": "dataset"}


@dataclass(frozen=True, slots=True)
class Condition:
    """One exact term."""

    field: str
    values: tuple[str, ...]
    """In lower case."""
    negated: bool = False

    def holds(self, entry: CatalogEntry | EntryName) -> bool:
        """Whether the entry has one of the values, or none when negated. Of a bare name only kind and name are known."""
        if isinstance(entry, CatalogEntry):
            found = {value.lower() for value in FIELDS[self.field](entry) if value is not None}
        else:
            found = {entry.kind} if self.field == "kind" else {entry.name.lower()} if self.field == "name" else set()
        return bool(found.intersection(self.values)) != self.negated


@dataclass(frozen=True, slots=True)
class CatalogQuery:
    """A parsed query: all conditions hold, no excluded word is in name or description, every word is in one of them."""

    conditions: tuple[Condition, ...] = ()
    words: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranked(Generic[Entry]):
    """An entry that a query means."""

    entry: Entry
    score: int
    name_positions: tuple[int, ...] = ()
    """Indices of the characters of the name that were matched, ascending."""
    description_positions: tuple[int, ...] = ()


def parse_query(text: str) -> CatalogQuery:
    """The query that `text` means; never fails while somebody is in the middle of typing a term.

    `field:value` holds for entries that have exactly this value (kinds and statuses may be shortened), `field:a,b` for either; a `-` in
    front turns a term round. Quotes keep blanks together. Raises GymError for a field, kind or status that does not exist.
    """
    conditions: list[Condition] = []
    words: list[str] = []
    excluded: list[str] = []
    for term in _TERM.finditer(text):
        value = term["quoted"] if term["quoted"] is not None else term["plain"]
        negated = bool(term["minus"])
        if term["field"] is not None:
            if values := tuple(filter(None, value.split(","))):
                conditions.append(_condition(term["field"].lower(), values, negated))
        elif value:
            (excluded if negated else words).append(value.lower())
    return CatalogQuery(tuple(conditions), tuple(words), tuple(excluded))


def rank(entries: Iterable[Entry], query: CatalogQuery) -> list[Ranked[Entry]]:
    """The entries that the query means, the best first, equals by name; in their own order when the query has no words."""
    found = [ranked for entry in entries if (ranked := _ranked(entry, query)) is not None]
    if query.words:
        found.sort(key=lambda ranked: (-ranked.score, ranked.entry.name.casefold(), ranked.entry.name, ranked.entry.kind))
    return found


def _ranked(entry: Entry, query: CatalogQuery) -> Ranked[Entry] | None:
    if not all(condition.holds(entry) for condition in query.conditions):
        return None
    description = (entry.description or "") if isinstance(entry, CatalogEntry) else ""
    if any(word in entry.name.lower() or word in description.lower() for word in query.excluded):
        return None
    score = 0
    in_name: set[int] = set()
    in_description: set[int] = set()
    for word in query.words:
        if match := fuzzy_match(word, entry.name):
            score += match.score
            in_name.update(match.positions)
        elif (place := description.lower().find(word)) >= 0:
            score += _IN_DESCRIPTION * len(word)
            if len(description.lower()) == len(description):
                in_description.update(range(place, place + len(word)))
        else:
            return None
    return Ranked(entry, score, tuple(sorted(in_name)), tuple(sorted(in_description)))


def _condition(word: str, values: tuple[str, ...], negated: bool) -> Condition:
    field = _ALIASES.get(word, word)
    if field not in FIELDS:
        raise GymError(f"components have no `{word}`", hint=did_you_mean(word, FIELDS) or f"known are {', '.join(FIELDS)}")
    if field == "kind":
        return Condition(field, tuple(map(_kind, values)), negated)
    if field == "status":
        return Condition(field, tuple(map(_status, values)), negated)
    return Condition(field, tuple(value.lower() for value in values), negated)


def _kind(word: str) -> str:
    kind = kind_named(word)
    if kind is None:
        raise GymError(f"there is no kind `{word}`", hint=did_you_mean(word, KINDS) or f"one of {', '.join(KINDS)}")
    return kind.name


def _status(word: str) -> str:
    statuses = (*STATES, EXPERIMENTAL, NO_MANIFEST)
    wanted = _squeezed(word)
    found = next((status for status in statuses if _squeezed(status).startswith(wanted)), None)
    if found is None:
        raise GymError(f"there is no status `{word}`", hint=did_you_mean(word, statuses) or f"one of {', '.join(statuses)}")
    return found


def _squeezed(status: str) -> str:
    """`nodata`, `no-data` and `no data` are one."""
    return re.sub(r"[ _-]", "", status.lower())
