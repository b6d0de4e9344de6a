from __future__ import annotations

import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import DictConfig, OmegaConf

from backend.config import global_config
from backend.config.errors import ConfigError
from backend.config.global_config import (
    GlobalConfigDictParser,
    GlobalConfigDictParserConfig,
    find_open_port,
    get_first_server_config_dict,
    get_global_config_dict,
    get_hf_token,
    hand_down_config,
    known_global_config,
    maybe_get_global_config_dict,
    set_global_config_dict,
)
from backend.config.yaml_text import to_yaml


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.delenv("NEMO_GYM_CONFIG_DICT", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["script.py"])
    set_global_config_dict(None)
    yield
    set_global_config_dict(None)


def test_what_the_program_set_comes_first(monkeypatch) -> None:
    monkeypatch.setenv("NEMO_GYM_CONFIG_DICT", "a: 1")
    set_global_config_dict({"a": 2, "b": "${a}"})
    assert isinstance(get_global_config_dict(), DictConfig)
    assert get_global_config_dict().b == 2


def test_what_is_known_is_plain_until_somebody_wants_the_object() -> None:
    given_one = {"a": {"b": [1]}}
    set_global_config_dict(given_one)
    given_one["a"]["b"].append(2)
    known = known_global_config()
    assert type(known) is dict and known == {"a": {"b": [1]}}
    config = get_global_config_dict()
    config.a.b.append(3)
    assert known_global_config() is config and get_global_config_dict() is config
    set_global_config_dict(None)
    assert known_global_config() is None


@pytest.mark.parametrize("value", ["${a}", [{"c": "x ${oc.env:HOME} y"}], "???"])
def test_what_reads_differently_as_an_object_is_one_at_once(value: object) -> None:
    set_global_config_dict({"a": 1, "b": value})
    assert isinstance(known_global_config(), DictConfig)


def test_threads_that_ask_first_get_one_object() -> None:
    set_global_config_dict({"a": 1})
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _number: get_global_config_dict(), range(64)))
    assert len({id(each) for each in made}) == 1


def test_a_configuration_that_is_refused_leaves_the_one_before() -> None:
    set_global_config_dict({"a": 1})
    with pytest.raises(Exception, match="not a supported primitive type"):
        set_global_config_dict({"a": {"when": object()}})
    assert get_global_config_dict() == {"a": 1}
    with pytest.raises(Exception, match="NoneType"):
        set_global_config_dict({None: 1})


def test_hints_of_the_parsers_settings_can_be_evaluated() -> None:
    assert "initial_global_config_dict" in get_type_hints(GlobalConfigDictParserConfig)
    assert (global_config.DictConfig, global_config.OmegaConf) == (DictConfig, OmegaConf)


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_KEYS = st.text(min_size=1) | st.integers() | st.booleans()
_TREES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3), max_leaves=12
)


@given(st.dictionaries(_KEYS, _TREES | st.sampled_from(["${x}", "a\\${x}", "???", "$", "{x}"]), max_size=4))
def test_plain_or_not_the_same_is_read(tree: dict[object, object]) -> None:
    set_global_config_dict(tree)
    known = known_global_config()
    if not isinstance(known, DictConfig):
        assert known == OmegaConf.to_container(OmegaConf.create(tree), resolve=True, throw_on_missing=True)


def test_the_environment_variable_is_the_whole_configuration(monkeypatch, tmp_path) -> None:
    (tmp_path / "env.yaml").write_text("a: 5")
    monkeypatch.setenv("NEMO_GYM_CONFIG_DICT", "a: 1\nhf_token: hf_x\n")
    assert OmegaConf.to_container(maybe_get_global_config_dict()) == {"a": 1, "hf_token": "hf_x"}
    assert get_hf_token() == "hf_x"


