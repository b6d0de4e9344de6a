from __future__ import annotations

import socket
import sys

import pytest
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
    maybe_get_global_config_dict,
    set_global_config_dict,
)


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
