"""Components as tables, as paragraphs for people, and as the documented JSON."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from backend.catalog.entries import CatalogEntry, Details
from backend.catalog.kinds import AGENT, KINDS, MODEL, RESOURCES_SERVER
from backend.cli.commands import is_known
from backend.cli.console import say
from backend.cli.tables import table

_COLUMNS = {
    AGENT: ("Agent", "Composition", "Variants", "Description"),
    MODEL: ("Model", "Model group"),
    RESOURCES_SERVER: ("Name", "Domain", "Description"),
}
_WORKLOAD_COLUMNS = ("Name", "Kind", "Status", "Lifecycle", "Domain", "Description")
_NOTHING = "—"


def plain(entry: CatalogEntry) -> dict[str, Any]:
    """An entry of a listing as JSON has it; the keys are those of its kind."""
    if entry.kind == AGENT:
        return {
            "name": entry.name,
            "pattern": "B (self-contained)" if entry.self_contained else "A (composable)",
            "self_contained": bool(entry.self_contained),
            "variants": list(entry.variants),
            "description": entry.description,
        }
    if entry.kind == MODEL:
        return {"name": entry.name, "model": entry.name, "model_group": entry.model_group}
    if entry.kind == RESOURCES_SERVER:
        return {"name": entry.name, "domain": entry.domain, "description": entry.description}
    manifest = entry.manifest
    return {
        "name": entry.name,
        "kind": entry.kind,
        "status": entry.status,
        "domain": entry.domain,
        "description": entry.description,
        "version": manifest.version if manifest else None,
        "integration_profile": manifest.integration_profile if manifest else None,
        "modality": manifest.modality if manifest else None,
        "licensing": manifest.licensing if manifest else None,
        "lifecycle": manifest.lifecycle if manifest else None,
    }


def described(details: Details) -> dict[str, Any]:
    """One component as JSON has it; the same keys for all kinds."""
    entry = details.entry
    lines = [entry.description, f"Value: {entry.value}" if entry.value and entry.kind != AGENT else None]
    return {
        "name": entry.name,
        "type": entry.described_kind.title,
        "domain": entry.domain if entry.kind not in (AGENT, MODEL) else None,
        "description": "\n".join(line for line in lines if line) or None,
        "details": dict(details.facts),
        "usage_example": details.usage_example,
    }


def show_details(details: Details) -> None:
    """One component for people: header, description, details, what it needs, how to use it."""
    shown = described(details)
    domain = f" (domain: {shown['domain']})" if shown["domain"] else ""
    say(f"The {shown['name']} {shown['type']}{domain}")
    if shown["description"]:
        say()
        say(shown["description"])
    say()
    for label, value in details.facts:
        say(f"{label}: {value}")
    for label, value in details.inherited:
        say(f"{label}, with what is inherited: {value}")
    if details.needs:
        say()
        say("Needs:")
    for need in details.needs:
        say(
            f"{need.kind} {need.name}: {need.message}"
            + (f": {shlex.join(need.command)}" if need.command and is_known(need.command[1:]) else "")
        )
    if details.usage_example:
        say()
        say("Usage:")
        say(details.usage_example)


def show_entries(kinds: Sequence[str], entries: Sequence[CatalogEntry], whole: Sequence[CatalogEntry], query: str | None) -> None:
    """A listing for people, fitted to the terminal; at its natural width where it goes to a file or a pipe.

    `whole` is the catalogue that the entries were chosen from: with how many manifests it has, the title tells how far it is described.
    """
    kind = kinds[0] if len(kinds) == 1 else None
    say(_title(kind, entries, whole, query))
    if not entries:
        return
    columns = _COLUMNS.get(kind or "", _WORKLOAD_COLUMNS)
    rows = [_row(entry) for entry in entries]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    say(table(columns, rows, width=width))


def _title(kind: str | None, entries: Sequence[CatalogEntry], whole: Sequence[CatalogEntry], query: str | None) -> str:
    name = KINDS[kind].title + "s" if kind else "environments and benchmarks"
    title = f"{name[0].upper()}{name[1:]}: {len(entries)}"
    if kind not in _COLUMNS:
        manifests = sum(entry.manifest is not None for entry in whole)
        title += f" (manifests: {manifests} of {len(whole)})"
    return title if query is None else f"{title}, matching {query!r}"


def _row(entry: CatalogEntry) -> tuple[str, ...]:
    description = f"broken: {entry.broken}" if entry.broken else entry.description or ""
    if entry.kind == AGENT:
        composition = "self-contained (B)" if entry.self_contained else "composable (A)"
        return (entry.name, composition, ", ".join(entry.variants) or _NOTHING, description)
    if entry.kind == MODEL:
        return (entry.name, f"broken: {entry.broken}" if entry.broken else entry.model_group)
    if entry.kind == RESOURCES_SERVER:
        return (entry.name, entry.domain or "", description)
    status = "broken" if entry.broken else entry.status
    lifecycle = entry.manifest.lifecycle if entry.manifest else ""
    return (entry.name, entry.kind, status, lifecycle, entry.domain or "", description)
