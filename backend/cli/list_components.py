"""`gym list benchmarks|environments|agents|models|resources-servers [NAME]`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from backend.catalog.details import inspect_component
from backend.catalog.entries import Catalog, CatalogEntry
from backend.catalog.kinds import BENCHMARK, ENVIRONMENT, KINDS, WORKLOADS
from backend.catalog.listing import list_components
from backend.catalog.search import FILTERS, apply_filters, search
from backend.cli.console import print_json, warn
from backend.cli.parser import Parsed
from backend.cli.render_components import described, plain, show_details, show_entries
from backend.cli.request_building import roots_of
from backend.errors import ExitCode, UsageError, did_you_mean, name_some

_FILTER_KEYS = {"catalog_kind": "kind", **{key: key for key in FILTERS if key != "kind"}}
"""Configuration keys that filter a listing, and the filter that each stands for."""
_QUERY, _NAME, _JSON = "query", "component_name", "json"
_KNOWN_KEYS = (*_FILTER_KEYS, _QUERY, _NAME, _JSON)


def run(parsed: Parsed) -> int:
    """List the components of one kind, or show one."""
    keys = _keys(parsed.overrides)
    filters = {name: keys[key] for key, name in _FILTER_KEYS.items() if key in keys}
    filters |= {name: parsed.values[name] for name in FILTERS if name in parsed.values}
    kinds = _kinds_of(parsed.command.path[-1], filters.get("kind"))
    as_json = parsed.json or keys.get(_JSON, "").lower() == "true"
    roots = roots_of(parsed, warn)
    name = parsed.name if parsed.name is not None else keys.get(_NAME)
    if name is not None:
        details = inspect_component(kinds, name, roots)
        if details.entry.name != name:
            warn(f"'{name}' is listed as '{details.entry.name}'")
        if as_json:
            print_json(described(details))
        else:
            show_details(details)
        return ExitCode.OK
    catalog = list_components(kinds, roots)
    entries, remarks = apply_filters(catalog.entries, filters)
    for remark in remarks:
        warn(remark)
    show_listing(kinds, catalog, entries, keys.get(_QUERY), as_json=as_json)
    return ExitCode.OK


def show_listing(
    kinds: Sequence[str],
    catalog: Catalog,
    entries: Sequence[CatalogEntry],
    query: str | None,
    *,
    as_json: bool,
) -> None:
    """Print those of `entries` that the query means, after the remarks of the catalogue that they are from."""
    shown = entries if query is None else search(entries, query)
    for remark in catalog.warnings:
        warn(remark)
    hiding = [entry.name for entry in shown if entry.shadowed]
    if hiding:
        warn(f"of several with the same name, the first in the order of the search folders is shown: {name_some(hiding)}")
    for entry in shown:
        if entry.broken:
            warn(f"{entry.described_kind.title} '{entry.name}' is broken: {entry.broken.place}: {entry.broken.message}")
    if as_json:
        print_json([plain(entry) for entry in shown])
    else:
        show_entries(kinds, shown, catalog.entries, query)


def _kinds_of(plural: str, kind: str | None) -> list[str]:
    """The kinds that a listing has: `environments` are all workloads unless a kind is asked for."""
    (listed,) = (name for name, described in KINDS.items() if described.plural == plural)
    if listed != ENVIRONMENT:
        return [listed]
    return [kind] if kind in WORKLOADS else [ENVIRONMENT, BENCHMARK]


def _keys(overrides: Iterable[str]) -> dict[str, str]:
    """Overrides by key. What a listing does not read is ignored with a warning, Hydra's own settings without one."""
    keys = {}
    for word in overrides:
        key, equals, value = word.lstrip("+").partition("=")
        if not equals:
            raise UsageError(f"an override has the form +key=value, not `{word}`")
        if key in _KNOWN_KEYS:
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            keys[key] = value[1:-1] if quoted else value
        elif not key.startswith("hydra."):
            hint = did_you_mean(key, _KNOWN_KEYS)
            warn(f"the key `{key}` means nothing to this command and is ignored" + (f"; {hint}" if hint else ""))
    return keys
