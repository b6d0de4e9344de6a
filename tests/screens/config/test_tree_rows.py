"""Rows of the tree: folds, filters, problems, what a stage did."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from backend.config.findings import Finding
from backend.config.request import ConfigRequest
from backend.config.resolve_view import ResolvedView, resolve_view
from backend.errors import Place
from screens.config.tree_rows import Tree, TreeRows, tree_of
from screens.widgets import glyphs

YAML = """\
one:
  two:
    three: {a: 1, b: [1, {c: 2}], e: []}
missing: ???
x: {y: 1}
copy:
  _copy: x
"""


@pytest.fixture
def view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ResolvedView:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(YAML)
    return resolve_view(ConfigRequest(("a.yaml",), overrides=("++x.y=2", "++x.y=3")))


def tree(view: ResolvedView, stage: str, *findings: Finding) -> Tree:
    return tree_of(next(each for each in view.stages if each.name == stage), view.stages, findings, lambda text: text)


def keys(rows: TreeRows) -> list[str]:
    return [rows.at(index).key for index in range(len(rows))]


def signs(rows: TreeRows) -> dict[str, str]:
    return {rows.at(index).key: rows.row(index).sign for index in range(len(rows)) if rows.row(index).sign}


def test_mappings_that_hold_one_mapping_share_a_row_below_the_top(view: ResolvedView) -> None:
    merged = tree(view, "merged")
    rows = [(row.depth, row.label) for row in merged.rows if row.key.startswith("one")]
    assert rows == [(0, "one"), (1, "two.three"), (2, "a"), (2, "b"), (3, "[0]"), (3, "[1]"), (4, "c"), (2, "e")]
    assert merged.rows[merged.places["one.two"]].key == "one.two.three"
    assert merged.nearest("one.two.three.b[1].c") == merged.places["one.two.three.b[1].c"]
    assert merged.nearest("one.two.gone.x") == merged.places["one.two"]
    assert merged.nearest("gone") is None


def test_values_and_writers_are_told(view: ResolvedView) -> None:
    merged = tree(view, "merged")
    cells = {row.key: (row.value, row.note, row.source) for row in merged.rows}
    assert cells["missing"] == ("⟨missing⟩", "", "L2:4")
    assert cells["x.y"] == ("3", "was 2", "L4 ³")
    assert cells["one.two.three.b"] == ("a list of 2 elements", "", "L2:3")
    assert cells["one.two.three.e"] == ("[]", "", "L2:3")
    glyphs.use(glyphs.ASCII)
    try:
        assert {row.key: row.source for row in tree(view, "merged").rows}["x.y"] == "L4 3"
    finally:
        glyphs.use(glyphs.UNICODE)


def test_folded_rows_hide_what_is_below_and_show_its_worst_problem(view: ResolvedView) -> None:
    findings = (Finding("warning", "w", Place(key="one.two.three.a")), Finding("error", "e", Place(key="one.two.three.b[1].c")))
    merged = tree(view, "merged", *findings)
    assert signs(TreeRows(merged, frozenset())) == {"one.two.three.a": "!", "one.two.three.b[1].c": "✗"}
    rows = TreeRows(merged, frozenset({"one.two.three.b"}))
    assert "one.two.three.b[1].c" not in keys(rows) and signs(rows)["one.two.three.b"] == "✗"
    rows = TreeRows(merged, frozenset({"one", "one.two.three"}))
    assert "one.two.three" not in keys(rows) and signs(rows) == {"one": "✗"}
    assert rows.index_of("one.two.three.a") == rows.index_of("one")


def test_words_keep_matches_with_their_parents_lit(view: ResolvedView) -> None:
    rows = TreeRows(tree(view, "merged"), frozenset({"one"}), words=("THREE.B", "2"))
    assert keys(rows) == ["one", "one.two.three", "one.two.three.b", "one.two.three.b[1]", "one.two.three.b[1].c"]
    assert rows.hits == 2
    lit = TreeRows(tree(view, "merged"), frozenset(), words=("miss",)).row(0).cells
    assert [cell.lit for cell in lit][:2] == [(0, 1, 2, 3), (1, 2, 3, 4)]  # type: ignore[union-attr]


def test_only_what_a_stage_changed(view: ResolvedView) -> None:
    rows = TreeRows(tree(view, "inherited"), frozenset(), changed_only=True)
    assert [(key, rows.row(index).cells[1].text) for index, key in enumerate(keys(rows))] == [  # type: ignore[union-attr]
        ("copy", ""),
        ("copy.y", "3  + added"),
        ("copy._copy", "x  − removed"),
    ]
    assert "copy._copy" not in keys(TreeRows(tree(view, "inherited"), frozenset()))


def test_many_keys_are_filtered_with_few_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("".join(f"k{number}: {{a: 1, b: {{c: x{number}}}}}\n" for number in range(500)))
    whole = tree(resolve_view(ConfigRequest(("a.yaml",))), "merged")
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    rows = TreeRows(whole, frozenset(), words=("x499",))
    sys.setprofile(None)
    assert calls < 5 * 2000  # of functions, for each key
    assert keys(rows) == ["k499", "k499.b", "k499.b.c"]
