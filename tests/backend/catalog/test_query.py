from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.catalog.entries import CatalogEntry, Dataset, EntryName, Manifest, Server
from backend.catalog.kinds import KINDS
from backend.catalog.query import FIELDS, CatalogQuery, Condition, parse_query, rank
from backend.errors import GymError

HERE = Path("/x")


def entry(
    name: str, kind: str = "benchmark", domain: str | None = None, description: str | None = None, **fields
) -> CatalogEntry:
    return CatalogEntry(kind, name, HERE, HERE, HERE, KINDS[kind].flag, name, domain=domain, description=description, **fields)


ENTRIES = [
    entry("math_hard_verified", domain="math", description="Short answers"),
    entry("math_verified", domain="math", description="Graded by a symbolic checker"),
    entry("math_with_judge", "resources-server", "math", "Answers graded by a model"),
    entry("aime24", domain="math", description="Olympiad mathematics"),
    entry("simple_agent", "agent"),
    entry("openai_model", "model"),
    entry("walk", "environment", "games", "Walks; a judge looks on"),
]


def names(query: str, entries=ENTRIES) -> list[str]:
    return [ranked.entry.name for ranked in rank(entries, parse_query(query))]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("math ver", ["math_verified", "math_hard_verified"]),
        ("ver math", ["math_verified", "math_hard_verified"]),
        ("MATH", ["math_verified", "math_with_judge", "math_hard_verified", "aime24"]),
        ("kind:bench domain:math", ["math_hard_verified", "math_verified", "aime24"]),
        ("kind:bench,agent -kind:agent checker", ["math_verified"]),
        ("math -judge", ["math_verified", "math_hard_verified", "aime24"]),
        ("-judge kind:env", []),
        ('"judge looks"', ["walk"]),
        ('-"judge looks" kind:env', []),
        ("domain:MATH kind:rs", ["math_with_judge"]),
        ("-domain:math,games", ["simple_agent", "openai_model"]),
        ("name:aime24", ["aime24"]),
        ("domain:mat", []),
        ("kind: domain:", [item.name for item in ENTRIES]),
        ("", [item.name for item in ENTRIES]),
        ("  ", [item.name for item in ENTRIES]),
        ("- ", [item.name for item in ENTRIES]),
        ("nothing_like_that", []),
    ],
)
def test_queries(query: str, expected: list[str]) -> None:
    assert names(query) == expected


def test_matched_letters() -> None:
    (ranked,) = rank(ENTRIES, parse_query("hard ver short"))
    assert ranked.name_positions == (5, 6, 7, 8, 10, 11, 12)
    assert ranked.description_positions == (0, 1, 2, 3, 4)
    assert "".join(ranked.entry.name[place] for place in ranked.name_positions) == "hardver"


def test_a_name_counts_more_than_a_description() -> None:
    entries = [entry("zzz", description="walk walk walk"), entry("walk_far_away_from_here")]
    assert names("walk", entries) == ["walk_far_away_from_here", "zzz"]


def test_equals_are_in_the_order_of_names() -> None:
    entries = [entry(name) for name in ("b1", "a1", "C1", "c1")]
    assert names("1", entries) == ["a1", "b1", "C1", "c1"]


MANIFEST = Manifest(HERE, "1", "custom-gym-verifier", "text", "MIT", "deprecated")
DATA = Dataset("gpqa", "benchmark", "a", "responses_api_agents", "x.jsonl", license="Apache 2.0")
FULL = entry(
    "full",
    domain="math",
    manifest=MANIFEST,
    datasets=(DATA,),
    servers=(
        Server("a", "responses_api_agents", "simple_agent"),
        Server("r", "resources_servers", "mcqa"),
        Server("m", "responses_api_models", "vllm_model"),
    ),
)


@pytest.mark.parametrize(
    "term",
    [
        "status:nodata", "status:no-data", 'status:"no data"', "state:no", "status:experimental", "licence:mit", "license:mit",
        'licensing:"Apache 2.0"', "modality:text", "lifecycle:deprecated", "agent:simple_agent", "server:mcqa", "rs:mcqa",
        "model:vllm_model", "dataset:gpqa", "data:gpqa", "Kind:BENCHMARKS",
    ],
)  # fmt: skip
def test_fields(term: str) -> None:
    assert names(term, [FULL]) == ["full"]
    assert names(f"-{term}", [FULL]) == []


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("domian:math", "components have no `domian`", "Did you mean `domain`?"),
        ("zzzzz:math", "components have no `zzzzz`", f"known are {', '.join(FIELDS)}"),
        ("kind:bnechmark", "there is no kind `bnechmark`", "Did you mean `benchmark`?"),
        ("status:brokn", "there is no status `brokn`", "Did you mean `broken`?"),
    ],
)
def test_mistakes(query: str, message: str, hint: str) -> None:
    with pytest.raises(GymError) as caught:
        parse_query(query)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_parsing() -> None:
    assert parse_query('kind:rs,model -domain:x Word -"not this" "open') == CatalogQuery(
        (Condition("kind", ("resources-server", "model")), Condition("domain", ("x",), negated=True)),
        ("word", "open"),
        ("not this",),
    )


def test_bare_names_can_be_ranked() -> None:
    bare = [EntryName(item.kind, item.name, HERE) for item in ENTRIES]
    assert [ranked.entry.name for ranked in rank(bare, parse_query("kind:bench ver"))] == ["math_verified", "math_hard_verified"]
    assert rank(bare, parse_query("domain:math")) == []


@given(st.text(alphabet='abk:-", \t\nind漢', max_size=20))
def test_any_text_is_a_query_or_an_error_of_ours(text: str) -> None:
    try:
        query = parse_query(text)
    except GymError:
        return
    for ranked in rank(ENTRIES, query):
        assert ranked.entry in ENTRIES
        assert all(place < len(ranked.entry.name) for place in ranked.name_positions)
