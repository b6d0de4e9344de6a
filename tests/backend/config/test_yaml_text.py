from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.config.yaml_source import parse_plain
from backend.config.yaml_text import to_yaml

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8"))
KEYS = st.text(st.characters(codec="utf-8"), min_size=1)
TREES = st.dictionaries(
    KEYS,
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8),
)


@given(TREES)
def test_reads_back_as_the_same_values(tree: dict) -> None:
    assert parse_plain(to_yaml(tree) if tree else "", "f.yaml") == tree


@pytest.mark.parametrize(
    "text", ["1e3", "017", "1:30", "yes", "null", "~", "???", "2024-01-02", "1_000", "${a}", "=", "a: b", "#x", ""]
)
def test_texts_stay_texts(text: str) -> None:
    assert parse_plain(to_yaml({"k": text}), "f.yaml") == {"k": text}


def test_block_style_in_the_order_of_the_keys() -> None:
    shared = ["x"]
    assert to_yaml({"b": {"y": shared, "x": shared}, "a": {}}) == "b:\n  y:\n  - x\n  x:\n  - x\na: {}\n"


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert parse_plain(to_yaml({"k": "a\udcff"}), "f.yaml") == {"k": "a?"}
