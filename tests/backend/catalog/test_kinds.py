from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.catalog.kinds import KINDS, kind_named

WORD = st.from_regex(r"[a-z][a-z0-9_.-]{0,8}", fullmatch=True)


@pytest.mark.parametrize(
    ("kind", "relative", "name"),
    [
        ("benchmark", "x/config.yaml", "x"),
        ("benchmark", "x/other.yaml", "x/other"),
        ("benchmark", "x/v6/config.yaml", "x/v6/config"),
        ("benchmark", "tau2/configs/tau2.yaml", "tau2/configs/tau2"),
        ("benchmark", "config.yaml", "config"),
        ("resources-server", "mcqa/configs/mcqa.yaml", "mcqa"),
        ("resources-server", "equivalence_rule/configs/lc.yaml", "equivalence_rule/lc"),
        ("model", "local_vllm_model/configs/Qwen/small.yaml", "local_vllm_model/Qwen/small"),
    ],
)
def test_names_of_files(kind: str, relative: str, name: str) -> None:
    assert KINDS[kind].name_of(relative) == name


@given(kind=st.sampled_from(list(KINDS.values())), parts=st.lists(WORD, min_size=1, max_size=3))
def test_the_name_of_a_file_leads_back_to_it(kind, parts: list[str]) -> None:
    name = "/".join(parts)
    for candidate in kind.candidates(name):
        shown = kind.name_of(candidate.removeprefix(f"{kind.parent}/"))
        assert candidate in kind.candidates(shown)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("bench", "benchmark"),
        ("Benchmarks", "benchmark"),
        ("b", "benchmark"),
        ("env", "environment"),
        ("rs", "resources-server"),
        ("resources_servers", "resources-server"),
        ("resources server", "resources-server"),
        ("--model-type", "model"),
        ("agent-type", "agent"),
        ("", None),
        ("dataset", None),
    ],
)
def test_words_for_kinds(word: str, kind: str | None) -> None:
    found = kind_named(word)
    assert (found.name if found else None) == kind