def test_else_files_and_words_are_read(monkeypatch, tmp_path) -> None:
    assert maybe_get_global_config_dict() is None
    (tmp_path / "env.yaml").write_text("a: 5\nb: 6")
    monkeypatch.setattr(sys, "argv", ["script.py", "--own-option=1", "++a=7", "file.txt"])
    config = get_global_config_dict()
    assert (config.a, config.b, config.head_server.port) == (7, 6, 11000)
    assert get_global_config_dict() is config
    assert get_hf_token() is None


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no files in memory")
def test_what_is_handed_down_reads_back_as_it_was(monkeypatch) -> None:
    config = {"policy_api_key": "12345678e90", "table": {1: "1e3", "on": "yes", "text": "a\n${b} ???"}, "rate": 1e3}
    monkeypatch.setenv("NEMO_GYM_CONFIG_FILE", "")
    hand_down_config(to_yaml(config))
    assert OmegaConf.to_container(maybe_get_global_config_dict()) == config


def test_a_variable_that_holds_no_mapping(monkeypatch) -> None:
    monkeypatch.setenv("NEMO_GYM_CONFIG_DICT", "[1, 2]")
    with pytest.raises(ConfigError, match="does not hold a mapping"):
        maybe_get_global_config_dict()


def test_parser_options(tmp_path, monkeypatch) -> None:
    (tmp_path / "env.yaml").write_text("policy_api_key: sk-1234567890")
    monkeypatch.setattr(sys, "argv", ["script.py", "+x=1"])
    parser = GlobalConfigDictParser()
    hidden = parser.parse(GlobalConfigDictParserConfig(hide_secrets=True))
    assert (hidden.policy_api_key, hidden.x) == ("****", 1)
    bare = parser.parse_no_environment({"y": 2})
    assert (bare.y, "x" in bare, "policy_api_key" in bare) == (2, False, False)
    with_model = parser.parse_no_environment(GlobalConfigDictParserConfig.NO_MODEL_GLOBAL_CONFIG_DICT)
    assert with_model.policy_model.responses_api_models.dummy_model.entrypoint == "app.py"
    config = OmegaConf.create({"a": {"x": 1}, "b": {"_inherit_from": "a", "y": 2}})
    parser._recursively_swap_keys(config)
    assert OmegaConf.to_container(config) == {"b": {"x": 1, "y": 2}}


def test_first_server_config() -> None:
    tree = {"s": {"note": 1, "resources_servers": {"quiz": {"entrypoint": "app.py", "k": "${v}"}}}, "v": 3, "n": {"x": 1}}
    assert get_first_server_config_dict(OmegaConf.create(tree), "s").k == 3
    assert get_first_server_config_dict(tree, "s")["entrypoint"] == "app.py"
    for name in ("none", "n", "v"):
        with pytest.raises(ConfigError):
            get_first_server_config_dict(tree, name)


def test_open_ports(monkeypatch) -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        set_global_config_dict({"port_range_low": port, "port_range_high": port})
        with pytest.raises(RuntimeError, match="no open port"):
            find_open_port()
    assert find_open_port([]) == port
    with pytest.raises(RuntimeError):
        find_open_port([port], max_retries=2)


def test_documented_names() -> None:
    names = (
        "TASK_INDEX_KEY_NAME ROLLOUT_INDEX_KEY_NAME ATTEMPT_INDEX_KEY_NAME ROLLOUT_ID_KEY_NAME AGENT_REF_KEY_NAME SKILLS_REF_KEY_NAME"
        " HF_TOKEN_KEY_NAME CACHE_DIR_KEY_NAME RESULTS_DIR_KEY_NAME DISALLOWED_PORTS_KEY_NAME OBSERVABILITY_ENABLED_KEY_NAME"
        " TOKEN_ID_CAPTURE_BLOCK DictConfig OmegaConf"
    )
    values = {name: getattr(global_config, name) for name in names.split()}
    assert values["TASK_INDEX_KEY_NAME"] == "_ng_task_index"
    assert values["ROLLOUT_INDEX_KEY_NAME"] == "_ng_rollout_index"
    assert values["ATTEMPT_INDEX_KEY_NAME"] == "_ng_attempt_index"
    assert values["ROLLOUT_ID_KEY_NAME"] == "_ng_rollout_id"
    assert values["TOKEN_ID_CAPTURE_BLOCK"] == "token_id_capture"
