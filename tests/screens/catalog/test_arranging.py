"""What is listed, in which order, and how much of each kind there is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.catalog.entries import Broken, CatalogEntry, EntryName
from backend.catalog.kinds import KINDS
from screens.catalog.arranging import ORDERS, Component, Wish, arranged, nearest_names


def entry(
    kind: str, name: str, domain: str | None = None, description: str | None = None, *, broken: bool = False
) -> CatalogEntry:
    path = Path("/c") / name
    problem = Broken("no mapping") if broken else None
    return CatalogEntry(
        kind, name, path, Path("/"), path, KINDS[kind].flag, name, domain=domain, description=description, broken=problem
    )


COMPONENTS = (
    entry("benchmark", "math_verified", "math", "short answers"),
    entry("benchmark", "code_golf", "coding", "few letters"),
    entry("environment", "maze", "games"),
    entry("model", "openai_model"),
    entry("resources-server", "math_with_judge", "math", broken=True),
)


def names(wish: Wish, components: tuple[Component, ...] = COMPONENTS) -> list[str]:
    return [ranked.entry.name for ranked in arranged(components, wish).shown]


def test_without_words_by_kind_then_name() -> None:
    assert names(Wish()) == ["code_golf", "math_verified", "maze", "openai_model", "math_with_judge"]


def test_the_best_match_comes_first_and_its_letters_are_known() -> None:
    found = arranged(COMPONENTS, Wish("mathj"))
    assert [ranked.entry.name for ranked in found.shown] == ["math_with_judge"]
    assert found.shown[0].name_positions == (0, 1, 2, 3, 10)
    assert names(Wish("math")) == ["math_verified", "math_with_judge"]
    assert names(Wish("letters")) == ["code_golf"], "the description counts as well"


def test_orders_and_their_reverse() -> None:
    assert names(Wish(order="name")) == ["code_golf", "math_verified", "math_with_judge", "maze", "openai_model"]
    assert names(Wish(order="name", upside_down=True))[0] == "openai_model"
    assert names(Wish(order="domain")) == ["code_golf", "maze", "math_verified", "math_with_judge", "openai_model"]
    assert names(Wish(order="status"))[0] == "math_with_judge"
    assert names(Wish("math", order="kind")) == ["math_verified", "math_with_judge"]


def test_counts_are_of_what_the_text_lets_pass_whatever_the_kind() -> None:
    found = arranged(COMPONENTS, Wish("math", kind="benchmark"))
    assert [ranked.entry.name for ranked in found.shown] == ["math_verified"]
    assert found.counts == {"benchmark": 1, "resources-server": 1} and found.of_all_kinds == 2


def test_only_what_needs_something() -> None:
    found = arranged(COMPONENTS, Wish(needy=True))
    assert [ranked.entry.name for ranked in found.shown] == ["math_with_judge"]
    assert found.needy == 1


def test_a_mistake_is_told_and_the_rest_of_the_text_holds() -> None:
    found = arranged(COMPONENTS, Wish("math kinb:x"))
    assert "kinb" in found.problem and "kind" in found.problem
    assert [ranked.entry.name for ranked in found.shown] == ["math_verified", "math_with_judge"]
    assert len(arranged(COMPONENTS, Wish("kinb:x kinb:y")).shown) == len(COMPONENTS)


def test_names_alone_can_be_arranged() -> None:
    bare = tuple(EntryName(each.kind, each.name, each.path) for each in COMPONENTS)
    assert names(Wish("verified"), bare) == ["math_verified"]
    for order in ORDERS:
        assert len(names(Wish(order=order), bare)) == 5
    assert arranged(bare, Wish(needy=True)).shown == []


def test_near_names() -> None:
    assert nearest_names(COMPONENTS, "math_verifeid")[0] == "math_verified"
    assert nearest_names(COMPONENTS, "kind:bench") == []
    assert nearest_names(COMPONENTS, "kinb:") == []


@pytest.mark.parametrize("order", ORDERS)
@given(text=st.text(max_size=20), kind=st.sampled_from([None, *KINDS]), needy=st.booleans(), upside_down=st.booleans())
def test_any_wish_gives_some_of_the_components_once(
    order: str, text: str, kind: str | None, needy: bool, upside_down: bool
) -> None:
    wish = Wish(text, kind, needy, order, upside_down)
    found = arranged(COMPONENTS, wish)
    keys = [(ranked.entry.kind, ranked.entry.name) for ranked in found.shown]
    assert len(keys) == len(set(keys)) <= found.of_all_kinds
    assert set(keys) <= {(each.kind, each.name) for each in COMPONENTS}
    again = arranged(COMPONENTS, replace(wish, upside_down=not upside_down))
    assert [each.entry for each in again.shown] == [each.entry for each in found.shown][::-1]
