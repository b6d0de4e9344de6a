from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from backend.config.findings import Findings
from backend.config.interpolation import quick_value, resolve_tree
from backend.config.nodes import Origin, node_of, plain

TREE = {
    "word": "w",
    "number": 3,
    "none": None,
    "unset": "???",
    "link": "${word}",
    "map": {"x": 1, "y": {"z": "deep"}},
    "list": [1],
}
KEYS = ["word", "number", "none", "unset", "link", "map", "map.x", "map.y.z", "map.gone", "gone", "list", "F1_SET", "F1_UNSET"]
DEFAULTS = [
    "",
    ",null",
    ", a",
    ",true",
    ",False",
    ",1",
    ",0",
    ",01",
    ",1_0",
    ",1e-6",
    ",/tmp",
    ",http://h:1/v1",
    ", Null",
    ",x-y",
    ",''",
    ",a b",
    ",inf",
    ",NaN",
    ",",
]


@given(st.sampled_from(["oc.env:", "oc.select:", ""]), st.sampled_from(KEYS), st.sampled_from(DEFAULTS))
def test_the_short_cut_gives_what_omegaconf_gives(resolver: str, key: str, default: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("F1_SET", "7")
        text = f"${{{resolver}{key}{default if resolver else ''}}}"
        found, value = quick_value(node_of(TREE, Origin("file")), text)
        if found:
            expected = OmegaConf.create({**TREE, "asked": text})["asked"]
            assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${word}", "w"),
        ("${oc.env:F1_SET,x}", "7"),
        ("${oc.env:F1_UNSET,null}", None),
        ("${oc.env:F1_UNSET, /tmp/x}", "/tmp/x"),
        ("${oc.select:map.x,9}", 1),
        ("${oc.select:gone,9}", 9),
        ("${oc.env:F1_UNSET,false}", "False"),
        ("${oc.select:gone,https://h/v1}", "https://h/v1"),
    ],
)
def test_the_common_forms_take_it(monkeypatch: pytest.MonkeyPatch, text: str, value: object) -> None:
    monkeypatch.setenv("F1_SET", "7")
    assert quick_value(node_of(TREE, Origin("file")), text) == (value is not None or "null" in text, value)


def test_chains_and_mixtures_are_evaluated() -> None:
    root = node_of(
        {
            "a": "${b}",
            "b": "${c}",
            "c": 1,
            "url": "http://${host}:${port}/",
            "host": "h",
            "port": 2,
            "m": "${n}",
            "n": {"x": "${c}"},
        },
        Origin("file"),
    )
    findings = Findings()
    resolve_tree(root, findings)
    assert findings.errors == []
    assert plain(root) == {"a": 1, "b": 1, "c": 1, "url": "http://h:2/", "host": "h", "port": 2, "m": {"x": 1}, "n": {"x": 1}}


def test_defaults_of_global_keys_can_be_named(write, request_for, tmp_path) -> None:
    from backend.config.resolution import resolve_config

    write(
        {
            "x.yaml": "block: {cache: '${cache_dir}', port: '${head_server.port}', low: '${port_range_low}'}\nresults_dir: ${root}/r\nroot: out\n"
        }
    )
    resolved = resolve_config(request_for("x.yaml"))
    assert resolved.tree["block"] == {"cache": str(tmp_path / "cache"), "port": 11000, "low": 10001}
    assert resolved.tree["results_dir"] == str(tmp_path / "out/r")
    assert resolved.tree["uv_cache_dir"] == str(tmp_path / "cache/uv")
