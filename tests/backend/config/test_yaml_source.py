from __future__ import annotations

import math
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from backend.config import yaml_loader
from backend.config.errors import ConfigSyntaxError
from backend.config.nodes import find, plain
from backend.config.yaml_source import load_plain, load_source, parse_plain


def nodes_of(tmp_path: Path, text: str):
    path = tmp_path / "f.yaml"
    path.write_text(text, encoding="utf-8")
    return load_source(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: yes\nb: off", {"a": True, "b": False}),
        ("a: 017\nb: 1:30", {"a": 15, "b": 90}),
        ("a: 1e3\nb: 1E-2\nc: -2e+1", {"a": 1000.0, "b": 0.01, "c": -20.0}),
        ("a: 2024-01-31\nb: 2024-01-31 10:00:00", {"a": "2024-01-31", "b": "2024-01-31 10:00:00"}),
        ("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}", {"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 3}}),
        ("", {}),
        ("# nothing\n", {}),
        ("word\n", {"word": None}),
        ("a: '???'\nb: ???", {"a": "???", "b": "???"}),
        ("2: a\ntrue: b", {2: "a", True: "b"}),
        ("\ufeffa: 1", {"a": 1}),
        ("op: =", {"op": "="}),
    ],
)
def test_dialect(tmp_path: Path, text: str, expected: dict) -> None:
    assert plain(nodes_of(tmp_path, text).root) == expected
    assert parse_plain(text.removeprefix("\ufeff"), "f.yaml") == expected


def test_positions_name_file_line_and_column_of_each_key(tmp_path: Path) -> None:
    source = nodes_of(tmp_path, "a:\n  b: 1\n  list:\n    - x\n    - y: 2\n")
    where = {
        keys: (find(source.root, keys).source.line, find(source.root, keys).source.column)
        for keys in [("a",), ("a", "b"), ("a", "list"), ("a", "list", 0), ("a", "list", 1), ("a", "list", 1, "y")]
    }
    assert where == {
        ("a",): (1, 1),
        ("a", "b"): (2, 3),
        ("a", "list"): (3, 3),
        ("a", "list", 0): (4, 7),
        ("a", "list", 1): (5, 7),
        ("a", "list", 1, "y"): (5, 7),
    }
    assert find(source.root, ("a", "b")).source.file == str(tmp_path / "f.yaml")


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ("foo: [1, 2\n", 2, 1, "malformed YAML"),
        ("a: 1\nb: 2\na: 3\n", 3, 1, "the key 'a' is there twice"),
        ("m:\n  x: 1\n  x: 2\n", 3, 3, "the key 'x' is there twice"),
        ("- a\n- b\n", 1, 1, "must be a mapping, this is a list"),
        ("42\n", 1, 1, "must be a mapping, this is a single value"),
        ("a: !!python/object:os.system x\n", 1, 4, "python/object"),
        ("a: !mine x\n", 1, 4, "!mine"),
        ("a: 1\n---\nb: 2\n", 2, 1, "malformed YAML"),
        ("a: &x [1, *x]\n", 1, 4, "contains itself"),
        ("a: !!set {x}\n", 1, 4, "not supported"),
        ("a: !!timestamp 2024-01-01\n", 1, 4, "not supported"),
        ("? [1, 2]\n: x\n", 1, 3, "a key must be a word or a number"),
        ("a: b: c\n", 1, 5, "malformed YAML"),
    ],
)
def test_errors_have_a_place(tmp_path: Path, text: str, line: int, column: int, part: str) -> None:
    with pytest.raises(ConfigSyntaxError) as caught:
        nodes_of(tmp_path, text)
    error = caught.value
    assert part in error.message
    assert error.place is not None
    assert (error.place.file, error.place.line, error.place.column) == (str(tmp_path / "f.yaml"), line, column)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    for load in (load_source, load_plain):
        with pytest.raises(ConfigSyntaxError, match="not UTF-8") as caught:
            load(path)
        assert caught.value.place.line == 2
    path.write_bytes(b"a: 1\nb: \x01\n")
    with pytest.raises(ConfigSyntaxError, match="does not allow"):
        load_source(path)


def test_missing_file(tmp_path: Path) -> None:
    for load in (load_source, load_plain):
        with pytest.raises(ConfigSyntaxError, match="cannot read the file"):
            load(tmp_path / "none.yaml")


def test_expansion_and_depth_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_loader, "MAX_NODES", 1000)
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)
    )
    with pytest.raises(ConfigSyntaxError, match="expands to more than"):
        nodes_of(tmp_path, bomb)
    with pytest.raises(ConfigSyntaxError, match="nested"):
        nodes_of(tmp_path, "a: " + "[" * 300 + "]" * 300)
    with pytest.raises(ConfigSyntaxError):
        parse_plain("a: " + "[" * 100_000, "f.yaml")


@pytest.mark.parametrize(
    ("text", "remarks"),
    [
        ("num_repeats: {no: 4, on: 2}", ["the key `no` as false", "the key `on` as true"]),
        ("version: 1.10", ["`version: 1.10` as the number 1.1"]),
        ("at: 12:30:45", ["`at: 12:30:45` as the number 45045"]),
        ("id: 010", ["`id: 010` as the number 8"]),
        ("languages: [en, no]", ["`no` in this list as a boolean"]),
        ("enabled: yes\ntemperature: 1.10\nversion: '1.10'\nids: ['010']\nport: 0", []),
    ],
)
def test_surprising_conversions_are_remarked(tmp_path: Path, text: str, remarks: list[str]) -> None:
    found = nodes_of(tmp_path, text).remarks
    assert len(found) == len(remarks)
    for (message, place), expected in zip(found, remarks, strict=True):
        assert expected in message
        assert place.line == 1


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    assert plain(nodes_of(tmp_path, "a: 1").root) == {"a": 1}
    assert plain(nodes_of(tmp_path, "a: 100").root) == {"a": 100}


_SCALARS = st.one_of(
    st.sampled_from(
        [
            "yes",
            "no",
            "on",
            "off",
            "true",
            "null",
            "~",
            "1e3",
            "1.5e-3",
            ".5",
            "5.",
            "0x1F",
            "0o17",
            "017",
            "1_000",
            "1:30",
            "1:30.5",
            ".inf",
            "-.INF",
            ".nan",
            "2024-01-31",
            "1.10",
            "+1",
            "-0",
            "0b11",
            "<<",
        ]
    ),
    st.from_regex(r"[-+]?[0-9._e:]{1,8}", fullmatch=True),
)


@settings(max_examples=150, deadline=None)
@given(_SCALARS)
def test_scalars_are_read_as_omegaconf_reads_them(text: str) -> None:
    document = f"a: {text}\n"
    try:
        expected = OmegaConf.to_container(OmegaConf.create(document))
    except (yaml.YAMLError, ValueError):
        return
    found = parse_plain(document, "f")
    both_nan = isinstance(found["a"], float) and math.isnan(found["a"]) and math.isnan(expected["a"])
    assert both_nan or (found == expected and type(found["a"]) is type(expected["a"]))


def test_without_the_c_parser_the_result_is_the_same(tmp_path: Path) -> None:
    text = "a: {b: [1, 1e3, yes], c: '017'}\nd: &x {e: 1}\nf: {<<: *x}\n"

    class Slow(yaml.SafeLoader):
        yaml_implicit_resolvers = yaml_loader.Loader.yaml_implicit_resolvers

    assert yaml.load(text, Loader=Slow) == parse_plain(text, "f") == plain(nodes_of(tmp_path, text).root)
