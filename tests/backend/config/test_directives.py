from __future__ import annotations

from typing import Any

import pytest

from backend.config.directives import apply_directives
from backend.config.errors import ConfigError, ConfigMergeError, InheritPathNotFoundError
from backend.config.findings import Findings
from backend.config.nodes import Node, Origin, find, node_of, plain
from backend.config.yaml_source import parse_plain


def tree_of(text: str) -> Node:
    return node_of(parse_plain(text, "f.yaml"), Origin("file", file="f.yaml", line=1))


def applied(text: str) -> Any:
    findings = Findings()
    tree = plain(apply_directives(tree_of(text), findings))
    findings.raise_first()
    return tree


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: {x: 1, l: [1]}\nb: {_inherit_from: a, l: [2], z: 3}", {"b": {"x": 1, "l": [2], "z": 3}}, id="move"),
        pytest.param("a: {x: 1}\nb: {_copy: a, y: 2}", {"a": {"x": 1}, "b": {"x": 1, "y": 2}}, id="copy"),
        pytest.param("a: {x: 1}\nb: {_inherit_from: a}\nc: {_inherit_from: a}", {"b": {"x": 1}, "c": {"x": 1}}, id="many heirs"),
        pytest.param("a: {l: [7], s: 1}\nb: ${inherit_from:a.l}", {"a": {"s": 1}, "b": [7]}, id="text form moves"),
        pytest.param("a: {s: 1}\nb: ${copy:a.s}", {"a": {"s": 1}, "b": 1}, id="text form copies"),
        pytest.param("a: {x: {y: '???', z: 1}}\nb: {_copy: a.x.y, q: 1}", {"a": {"x": {"y": "???", "z": 1}}, "b": "???"}, id="unset leaf"),
        pytest.param("a: ???\nb: {_copy: a.x, q: 1}", {"a": "???", "b": "???"}, id="unset ancestor"),
        pytest.param("a: {x: 1}\nb: {_copy: a, _inherit_from: c}\nc: {r: 1}", {"b": {"x": 1}, "c": {"r": 1}}, id="both"),
        pytest.param("c: {_copy: b, n: 1}\nb: {_copy: a, m: 2}\na: {k: 1}", {"c": {"k": 1, "m": 2, "n": 1}, "b": {"k": 1, "m": 2}, "a": {"k": 1}}, id="chain against the order"),
        pytest.param("c: {_inherit_from: b}\nb: {_inherit_from: a, m: 2}\na: {k: 1}", {"c": {"k": 1, "m": 2}}, id="chain of moves"),
        pytest.param("a: {x: {k: 1}}\nb: {_copy: a}\nc: {_copy: b.x}", {"a": {"x": {"k": 1}}, "b": {"x": {"k": 1}}, "c": {"k": 1}}, id="from inside an heir"),
        pytest.param("a: {x: 1}\nl: [{_copy: a, y: 2}, '${copy:a.x}', 3]", {"a": {"x": 1}, "l": [{"x": 1, "y": 2}, 1, 3]}, id="list elements"),
        pytest.param("l: [{x: 1}, 2]\nb: {_inherit_from: l.0}\nc: {_copy: 'l[0]'}", {"l": [2], "b": {"x": 1}, "c": {"x": 1}}, id="from a list"),
        pytest.param("a: {x: 1, y: 2, _delete_key: 'x, nope'}", {"a": {"y": 2}}, id="delete local"),
        pytest.param("a: {x: 1, y: 2}\nb: {_copy: a, _delete_key: 'x'}", {"a": {"x": 1, "y": 2}, "b": {"y": 2}}, id="delete inherited"),
        pytest.param("a: {x: 1, y: 2, z: 3}\nb: {_copy: a, _delete_key: [x, z]}", {"a": {"x": 1, "y": 2, "z": 3}, "b": {"y": 2}}, id="delete a list"),
        pytest.param("a: {n: {x: 1, y: 2}}\nb: {_inherit_from: a, n: {_delete_key: x, w: 3}}", {"b": {"n": {"y": 2, "w": 3}}}, id="nested delete"),
        pytest.param("p: a\na: {x: 1}\nb: {_copy: '${p}'}", {"p": "a", "a": {"x": 1}, "b": {"x": 1}}, id="interpolated path"),
        pytest.param("a: {k: '${t}'}\nt: {u: 1}\nb: {_copy: a, k: {v: 2}}", {"a": {"k": "${t}"}, "t": {"u": 1}, "b": {"k": {"u": 1, "v": 2}}}, id="merge onto an interpolation"),
        pytest.param("x: 'text ${copy:a}'", {"x": "text ${copy:a}"}, id="not the whole text"),
    ],
)  # fmt: skip
def test_effects(text: str, expected: Any) -> None:
    assert applied(text) == expected


