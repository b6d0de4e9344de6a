"""The configuration of this process, as servers and environments see it; existing code imports it as `nemo_gym.global_config`.

Where it comes from, the first that applies: what the program set with `set_global_config_dict`; the YAML text in the environment
variable `NEMO_GYM_CONFIG_DICT`, or in the file that `NEMO_GYM_CONFIG_FILE` names; `env.yaml` together with the `key=value` words of this process's command line.
"""

from __future__ import annotations

import copy
import os
import random
import socket
import sys
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from backend.config.errors import ConfigError
from backend.config.schema import DEFAULT_HEAD_PORT, DEFAULT_PORT_RANGE, SERVER_TYPES, STAND_INS
from backend.io import row_keys

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from backend.config.request import ConfigRequest

NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME = "NEMO_GYM_CONFIG_DICT"
NEMO_GYM_CONFIG_FILE_ENV_VAR_NAME = "NEMO_GYM_CONFIG_FILE"
NEMO_GYM_CONFIG_PATH_ENV_VAR_NAME = "NEMO_GYM_CONFIG_PATH"

CONFIG_PATHS_KEY_NAME = "config_paths"
ENTRYPOINT_KEY_NAME = "entrypoint"
DEFAULT_HOST_KEY_NAME = "default_host"
HEAD_SERVER_KEY_NAME = "head_server"
DISALLOWED_PORTS_KEY_NAME = "disallowed_ports"
HEAD_SERVER_DEPS_KEY_NAME = "head_server_deps"
PYTHON_VERSION_KEY_NAME = "python_version"
PIP_INSTALL_VERBOSE_KEY_NAME = "pip_install_verbose"
USE_ABSOLUTE_IP_KEY_NAME = "use_absolute_ip"
UV_PIP_SET_PYTHON_KEY_NAME = "uv_pip_set_python"
SKIP_VENV_IF_PRESENT_KEY_NAME = "skip_venv_if_present"
UV_CACHE_DIR_KEY_NAME = "uv_cache_dir"
UV_VENV_DIR_KEY_NAME = "uv_venv_dir"
HF_TOKEN_KEY_NAME = "hf_token"
RAY_HEAD_NODE_ADDRESS_KEY_NAME = "ray_head_node_address"
PORT_RANGE_LOW_KEY_NAME = "port_range_low"
PORT_RANGE_HIGH_KEY_NAME = "port_range_high"
DRY_RUN_KEY_NAME = "dry_run"
RESULTS_DIR_KEY_NAME = "results_dir"
CACHE_DIR_KEY_NAME = "cache_dir"
NEMO_GYM_LOG_DIR_KEY_NAME = "nemo_gym_log_dir"
OBSERVABILITY_ENABLED_KEY_NAME = "observability_enabled"
MODEL_CALL_CAPTURE_DIR_KEY_NAME = "model_call_capture_dir"
TOKEN_ID_CAPTURE_BLOCK = "token_id_capture"
SKIP_VERIFICATION_KEY_NAME = "skip_verification"
SKIP_VERIFICATION_REWARD_KEY_NAME = "skip_verification_reward"
POLICY_BASE_URL_KEY_NAME = "policy_base_url"
POLICY_API_KEY_KEY_NAME = "policy_api_key"
POLICY_MODEL_NAME_KEY_NAME = "policy_model_name"
DEFAULT_HEAD_SERVER_PORT = DEFAULT_HEAD_PORT

# Keys of data rows and of rollout records.
TASK_INDEX_KEY_NAME = row_keys.TASK
ROLLOUT_INDEX_KEY_NAME = row_keys.ROLLOUT
ATTEMPT_INDEX_KEY_NAME = row_keys.ATTEMPT
ROLLOUT_ID_KEY_NAME = row_keys.ROLLOUT_ID
AGENT_REF_KEY_NAME = row_keys.AGENT_REF
SKILLS_REF_KEY_NAME = row_keys.SKILLS_REF

_KEYS = (str, bytes, int, float, bool)
"""What OmegaConf takes for a key; it refuses others, None too."""
_known_config: dict[Any, Any] | None = None
"""Plain values, where reading them says the same as the OmegaConf object: its library takes a twentieth of a server's start to import."""
_process_config: DictConfig | None = None
_making = threading.Lock()


