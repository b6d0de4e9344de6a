from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from backend.config.errors import ConfigMergeError
from backend.config.merge import merge_into
from backend.config.nodes import Node, Origin, find, node_of, plain


def merge_all(*layers: dict[str, Any]) -> Node:
    root = Node({}, ())
    for number, layer in enumerate(layers, 1):
        merge_into(root, node_of(layer, Origin("file", file=f"{number}.yaml", line=number)))
    return root


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        ({"k": {"a": 1, "b": {"c": 2}}}, {"k": {"b": {"d": 3}}}, {"a": 1, "b": {"c": 2, "d": 3}}),
        ({"k": [1, 2, 3]}, {"k": [9]}, [9]),
        ({"k": {"X": 1}}, {"k": None}, None),
        ({"k": [1]}, {"k": None}, None),
        ({"k": None}, {"k": {"a": 1}}, {"a": 1}),
        ({"k": {"a": 1}}, {"k": 5}, 5),
        ({"k": 5}, {"k": {"a": 1}}, {"a": 1}),
        ({"k": 5}, {"k": "???"}, 5),
        ({"k": {"a": 1}}, {"k": "???"}, {"a": 1}),
        ({"k": "???"}, {"k": 5}, 5),
        ({"t": {"a": 1}, "k": "${t}"}, {"k": {"b": 2}}, {"a": 1, "b": 2}),
        ({"t": {"u": {"a": 1}}, "k": "${.t.u}"}, {"k": {"b": 2}}, {"a": 1, "b": 2}),
        ({"k": "${nothing}"}, {"k": {"b": 2}}, {"b": 2}),
    ],
)
def test_rules(earlier: dict, later: dict, expected: Any) -> None:
    assert plain(merge_all(earlier, later))["k"] == expected


@pytest.mark.parametrize(("earlier", "later"), [({"a": 1}, [1]), ([1], {"a": 1})])
def test_mapping_against_list_is_an_error_with_both_places(earlier: Any, later: Any) -> None:
    with pytest.raises(ConfigMergeError) as caught:
        merge_all({"s": {"k": earlier}}, {"s": {"k": later}})
    assert "'s.k'" in caught.value.message
    assert "1.yaml:1" in caught.value.message
    assert caught.value.place.file == "2.yaml"


def test_the_chain_of_a_key_is_kept_from_the_first_layer_on() -> None:
    root = merge_all({"s": {"k": 1, "l": [1, 2, 3]}}, {"s": {"k": 2}}, {"s": {"k": "???"}}, {"s": {"k": 4, "l": [9]}})
    node = find(root, ("s", "k"))
    assert [(setting.origin.file, setting.value) for setting in node.history] == [("1.yaml", 1), ("2.yaml", 2), ("4.yaml", 4)]
    assert [setting.value for setting in find(root, ("s", "l")).history] == [[1, 2, 3], [9]]
    assert [setting.origin.file for setting in find(root, ("s",)).history] == ["1.yaml", "2.yaml", "3.yaml", "4.yaml"]


def test_a_cleared_mapping_keeps_what_it_beat() -> None:
    root = merge_all({"server": {"env": {"X": 1}}}, {"server": {"env": None}})
    assert [setting.value for setting in find(root, ("server", "env")).history] == [{"X": 1}, None]


def test_layers_are_not_changed() -> None:
    first, second = node_of({"a": {"b": 1}}, Origin("file")), node_of({"a": {"c": 2}}, Origin("file"))
    root = Node({}, ())
    merge_into(root, first)
    merge_into(root, second)
    assert plain(first) == {"a": {"b": 1}}
    assert plain(second) == {"a": {"c": 2}}
    assert plain(root) == {"a": {"b": 1, "c": 2}}


_KEYS = st.sampled_from(["a", "b", "c"])
_LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["x", "???", "${a}", "${b}", "${a.b}", "${.c}", "t ${a}"])
)
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.dictionaries(_KEYS, inner, max_size=3) | st.lists(inner, max_size=2), max_leaves=8
)
_LAYERS = st.lists(st.dictionaries(_KEYS, _VALUES, max_size=3), min_size=1, max_size=4)


@settings(max_examples=200, deadline=None)
@given(_LAYERS)
def test_merges_as_omegaconf_does(layers: list[dict[str, Any]]) -> None:
    try:
        expected = OmegaConf.to_container(OmegaConf.merge(*map(OmegaConf.create, layers)))
    except Exception:
        # OmegaConf also refuses some merges onto interpolations of scalars; what it refuses is not compared.
        return
    assert plain(merge_all(*layers)) == expected


def test_an_interpolation_of_what_contains_it_is_replaced() -> None:
    assert plain(merge_all({"b": {"b": "${b}", "c": 1}}, {"b": {"b": {"x": 1}}})) == {"b": {"b": {"x": 1}, "c": 1}}