@pytest.mark.parametrize(
    ("text", "error", "part"),
    [
        ("b: {_copy: nope.x}", InheritPathNotFoundError, "takes its value from 'nope.x' (_copy), which does not exist"),
        ("abc: {x: 1}\nb: {_inherit_from: abd}", InheritPathNotFoundError, "Did you mean `abc`?"),
        ("a: {xyz: 1}\nb: ${copy:a.xyw}", InheritPathNotFoundError, "Did you mean `a.xyz`?"),
        ("a: {_copy: b}\nb: {_copy: c}\nc: {_copy: a}", InheritPathNotFoundError, "a -> b -> c -> a"),
        ("a: {b: {_copy: a}}", InheritPathNotFoundError, "circle"),
        ("b: {_copy: [a]}", InheritPathNotFoundError, "dotted path"),
        ("a: {x: 1}\nb: {_copy: a, _delete_key: q}", ConfigError, "names 'q', which 'b' does not have"),
        ("a: {_delete_key: {x: 1}}", ConfigError, "names separated by commas"),
        ("a: 1\nb: {_copy: a, q: 2}", ConfigMergeError, "a is not a mapping"),
    ],
)
def test_errors(text: str, error: type[ConfigError], part: str) -> None:
    with pytest.raises(error) as caught:
        applied(text)
    assert part in str(caught.value)
    assert caught.value.place.file == "f.yaml"


def test_both_directives_on_one_mapping_are_remarked() -> None:
    findings = Findings()
    apply_directives(tree_of("a: {x: 1}\nb: {_copy: a, _inherit_from: c}\nc: {r: 1}"), findings)
    assert "_copy is moved" in findings.warnings[0].message


def test_heirs_tell_where_a_value_was_written_and_what_brought_it() -> None:
    root = apply_directives(tree_of("a: {x: 1, y: 2}\nb: {_copy: a, y: 3}"), Findings())
    kinds = [(setting.origin.kind, setting.value) for setting in find(root, ("b", "y")).history]
    assert kinds == [("file", 2), ("directive", 2), ("file", 3)]
    inherited = find(root, ("b", "x"))
    assert inherited.origin.text == "_copy: a"
    assert inherited.source.file == "f.yaml"
    assert find(root, ("a", "x")).origin.kind == "file"


def test_a_tree_without_directives_is_left_alone() -> None:
    root = tree_of("a: {x: 1}")
    assert apply_directives(root, Findings()) is root


def test_all_wrong_directives_are_told_and_the_others_applied() -> None:
    findings = Findings()
    tree = plain(apply_directives(tree_of("a: {_copy: nothing, x: 1}\nb: ${copy:neither}\nc: {_copy: a, y: 2}"), findings))
    assert tree == {"a": {"x": 1}, "b": None, "c": {"x": 1, "y": 2}}
    assert len(findings.errors) == 2
    assert (findings.holes, findings.incomplete) == ({"a", "b"}, False)


def test_a_circle_is_told_once() -> None:
    findings = Findings()
    apply_directives(tree_of("a: {_copy: b, x: 1}\nb: {_copy: a, y: 2}"), findings)
    assert len(findings.errors) == 1