def __getattr__(name: str) -> Any:
    """Existing code takes OmegaConf's classes from here; they are imported for those who ask only."""
    if name in ("DictConfig", "OmegaConf"):
        import omegaconf

        return getattr(omegaconf, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def set_global_config_dict(
    global_config_dict_parser_config: GlobalConfigDictParserConfig | Mapping[Any, Any] | DictConfig | None = None,
    global_config_dict_parser_cls: type[GlobalConfigDictParser] | None = None,
) -> None:
    """Make a configuration that of this process: one that is there, or what the parser makes of its settings.

    With neither settings nor a parser it is forgotten, so that the next reader looks for one again.
    """
    global _process_config, _known_config
    config: Mapping[Any, Any] | DictConfig | None
    if isinstance(global_config_dict_parser_config, GlobalConfigDictParserConfig) or (
        global_config_dict_parser_config is None and global_config_dict_parser_cls is not None
    ):
        config = (global_config_dict_parser_cls or GlobalConfigDictParser)().parse(global_config_dict_parser_config)
    else:
        config = global_config_dict_parser_config
    known: dict[Any, Any] | None = None
    made: DictConfig | None = None
    if _is_omegaconf(config):
        made = config
    elif config is not None:
        known = copy.deepcopy(dict(config))
        if not _says_the_same_as_omegaconf(known):
            made, known = _omegaconf_of(known), None
    _known_config, _process_config = known, made


def known_global_config() -> Mapping[Any, Any] | DictConfig | None:
    """The configuration of this process to read from, if it is known already; for whom any kind of mapping will do."""
    return maybe_get_global_config_dict() if _known_config is None or _process_config is not None else _known_config


def omegaconf_of_known(known: Mapping[Any, Any]) -> DictConfig:
    """The OmegaConf object of what `known_global_config` has given: this process' own while it still has that configuration."""
    config = maybe_get_global_config_dict() if known is _known_config else None
    return _omegaconf_of(known) if config is None else config


def read_known(known: Mapping[Any, Any]) -> Mapping[Any, Any] | DictConfig:
    """What `known_global_config` has given, or this process' OmegaConf object of it, where there is one that may have been changed."""
    return _process_config if known is _known_config and _process_config is not None else known


def maybe_get_global_config_dict() -> DictConfig | None:
    """The configuration of this process if it is set or handed down by the process that started it; reads no configuration files."""
    global _process_config
    with _making:  # one for all threads
        if _process_config is None:
            if _known_config is not None:
                _process_config = _omegaconf_of(_known_config)
            elif handed_down := handed_down_text():
                _process_config = _omegaconf_of(handed_down[1])
        return _process_config


def _omegaconf_of(content: Mapping[Any, Any] | str) -> DictConfig:
    from omegaconf import DictConfig, OmegaConf

    made = OmegaConf.create(content if isinstance(content, str) else dict(content))
    if not isinstance(made, DictConfig):
        raise ConfigError(f"the environment variable {NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME} does not hold a mapping")
    return made


def _is_omegaconf(value: Any) -> TypeGuard[DictConfig]:
    if "omegaconf" not in sys.modules:
        return False
    from omegaconf import DictConfig

    return isinstance(value, DictConfig)


def _says_the_same_as_omegaconf(value: Any) -> bool:
    """Whether reading these plain values gives what reading the OmegaConf object made of them does: no references, nothing missing."""
    if isinstance(value, dict):
        return all(isinstance(key, _KEYS) for key in value) and all(map(_says_the_same_as_omegaconf, value.values()))
    if isinstance(value, list):
        return all(map(_says_the_same_as_omegaconf, value))
    if isinstance(value, str):
        return "${" not in value and value != "???"
    return value is None or isinstance(value, bool | int | float)


def hand_down_config(text: str) -> None:
    """Let the programs that this process starts find its configuration, secrets included, without it standing in their environment.

    It is in a file in memory that goes with this process and that only its user can open. Systems other than Linux have none.
    """
    if not hasattr(os, "memfd_create"):
        return
    descriptor = os.memfd_create("gym-config")
    with open(descriptor, "w", encoding="utf-8", closefd=False) as file:
        file.write(text)
    os.environ[NEMO_GYM_CONFIG_FILE_ENV_VAR_NAME] = f"/proc/{os.getpid()}/fd/{descriptor}"
    # What this process was itself given has no ports yet, and would be preferred.
    os.environ.pop(NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME, None)


def handed_down_text() -> tuple[str, str] | None:
    """The configuration that the environment holds: name of the variable and YAML text; None when there is none, or its owner is gone."""
    if text := os.environ.get(NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME):
        return NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME, text
    path = os.environ.get(NEMO_GYM_CONFIG_FILE_ENV_VAR_NAME)
    try:
        text = Path(path).read_text(encoding="utf-8") if path and os.path.isfile(path) else None
    except OSError:
        return None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"what the environment variable {NEMO_GYM_CONFIG_FILE_ENV_VAR_NAME} names is no text: {error}"
        ) from None
    return (NEMO_GYM_CONFIG_FILE_ENV_VAR_NAME, text) if text else None


def get_global_config_dict(
    global_config_dict_parser_config: GlobalConfigDictParserConfig | None = None,
    global_config_dict_parser_cls: type[GlobalConfigDictParser] | None = None,
) -> DictConfig:
    """The configuration of this process, resolved from files and command line on the first call where nobody set it.

    Only that call heeds the arguments: what is read beside the files, and the class that does it.
    """
    config = maybe_get_global_config_dict()
    if config is None:
        config = (global_config_dict_parser_cls or GlobalConfigDictParser)().parse(global_config_dict_parser_config)
        set_global_config_dict(config)
    return config


