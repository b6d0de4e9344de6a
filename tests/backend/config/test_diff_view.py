from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.config.diff_view import Diff, Side, compare, recorded_origins, side_of, side_of_record
from backend.config.errors import ConfigError
from backend.config.masking import Masker
from backend.config.nodes import Origin, node_of
from backend.config.resolution import resolve_config
from backend.config.resolve_view import resolve_view
from backend.io.redact import Redactor
from tests.backend.config.riddle import RIDDLE


def side(tree: Any, *, recorded: bool = False) -> Side:
    return Side("x", node_of(tree, Origin("file", file="x.yaml", line=1)), Masker(Redactor.for_tree(tree)), recorded)


def summary(diff: Diff) -> list[tuple]:
    return [
        (item.kind, item.key, item.left.value if item.left else None, item.right.value if item.right else None, item.effect)
        for item in diff.differences
    ]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "c": 3}, [("removed", "b", 2, None, ""), ("added", "c", None, 3, "")]),
        ({"a": {"x": 1, "y": {}}}, {}, [("removed", "a.x", 1, None, ""), ("removed", "a.y", 0, None, "")]),
        ({"a": 1}, {"a": 1.0}, [("changed", "a", 1, 1.0, "")]),
        ({"a": 1}, {"a": True}, [("changed", "a", 1, True, "")]),
        ({"a": [1, 2, 3]}, {"a": [9]}, [("changed", "a", [1, 2, 3], [9], "replaces a list (3 -> 1)")]),
        ({"a": {"x": 1}}, {"a": None}, [("changed", "a", 1, None, "clears a mapping")]),
        ({"l": [{"n": 1}]}, {"l": [{"n": 2}, {"n": 3}]}, [("changed", "l[0].n", 1, 2, ""), ("added", "l[1].n", None, 3, "")]),
        ({"a": float("nan")}, {"a": float("nan")}, []),
    ],
)  # fmt: skip
def test_differences(left: Any, right: Any, expected: list) -> None:
    assert summary(compare(side(left), side(right))) == expected


def test_secrets_are_changed_without_values() -> None:
    (item,) = compare(side({"a": {"api_key": "sk-one-secret"}}), side({"a": {"api_key": "sk-other-secret"}})).differences
    assert (item.secret, item.left.value, item.right.value) == (True, "****", "****")


def test_masked_values_of_a_record_cannot_be_compared() -> None:
    left = side({"k": {"token": "****"}, "url": "http://u:****@h", "n": {"password": None}}, recorded=True)
    right = side({"k": {"token": "sk-whatever-1"}, "url": "http://u:geheim-geheim@h", "n": {"password": "set-by-now"}})
    diff = compare(left, right)
    assert diff.incomparable == ("k.token", "url")
    assert [(item.key, item.left.value, item.right.value) for item in diff.differences] == [("n.password", None, "****")]


VALUES = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2) | st.lists(st.integers(0, 2), max_size=2)
TREES = st.dictionaries(st.sampled_from("abc"), VALUES | st.dictionaries(st.sampled_from("xy"), VALUES, max_size=2), max_size=3)


@given(TREES, TREES)
def test_a_diff_is_empty_only_for_equal_trees_and_turns_around(one: dict, other: dict) -> None:
    forth, back = compare(side(one), side(other)), compare(side(other), side(one))
    assert (forth.differences == ()) == (repr_of(one) == repr_of(other))
    assert {item.key for item in forth.of_kind("added")} == {item.key for item in back.of_kind("removed")}
    assert {item.key for item in forth.of_kind("changed")} == {item.key for item in back.of_kind("changed")}
    assert forth.equal == back.equal


def repr_of(value: Any) -> str:
    """Distinguishes 1 and true, and ignores the order of keys."""
    return json.dumps(value, sort_keys=True)


def test_resolutions_with_origins_on_both_sides(write, request_for) -> None:
    write(RIDDLE)
    left = side_of(resolve_view(request_for("hard.yaml", "endpoint.yaml")), "A")
    right = side_of(resolve_view(request_for("hard.yaml", "endpoint.yaml", overrides=("++policy_model_name=big",))), "B")
    model, name = compare(left, right).differences
    assert (name.key, name.left.origin.line, name.right.origin.text) == ("policy_model_name", 3, "++policy_model_name=big")
    assert model.key == "policy_model.responses_api_models.openai_model.openai_model"
    assert [origin.text for origin in model.right.passed_on] == ["${policy_model_name}, set by ++policy_model_name=big"]


def test_two_stages_of_one_resolution(write, request_for) -> None:
    write(RIDDLE)
    view = resolve_view(request_for("hard.yaml", "endpoint.yaml"))
    diff = compare(side_of(view, "merged", "merged"), side_of(view, "inherited", "inherited"))
    assert "riddle_rs.resources_servers.riddle.domain" in {item.key for item in diff.of_kind("removed")}
    assert "hard_rs.resources_servers.riddle.domain" in {item.key for item in diff.of_kind("added")}


def test_run_records(tmp_path: Path) -> None:
    record = tmp_path / "run.json"
    content = {"state": "done", "config": {"limit": 3, "l": ["a"]}, "origins": {"limit": "++limit=3"}}
    record.write_text(json.dumps(content, indent=2))
    recorded = side_of_record(record, "run")
    (item,) = compare(recorded, side({"limit": 4, "l": ["a"]})).differences
    assert (item.left.origin.file, item.left.origin.line, item.left.origin.text) == (str(record), 4, "(++limit=3)")


def test_what_a_run_records_is_what_its_side_tells(write, request_for, tmp_path: Path) -> None:
    write(RIDDLE)
    resolved = resolve_config(request_for("hard.yaml", "endpoint.yaml", overrides=("++policy_api_key=sk-not-to-be-kept",)))
    origins = recorded_origins(resolved)
    assert origins["limit"] == f"{tmp_path}/env.yaml:4"
    assert origins["policy_api_key"] == "++policy_api_key=****"
    assert "head_server.port" not in origins
    record = tmp_path / "run.json"
    record.write_text(json.dumps({"config": resolved.redactor.tree(resolved.tree), "origins": origins}))
    diff = compare(side_of_record(record, "run"), side_of(resolve_view(request_for("hard.yaml", "endpoint.yaml")), "now"))
    assert diff.differences == ()


@pytest.mark.parametrize(("text", "part"), [("{", "cannot read"), ("[]", "no `config`"), ('{"a": 1}', "no `config`")])
def test_what_is_no_run_record(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=part):
        side_of_record(path, "run")


def test_records_that_yaml_does_not_read_have_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"config": {"a": "\\ud83d\\ude00", "b": "\x7f"}}')
    assert compare(side_of_record(path, "run"), side({"a": "😀", "b": "\x7f"})).differences == ()
