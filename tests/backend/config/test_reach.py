"""How far interpolations lead: counts worked out by hand, and that a bomb is refused before it goes off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.config.findings import Findings
from backend.config.interpolation import resolve_text, resolve_tree
from backend.config.merge import merge_into
from backend.config.nodes import Node, Origin, find, node_of, parse_path, plain
from backend.config.reach import MOST_LINKS, Reach


def tree_of(values: dict) -> Node:
    return node_of(values, Origin("file", file="a.yaml"))


def reach_of(values: dict, key: str) -> tuple[int, int]:
    root, path = tree_of(values), parse_path(key)
    node = find(root, path)
    assert node is not None
    return Reach(root).of(path, node)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"x": "plain"}, (0, 0)),
        ({"x": "${y}", "y": 1}, (1, 1)),
        ({"x": "${y}${y}", "y": "${z}", "z": 1}, (4, 2)),
        ({"x": "${oc.select:y}-${oc.env:HOME}", "y": "${z}", "z": 1}, (3, 2)),
        ({"x": "${m}", "m": {"a": "${z}", "b": ["${z}", 1]}, "z": 1}, (3, 2)),
        ({"x": "${gone}"}, (1, 1)),
        ({"x": "${y}", "y": "${x}"}, (2, 2)),
        ({"x": "${x}"}, (1, 1)),
        ({"x": {"a": "${.b}", "b": "${..c}"}, "c": "${d}", "d": 1}, (5, 3)),
    ],
)
def test_counts(values: dict, expected: tuple[int, int]) -> None:
    assert reach_of(values, "x") == expected


def bomb(reference: str) -> dict:
    return {"a0": "x", **{f"a{n}": reference.replace("@", f"a{n - 1}") * 10 for n in range(1, 12)}}


@pytest.mark.parametrize("reference", ["${@}", "${oc.select:@}", "${.@}", "${oc.decode:${@}}"])
def test_a_bomb_is_one_finding(reference: str) -> None:
    findings = Findings()
    root = tree_of(bomb(reference))
    resolve_tree(root, findings)
    told = [error.message for error in findings.errors if "so many other keys" in error.message]
    assert told == ["config value 'a3' refers to so many other keys in turn that nobody can mean it, and so do 8 others"]
    assert findings.errors[0].place.file == "a.yaml"


def test_a_long_chain_is_one_finding_and_a_short_one_has_a_value() -> None:
    def chain(length: int) -> dict:
        return {**{f"k{n}": f"${{k{n + 1}}}" for n in range(length)}, f"k{length}": "end"}

    findings = Findings()
    root = tree_of(chain(MOST_LINKS))
    resolve_tree(root, findings)
    assert set(plain(root).values()) == {"end"}
    assert not findings.errors
    resolve_tree(tree_of(chain(3000)), findings)
    (error,) = findings.errors
    assert error.message.endswith("and so do 2899 others")


def test_texts_and_merges_are_guarded_as_well() -> None:
    root = tree_of(bomb("${@}"))
    with pytest.raises(ValueError, match="so many other keys"):
        resolve_text(root, "${a11}")
    merge_into(root, tree_of({"a11": {"x": 1}}))
    assert plain(root)["a11"] == {"x": 1}


NAMES = ("a", "b", "c", "d")
VALUES = st.recursive(
    st.one_of(st.just(1), st.lists(st.sampled_from([f"${{{name}}}" for name in NAMES]), max_size=3).map("".join)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)),
    max_leaves=6,
)


@given(st.fixed_dictionaries(dict.fromkeys(NAMES, VALUES)))
def test_it_ends_on_any_tree(values: dict) -> None:
    root = tree_of(values)
    reach = Reach(root)
    for name in NAMES:
        node = find(root, (name,))
        assert node is not None
        evaluations, links = reach.of((name,), node)
        assert 0 <= links <= evaluations
