"""Bounds on what a file may hold: refused before anything is expanded, and nothing that anybody writes is refused."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from backend.config import yaml_loader
from backend.config.yaml_loader import MAX_DEPTH, loader_for, refuse_bombs


def document(text: str) -> yaml.Node:
    node: yaml.Node = loader_for(text).get_single_node()
    return node


def value_of(text: str) -> object:
    return loader_for(text).get_single_data()


TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
    max_leaves=20,
)


def size(value: object) -> int:
    if isinstance(value, dict | list):
        return 1 + sum(map(size, value.values() if isinstance(value, dict) else value))
    return 1


@given(tree=TREES)
def test_the_bound_is_the_number_of_values(tree: object) -> None:
    node = document(yaml.safe_dump({"top": tree}))
    exact = size({"top": tree})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_loader, "MAX_NODES", exact)
        refuse_bombs(node)
        patch.setattr(yaml_loader, "MAX_NODES", exact - 1)
        with pytest.raises(yaml.YAMLError, match="values"):
            refuse_bombs(node)


def test_aliases_count_as_often_as_they_stand_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_loader, "MAX_NODES", 13)
    refuse_bombs(document("a: &a [1, 2, 3]\nb: *a\nc: *a\n"))
    monkeypatch.setattr(yaml_loader, "MAX_NODES", 12)
    with pytest.raises(yaml.YAMLError, match="expands to more than 12 values"):
        refuse_bombs(document("a: &a [1, 2, 3]\nb: *a\nc: *a\n"))


@pytest.mark.parametrize("levels", [MAX_DEPTH - 1, MAX_DEPTH])
def test_levels(levels: int) -> None:
    node = document("a: " + "[" * levels + "]" * levels)
    if levels < MAX_DEPTH:
        refuse_bombs(node)
    else:
        with pytest.raises(yaml.YAMLError, match="nested more than"):
            refuse_bombs(node)


def test_a_wide_file_is_noticed_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_loader, "MAX_NODES", 100)
    document("[" + "1," * 98 + "1]")
    with pytest.raises(yaml.YAMLError, match="has more than 100 values"):
        document("[" + "1," * 100 + "1]")


@pytest.mark.parametrize("text", ["9" * 2000, "-1_000", "0x" + "f" * 2000, "1:30", "1:30.5", "1e400", ".5", "010"])
def test_numbers(text: str) -> None:
    assert isinstance(value_of(text), int | float)


@pytest.mark.parametrize("text", ["9" * 4000, ":".join(["59"] * 3000), ":".join(["59"] * 3000) + ".5", "!!int x", "!!float x"])
def test_numbers_without_end_are_refused_where_they_stand(text: str) -> None:
    with pytest.raises(yaml.constructor.ConstructorError, match="cannot be read as a number; quote it") as caught:
        value_of(f"a: 1\nb: {text}\n")
    assert caught.value.problem_mark.line == 1