def get_first_server_config_dict(global_config_dict: Mapping[str, Any] | DictConfig, top_level_path: str) -> Any:
    """The implementation block of the server instance `top_level_path`, of the same kind of mapping as was passed."""
    instance = global_config_dict.get(top_level_path)
    if not _is_mapping(instance):
        raise ConfigError(f"the configuration has no server instance '{top_level_path}'")
    server_type = next((key for key in instance if key in SERVER_TYPES), None)
    implementations = instance[server_type] if server_type is not None else None
    if not _is_mapping(implementations) or not implementations:
        raise ConfigError(f"'{top_level_path}' is not a server instance: it holds none of {', '.join(SERVER_TYPES)}")
    return implementations[next(iter(implementations))]


def _is_mapping(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping) or _is_omegaconf(value)


def find_open_port(disallowed_ports: Collection[int] | None = None, max_retries: int = 50) -> int:
    """A port of the configured range that nothing listens on right now; raises RuntimeError after `max_retries` misses.

    Somebody else may take the port before the caller binds it: servers of this program bind port 0 instead.
    """
    config: Mapping[Any, Any] | DictConfig = maybe_get_global_config_dict() or {}
    low = int(config.get(PORT_RANGE_LOW_KEY_NAME) or DEFAULT_PORT_RANGE[0])
    high = int(config.get(PORT_RANGE_HIGH_KEY_NAME) or DEFAULT_PORT_RANGE[1])
    taken = set(disallowed_ports if disallowed_ports is not None else config.get(DISALLOWED_PORTS_KEY_NAME) or ())
    for _ in range(max_retries):
        port = random.randint(low, high)
        if port in taken:
            continue
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"found no open port between {low} and {high} in {max_retries} tries")


def get_hf_token() -> str | None:
    """The Hugging Face token of the configuration, None where there is none."""
    token = get_global_config_dict().get(HF_TOKEN_KEY_NAME)
    return str(token) if token else None


@dataclass(slots=True)
class GlobalConfigDictParserConfig:
    """What `GlobalConfigDictParser.parse` reads beside the configuration files.

    `initial_global_config_dict` ranks above env.yaml and below the command line.
    """

    dotenv_path: str | Path | None = None
    initial_global_config_dict: Any = None
    """A mapping or an OmegaConf object."""
    skip_load_from_cli: bool = False
    skip_load_from_dotenv: bool = False
    hide_secrets: bool = False
    offline: bool = False

    NO_MODEL_GLOBAL_CONFIG_DICT = STAND_INS


class GlobalConfigDictParser:
    """Resolves a configuration for code that wants it as an OmegaConf object."""

    def parse(self, parse_config: GlobalConfigDictParserConfig | None = None) -> DictConfig:
        """The resolved configuration; raises the `ConfigError` family."""
        from omegaconf import OmegaConf

        from backend.config.resolution import resolve_config

        wanted = parse_config or GlobalConfigDictParserConfig()
        resolved = resolve_config(replace(request_of(wanted), handed_down=False))
        return OmegaConf.create(resolved.redactor.tree(resolved.tree) if wanted.hide_secrets else resolved.tree)

    def parse_no_environment(self, initial_global_config_dict: Mapping[str, Any] | DictConfig | None = None) -> DictConfig:
        """The resolved configuration without command line and env.yaml."""
        return self.parse(
            GlobalConfigDictParserConfig(
                initial_global_config_dict=initial_global_config_dict, skip_load_from_cli=True, skip_load_from_dotenv=True
            )
        )

    def _recursively_swap_keys(self, global_config_dict: DictConfig) -> None:
        """Apply the directives (`_inherit_from`, `_copy`, `_delete_key`) in a configuration, in place."""
        from omegaconf import OmegaConf

        from backend.config.directives import apply_directives
        from backend.config.findings import Findings
        from backend.config.nodes import Origin, node_of, plain

        tree = OmegaConf.to_container(global_config_dict)
        findings = Findings()
        applied = plain(apply_directives(node_of(tree, Origin("initial")), findings))
        findings.raise_first()
        for key in list(global_config_dict.keys()):
            del global_config_dict[key]
        global_config_dict.merge_with(applied)


def request_of(wanted: GlobalConfigDictParserConfig) -> ConfigRequest:
    """What to resolve for `wanted`; whether the servers' folders are there is not asked."""
    from backend.config.request import ConfigRequest

    initial = wanted.initial_global_config_dict
    if _is_omegaconf(initial):
        from omegaconf import OmegaConf

        initial = OmegaConf.to_container(initial)
    return ConfigRequest(
        overrides=() if wanted.skip_load_from_cli else _override_words(sys.argv[1:]),
        env_file=None if wanted.dotenv_path is None else Path(wanted.dotenv_path),
        read_env_file=not wanted.skip_load_from_dotenv,
        initial=initial,
        check_components=False,
    )


def _override_words(arguments: list[str]) -> tuple[str, ...]:
    """The words of a foreign program's command line that are overrides; its own options are none of our business."""
    return tuple(word for word in arguments if not word.startswith("-") and ("=" in word or word.startswith("~")))
