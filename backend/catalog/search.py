"""The documented filters of `gym list environments` and the match rule of `gym search`.

The query language of the workbench, with ranks and fuzzy words, is in `query`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from backend.catalog.entries import CatalogEntry
from backend.catalog.kinds import AGENT, MODEL

SIMILAR = 0.7
"""The least ratio of matching letters, as `difflib` counts them, at which two texts are alike."""
_TOKENS = re.compile(r"[ _-]+")

FILTERS: Mapping[str, Callable[[CatalogEntry], str | None]] = {
    "domain": lambda entry: entry.domain,
    "kind": lambda entry: entry.kind,
    "modality": lambda entry: entry.manifest.modality if entry.manifest else None,
    "licensing": lambda entry: entry.manifest.licensing if entry.manifest else None,
    "status": lambda entry: entry.status,
    "lifecycle": lambda entry: entry.manifest.lifecycle if entry.manifest else None,
}
"""In the order in which they are applied."""


def apply_filters(entries: Iterable[CatalogEntry], wanted: Mapping[str, str]) -> tuple[tuple[CatalogEntry, ...], tuple[str, ...]]:
    """The entries whose fields have exactly the wanted values (keys of `FILTERS`), and a remark per filter on those that lack the field."""
    kept = tuple(entries)
    warnings = []
    for key, field in FILTERS.items():
        if key not in wanted:
            continue
        lacking = sum(field(entry) is None for entry in kept)
        if lacking:
            names = "1 entry does" if lacking == 1 else f"{lacking} entries do"
            warnings.append(f"{names} not say their {key} and are left out")
        kept = tuple(entry for entry in kept if field(entry) == wanted[key])
    return kept, tuple(warnings)


def search(entries: Iterable[CatalogEntry], query: str) -> tuple[CatalogEntry, ...]:
    """The entries that a query means, in their order: a field contains it, or is like it, or one of the field's words is."""
    found = _Matcher(query)
    return tuple(entry for entry in entries if any(map(found.matches, _fields(entry))))


def _fields(entry: CatalogEntry) -> Iterator[str]:
    fields: Sequence[str | None]
    if entry.kind == AGENT:
        fields = (entry.name, entry.description, *entry.variants)
    elif entry.kind == MODEL:
        fields = (entry.name, entry.model_group)
    else:
        fields = (entry.name, entry.domain, entry.description)
    return (field for field in fields if field)


class _Matcher:
    """One query against many fields; answers for words are kept, since the same ones come again and again."""

    def __init__(self, query: str) -> None:
        self._query = query.lower()
        self._matcher = SequenceMatcher(None, b=self._query, autojunk=False)
        self._known: dict[str, bool] = {}

    def matches(self, field: str) -> bool:
        text = field.lower()
        return self._query in text or self._is_like(text) or any(map(self._is_like, _TOKENS.split(text)))

    def _is_like(self, text: str) -> bool:
        if text not in self._known:
            matcher = self._matcher
            matcher.set_seq1(text)
            bounds = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)  # each at least as large as the next
            self._known[text] = all(bound() >= SIMILAR for bound in bounds)
        return self._known[text]
