"""`gym list benchmarks [NAME]`."""

from __future__ import annotations

import shutil
import sys
from typing import Any

from backend.catalog.benchmarks import CatalogEntry, inspect_benchmark, list_benchmarks
from backend.cli.console import print_json, say, warn
from backend.cli.parser import Parsed
from backend.cli.tables import table
from backend.errors import ExitCode, UsageError
from backend.io.roots import search_roots

JSON_KEYS = (
    "name", "kind", "status", "domain", "description", "version", "integration_profile", "modality", "licensing", "lifecycle",
)  # fmt: skip


def run(parsed: Parsed) -> int:
    """List all benchmarks, or show one."""
    if parsed.overrides:
        raise UsageError(f"this command takes no overrides: {parsed.overrides[0]}")
    roots = search_roots(parsed.given("search_dir", ()))
    if parsed.name is not None:
        details = inspect_benchmark(parsed.name, roots)
        if parsed.json:
            print_json(details)
        else:
            show_details(details)
        return ExitCode.OK
    catalog = list_benchmarks(roots)
    for warning in catalog.warnings:
        warn(warning)
    for entry in catalog.entries:
        if entry.broken:
            warn(f"{entry.name} is broken: {entry.broken}")
    if parsed.json:
        print_json([{key: getattr(entry, key) for key in JSON_KEYS} for entry in catalog.entries])
    else:
        _show(catalog.entries)
    return ExitCode.OK


def show_details(details: dict[str, Any]) -> None:
    """One component for people: header, description, details, how to use it."""
    domain = f" (domain: {details['domain']})" if details["domain"] else ""
    say(f"The {details['name']} {details['type']}{domain}")
    if details["description"]:
        say()
        say(details["description"])
    if details["details"]:
        say()
        for label, value in details["details"].items():
            say(f"{label}: {value}")
    if details["usage_example"]:
        say()
        say(f"Usage: {details['usage_example']}")


def _show(entries: tuple[CatalogEntry, ...]) -> None:
    with_manifest = sum(entry.manifest is not None for entry in entries)
    say(f"Benchmarks: {len(entries)} ({with_manifest} with a manifest)")
    if not entries:
        return
    rows = [
        (entry.name, entry.kind, _status(entry), entry.lifecycle or "", entry.domain or "", entry.description or "")
        for entry in entries
    ]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    say(table(("Name", "Kind", "Status", "Lifecycle", "Domain", "Description"), rows, width=width))


def _status(entry: CatalogEntry) -> str:
    return "broken" if entry.broken else entry.status
