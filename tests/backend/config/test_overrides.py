from __future__ import annotations

import math
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.config.errors import MalformedConfigPathsError, OverrideError
from backend.config.nodes import find, plain
from backend.config.overrides import _PLAIN_TOKEN, build_layer, parse_token
from backend.config.request import FlagValue


def values(*tokens: str, flags: tuple[FlagValue, ...] = ()) -> Any:
    return plain(build_layer(flags, tokens).root)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1_000", 1000),
        ("-5", -5),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("inf", math.inf),
        ("TRUE", True),
        ("False", False),
        ("null", None),
        ("0x10", "0x10"),
        ("01", "01"),
        ("", ""),
        ("a b:c/d-e.f@g%h+i?j|k", "a b:c/d-e.f@g%h+i?j|k"),
        ("'it\\'s'", "it's"),
        ('"quoted, text"', "quoted, text"),
        ("[a, 1, [true]]", ["a", 1, [True]]),
        ("{k: 1, j: 'x y'}", {"k": 1, "j": "x y"}),
        ("${policy_base_url}", "${policy_base_url}"),
        ("'${oc.env:HOME}'", "${oc.env:HOME}"),
        ("[]", []),
        ("a$b", "a$b"),
    ],
)
def test_values_are_typed_by_the_grammar(text: str, expected: Any) -> None:
    assert values(f"+k={text}") == {"k": expected}


def test_prefixes() -> None:
    assert values("+a.b=1", "++a.b=2", "a.b=3", "+a.c=4") == {"a": {"b": 3, "c": 4}}
    assert values("+a={x: 1}", "+a={y: 2}") == {"a": {"x": 1, "y": 2}}
    assert values("+a=1", "~a") == {}
    assert values("+a.b=1", "+a.c=2", "~a.b=1") == {"a": {"c": 2}}
    assert values("+a=null", "+a=2") == {"a": 2}
    assert values("+l=[1,2]", "++l.0=5") == {"l": [5, 2]}


@pytest.mark.parametrize(
    ("tokens", "part"),
    [
        (["a=1"], "Could not override 'a'"),
        (["~a"], "cannot delete 'a'"),
        (["+a=1", "~a=2"], "cannot delete 'a'"),
        (["+a=1", "+a=2"], "set twice"),
        (["+a=x,y"], "Ambiguous value"),
        (["+a=choice(1,2)"], "Ambiguous value"),
        (["+a=b=c"], "mismatched input"),
        (["+a=[1"], "cannot read"),
        (["word"], "missing EQUAL"),
        (["+db@pkg=x"], "config group"),
        (["+l=[1]", "++l.3=5"], "no position in the list"),
        (["+l=[1]", "++l={a: 1}"], "a mapping in one override and a list in another"),
    ],
)
def test_refused(tokens: list[str], part: str) -> None:
    with pytest.raises(OverrideError) as caught:
        values(*tokens)
    assert part in str(caught.value)


def test_secrets_are_not_quoted_back() -> None:
    with pytest.raises(OverrideError) as caught:
        values("+policy_api_key=sk-1,2")
    assert "sk-1" not in str(caught.value)
    layer = build_layer((), ["+policy_api_key=sk-12345678"])
    assert find(layer.root, ("policy_api_key",)).origin.text == "+policy_api_key=****"
    assert plain(layer.root) == {"policy_api_key": "sk-12345678"}


@pytest.mark.parametrize(
    "tokens",
    [
        ["a={password: hunter2}"],
        ["+a={api_key: hunter2==}"],
        ["+a={api_key: x, hunter2"],
        ["+api_key:hunter2"],
        ["+a={password: x}", "~a={password: hunter2}"],
        ["+config_paths=[{api_key: hunter2}]"],
    ],
)
def test_no_mistake_quotes_a_secret_inside_a_word(tokens: list[str]) -> None:
    told: list[str] = []
    layer = build_layer((), tokens, lambda error, key: told.append(str(error)))
    told.extend(str(origin) for origin, _ in layer.words)
    assert told
    assert "hunter2" not in " ".join(told)


def test_config_paths_can_be_taken_back_and_be_null() -> None:
    layer = build_layer((), ["+config_paths=[a.yaml]", "~config_paths"])
    assert (layer.config_paths, plain(layer.root)) == ([], {})
    assert values("+config_paths=null") == {"config_paths": None}
    with pytest.raises(OverrideError, match="cannot delete 'config_paths'"):
        build_layer((), ["+config_paths=[a.yaml]", "~config_paths=[b.yaml]"])


def test_flags_are_never_parsed() -> None:
    flags = tuple(FlagValue("policy_model_name", text, "--model") for text in ("1.10",))
    assert values(flags=flags) == {"policy_model_name": "1.10"}
    for text in ("a,b", "123456", "==", "null", "${x", "'"):
        assert values(flags=(FlagValue("k.v", text, "--f"),)) == {"k": {"v": text}}
    assert values("++k=2", flags=(FlagValue("k", "x", "--f"),)) == {"k": 2}
    with pytest.raises(OverrideError, match="set twice: --f"):
        values("+k=2", flags=(FlagValue("k", "x", "--f"),))


def test_config_paths_are_added_or_replaced() -> None:
    layer = build_layer((), ["+config_paths=[a.yaml,b.yaml]", "+config_paths=[c.yaml]"])
    assert [text for text, _ in layer.config_paths] == ["a.yaml", "b.yaml", "c.yaml"]
    assert "config_paths" not in layer.root.value
    assert values("++config_paths=[x.yaml]") == {"config_paths": ["x.yaml"]}
    for bad in ("+config_paths=x.yaml", "+config_paths={a: 1}"):
        with pytest.raises(MalformedConfigPathsError):
            build_layer((), [bad])


def test_hydras_own_settings_stay_out() -> None:
    layer = build_layer((), ["hydra.run.dir='/x y'", "+hydra.job.chdir=true"])
    assert plain(layer.root) == {}
    assert layer.hydra == {"hydra.run.dir": "/x y", "hydra.job.chdir": True}


_TOKEN = st.builds(
    lambda prefix, key, value: f"{prefix}{key}={value}",
    st.sampled_from(["", "+", "++"]),
    st.from_regex(r"[a-z_][a-z0-9_-]{0,4}(\.([a-z]{1,3}|0|[1-9]))?", fullmatch=True),
    st.one_of(
        st.from_regex(r"[A-Za-z0-9_./:@+%-]{1,8}", fullmatch=True),
        st.from_regex(r"\[[a-z0-9._]{1,4}(, ?[a-z0-9._e+-]{1,4}){0,2}\]", fullmatch=True),
        st.sampled_from(
            ["nan", "NaN", "-inf", "+.5", "5.", "1_0.2_5", "1e1_0", "1__0", "_1", "NULL", "nulls", "true1", "1.2.3", "--1"]
        ),
    ),
)
_PARSER = OverridesParser.create()


@settings(max_examples=250, deadline=None)
@given(_TOKEN)
def test_the_short_cut_reads_what_hydra_reads(token: str) -> None:
    if _PLAIN_TOKEN.match(token) is None:
        return
    try:
        expected = _PARSER.parse_override(token)
    except HydraException:
        pytest.fail(f"Hydra refuses {token}")
    found = parse_token(token)
    assert repr(found.value) == repr(expected.value())  # repr, so that NaN equals NaN and 1 differs from True
    assert found.key == expected.key_or_group
    assert found.prefix == ("++" if expected.is_force_add() else "+" if expected.is_add() else "")
