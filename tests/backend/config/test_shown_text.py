"""YAML files as they may be shown."""

from __future__ import annotations

import yaml
from hypothesis import given
from hypothesis import strategies as st

from backend.config.shown_text import masked_yaml

MARK = "s3cr3t"
KEYS = st.sampled_from(["name", "max_tokens", "a b", "é", "nested"])
SECRET_VALUES = st.text(max_size=8).map(lambda text: f"{MARK}{text}")
PLAIN = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
TREES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.fixed_dictionaries({"api_key": SECRET_VALUES | st.lists(SECRET_VALUES, max_size=2), "z": inner})
    ),
    max_leaves=8,
)


def test_values_of_secret_keys_are_masked_where_they_stand_and_wherever_they_turn_up() -> None:
    text = (
        "model:\n"
        "  api_key: sk-abcdefgh123  # from the vault\n"
        "  url: https://me:pw@host/x?token=abc\n"
        '  note: "say sk-abcdefgh123 twice"\n'
        "  secrets: [a1, {b: 'c2'}]\n"
        '  é: {token: "日本"}\n'
        "  max_tokens: 5\n"
    )
    assert masked_yaml(text) == (
        "model:\n"
        "  api_key: ****  # from the vault\n"
        "  url: https://me:****@host/x?token=****\n"
        '  note: "say **** twice"\n'
        "  secrets: [****, {b: ****}]\n"
        "  é: {token: ****}\n"
        "  max_tokens: 5\n"
    )


def test_what_gives_nothing_away_stays() -> None:
    text = "a: {api_key: '', token: null, password: ???}\nb: {api_key: '${policy_api_key}', token: '${oc.env:HF_TOKEN}'}\n"
    assert masked_yaml(text) == text
    assert masked_yaml("api_key: ${oc.env:KEY,sk-default}") == "api_key: ****"


def test_a_secret_of_many_lines_leaves_its_lines() -> None:
    assert masked_yaml("key: |\n  one\n  two\nnext: 1\n") == "key: ****\n\n\nnext: 1\n"


def test_an_alias_of_a_secret_is_masked_where_it_is_defined() -> None:
    assert masked_yaml("a: &x plainword\nb: {api_key: *x}\n") == "a: ****\nb: {api_key: *x}\n"


def test_a_file_that_is_no_yaml_is_masked_by_lines() -> None:
    assert masked_yaml("a: [\n  api_key: 'short'\n- token: x\nurl: http://u:p@h\n") == (
        "a: [\n  api_key: ****\n- token: ****\nurl: http://u:****@h\n"
    )
    assert masked_yaml("") == ""
    assert masked_yaml("\x1b") == "\x1b"


@given(TREES, st.booleans())
def test_no_secret_is_left_and_no_line_is_lost(tree: object, flow: bool) -> None:
    text = yaml.safe_dump({"top": tree}, allow_unicode=True, default_flow_style=flow)
    shown = masked_yaml(text)
    assert MARK not in shown
    assert shown.count("\n") >= text.count("\n")


@given(st.text(max_size=80))
def test_any_text_is_taken(text: str) -> None:
    assert masked_yaml(text).count("\n") >= text.count("\n")


def test_a_server_with_the_name_of_a_secret_is_shown() -> None:
    text = (
        "secret_santa:\n  resources_servers:\n    token_counter: {port: 1, api_key: plainword}\nagent_map: {token_agent: other}\n"
    )
    assert masked_yaml(text) == text.replace("plainword", "****")
