"""`gym search [TYPE] QUERY`."""

from __future__ import annotations

from backend.catalog.kinds import KINDS, WORKLOADS
from backend.catalog.listing import list_components
from backend.cli.console import warn
from backend.cli.list_components import show_listing
from backend.cli.parser import Parsed
from backend.cli.request_building import roots_of
from backend.errors import ExitCode, UsageError, did_you_mean, name_some

TYPES = tuple(kind.plural for kind in KINDS.values())


def run(parsed: Parsed) -> int:
    """List the components that a query means: of one type, or else of all workloads."""
    if not parsed.names:
        raise UsageError("what to search for is missing", hint="gym search [TYPE] QUERY, for instance gym search models vllm")
    *types, query = parsed.names
    if types and types[0] not in TYPES:
        hint = did_you_mean(types[0], TYPES) or "quote a query of several words"
        raise UsageError(f"there is no type '{types[0]}' (choose from {name_some(TYPES)})", hint=hint)
    kinds = [name for name, kind in KINDS.items() if types and kind.plural == types[0]] or list(WORKLOADS)
    catalog = list_components(kinds, roots_of(parsed, warn))
    show_listing(kinds, catalog, catalog.entries, query, as_json=parsed.json)
    return ExitCode.OK
