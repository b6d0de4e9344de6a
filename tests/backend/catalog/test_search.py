from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.catalog.entries import CatalogEntry, Manifest
from backend.catalog.kinds import KINDS
from backend.catalog.search import apply_filters, search

HERE = Path("/x")


def entry(
    name: str, kind: str = "benchmark", domain: str | None = None, description: str | None = None, **fields
) -> CatalogEntry:
    return CatalogEntry(kind, name, HERE, HERE, HERE, KINDS[kind].flag, name, domain=domain, description=description, **fields)


MANIFEST = Manifest(HERE, "1", "custom-gym-verifier", "text", "MIT", "active")
ENTRIES = [
    entry("aime24", domain="math", description="Competition problems"),
    entry("walk", "environment", "games", "Walks through a maze", manifest=MANIFEST),
    entry("plain"),
    entry("swe_agent", "agent", description="Edits code", variants=("swe_fast", "openhands")),
    entry("inference_provider/together", "model", description="not searched"),
]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("AIME", ["aime24"]),
        ("aime25", ["aime24"]),  # 5 of 6 letters: 0.83
        ("game", ["walk"]),
        ("compettion", ["aime24"]),  # one word of the description: 0.95
        ("openhand", ["swe_agent"]),
        ("inference_providr/togethr", ["inference_provider/together"]),
        ("inference-provider", ["inference_provider/together"]),
        ("searched", []),
        ("xyz", []),
    ],
)
def test_search(query: str, expected: list[str]) -> None:
    assert [found.name for found in search(ENTRIES, query)] == expected


@given(query=st.text(alphabet="abc _-", min_size=1, max_size=8), field=st.text(alphabet="abcd _-", max_size=12))
def test_the_match_rule(query: str, field: str) -> None:
    def alike(text: str) -> bool:
        return SequenceMatcher(None, text, query).ratio() >= 0.7

    words = field.replace("_", " ").replace("-", " ").split(" ")
    assert bool(search([entry("", description=field)], query)) == (
        bool(field) and (query in field or alike(field) or any(map(alike, words)))
    )


@pytest.mark.parametrize(
    ("wanted", "names", "warnings"),
    [
        ({"domain": "math"}, ["aime24"], ["3 entries do not say their domain and are left out"]),
        ({"domain": "Math"}, [], ["3 entries do not say their domain and are left out"]),
        ({"kind": "environment"}, ["walk"], []),
        ({"kind": "environment", "status": "no-manifest"}, [], []),
        ({"status": "experimental"}, ["walk"], []),
        ({"modality": "text"}, ["walk"], ["4 entries do not say their modality and are left out"]),
        ({"licensing": "MIT", "kind": "benchmark"}, [], ["2 entries do not say their licensing and are left out"]),
        ({"lifecycle": "active", "domain": "games"}, ["walk"], ["3 entries do not say their domain and are left out"]),
        ({}, [item.name for item in ENTRIES], []),
    ],
)
def test_filters(wanted: dict[str, str], names: list[str], warnings: list[str]) -> None:
    kept, remarks = apply_filters(ENTRIES, wanted)
    assert ([found.name for found in kept], list(remarks)) == (names, warnings)
