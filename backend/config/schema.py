"""The vocabulary of configurations as data: server types, enumerations, reserved and global keys with their defaults."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MODELS = "responses_api_models"
RESOURCES = "resources_servers"
AGENTS = "responses_api_agents"
SERVER_TYPES = (MODELS, RESOURCES, AGENTS)
"""Where a block holds several types, the first of these counts."""

MISSING = "???"
"""The value of a key that somebody must still set."""

MOST_FILE_BYTES = 4 << 20
"""A configuration file that is larger is refused; the largest that are in use have some ten thousand."""

DOMAINS = (
    "math",
    "coding",
    "agent",
    "knowledge",
    "instruction_following",
    "long_context",
    "safety",
    "games",
    "translation",
    "e2e",
    "rlhf",
    "other",
)
DATASET_TYPES = ("train", "validation", "example", "benchmark")
SOURCES = ("gitlab", "huggingface")
"""Where data sets are fetched from."""
LICENSES = (
    "Apache 2.0",
    "MIT",
    "Creative Commons Attribution 4.0 International",
    "Creative Commons Attribution-ShareAlike 4.0 International",
    "CC BY-SA 4.0",
    "CC BY-NC 3.0",
    "NVIDIA Internal Use Only, Do Not Distribute",
    "NVIDIA Evaluation Dataset License Agreement",
    "TBD",
    "GNU General Public License v3.0",
)

DEFAULT_HOST = "127.0.0.1"
DEFAULT_HEAD_PORT = 11000
DEFAULT_PORT_RANGE = (10001, 20000)
"""Both ends included."""

SERVER_READINESS_TIMEOUT = "server_readiness_timeout_seconds"
"""The key that limits the wait for servers to answer; without it, or with 0, they have all the time they need."""

INHERIT_FROM = "_inherit_from"
COPY = "_copy"
DELETE_KEY = "_delete_key"
DIRECTIVES = (INHERIT_FROM, COPY, DELETE_KEY)

POLICY_MODEL = "policy_model"
STAND_IN_IMPLEMENTATION = "dummy_model"
STAND_INS: dict[str, Any] = {
    "policy_base_url": "",
    "policy_api_key": "",
    "policy_model_name": "",
    POLICY_MODEL: {MODELS: {STAND_IN_IMPLEMENTATION: {"entrypoint": "app.py"}}},
}
"""What commands that need no model put in its place: above env.yaml, below the command line."""

RESERVED_KEYS = frozenset(
    {
        "config_paths",
        "entrypoint",
        "default_host",
        "head_server",
        "disallowed_ports",
        "head_server_deps",
        "python_version",
        "pip_install_verbose",
        "use_absolute_ip",
        "uv_pip_set_python",
        "skip_venv_if_present",
        "uv_cache_dir",
        "uv_venv_dir",
        "hf_token",
        "ray_head_node_address",
        "port_range_low",
        "port_range_high",
        "dry_run",
        "model_endpoint_readiness_timeout_seconds",
        "allow_openai_version_skew",
        "results_dir",
        "cache_dir",
        INHERIT_FROM,
        COPY,
        "nemo_gym_log_dir",
        "verbose",
        "json",
        "query",
        "component_name",
        "observability_enabled",
        "model_call_capture_dir",
        "token_id_capture",
        "skip_verification",
        "skip_verification_reward",
        "telemetry",
        "allow_unsupported_pairing",
    }
)
"""Top-level keys that are never servers."""

OTHER_GLOBAL_KEYS = frozenset(
    {
        "error_on_almost_servers",
        SERVER_READINESS_TIMEOUT,
        "strict",
        "uvicorn_timeout_worker_healthcheck",
        "uvicorn_logging_show_200_ok",
        "profiling_enabled",
        "profiling_results_dirpath",
        "global_aiohttp_connector_limit",
        "global_aiohttp_connector_limit_per_host",
        "global_aiohttp_client_request_debug",
        "global_aiohttp_tcp_keepalive_idle_seconds",
        "global_aiohttp_tcp_keepalive_interval_seconds",
        "global_aiohttp_tcp_keepalive_probes",
        "policy_base_url",
        "policy_api_key",
        "policy_model_name",
        "wandb_project",
        "wandb_name",
        "wandb_api_key",
        "mlflow_tracking_uri",
        "mlflow_tracking_token",
        "mlflow_experiment_name",
        "mlflow_run_name",
        "upload_rollouts",
        "upload_rollouts_to_wandb",
        "hydra",
    }
)

RUN_KEYS = frozenset(
    [
        "output_jsonl_fpath",
        "input_jsonl_fpath",
        "split",
        "limit",
        "num_repeats",
        "num_repeats_add_seed",
        "num_samples_in_parallel",
        "responses_create_params",
        "prompt_config",
        "skills",
        "agent_name",
        "agent_map",
        "fan_out",
        "resume_from_cache",
        "accept_changed_settings",
        "reuse_existing_data_preparation",
        "disable_aggregation",
        "disable_health_check",
        "health_check_workers",
        "health_check_ignored_checks",
        "count_failure_classes_as_zero",
        "rollout_collection_driver",
        "input_glob",
        "merge_shards",
        "allow_partial_rollouts",
        "materialized_inputs_jsonl_fpath",
        "rollouts_jsonl_fpath",
        "force",
        "overwrite",
        "append",
        "judge_failed_only",
        "mode",
        "output_dirpath",
        "should_download",
        "data_source",
        "overwrite_metrics_conflicts",
        "task_data_validation",
        "use_cached_prepared_benchmarks",
        "num_prepare_benchmark_processes",
        "prepare_script_args",
        "should_validate_data",
        "num_shards",
        "shard_index",
        "fail_on_total_and_test_mismatch",
        "delete_venvs_after_each_test",
        "help",
        "h",
    ]
)
"""Keys of runs; they share the top level with everything else."""

GLOBAL_KEYS = RESERVED_KEYS | OTHER_GLOBAL_KEYS | RUN_KEYS

TOKEN_ID_CAPTURE_KEYS = frozenset(
    [
        "enabled",
        "all_agents",
        "dir",
        "sink",
        "sink_kwargs",
        "lineage_store",
        "lineage_store_kwargs",
        "rebuild_response",
        "allow_unresolved_continuations",
        "delta_records",
        "max_mask_fraction",
        "mask_fraction_min_samples",
    ]
)

LEGACY_AGENTS: dict[str, str] = {
    "reasoning_gym_claude_code": "claude_code_reasoning_gym",
    "reasoning_gym_hermes": "hermes_reasoning_gym",
    "reasoning_gym_orchestrator": "langgraph_orchestrator_reasoning_gym",
    "reasoning_gym_parallel_thinking": "langgraph_parallel_thinking_reasoning_gym",
    "reasoning_gym_reflection": "langgraph_reflection_reasoning_gym",
    "reasoning_gym_rewoo": "langgraph_rewoo_reasoning_gym",
}
"""Old environment name to its present one. The agents of these are called `<name>_agent`."""

LEGACY_CONFIG_PATHS: dict[str, str] = {
    **{f"environments/{old}/config.yaml": f"environments/{new}/config.yaml" for old, new in LEGACY_AGENTS.items()},
    "responses_api_agents/stirrup_agent/configs/stirrup_gdpval.yaml": (
        "responses_api_agents/stirrup_agent/configs/stirrup_agent.yaml"
    ),
    "responses_api_agents/tau2/configs/tau2_agent.yaml": "responses_api_agents/tau2/configs/tau2.yaml",
    "responses_api_agents/verifiers_agent/configs/acereason-math.yaml": (
        "responses_api_agents/verifiers_agent/configs/verifiers_agent.yaml"
    ),
}
"""Relative paths of configurations that moved; used only where the old file does not exist."""


def one_of(values: Iterable[str]) -> str:
    """The sentence that lists what is allowed."""
    return f"Must be one of: {', '.join(repr(value) for value in values)}"


SAMPLING_KEYS = frozenset({"temperature", "top_p", "max_output_tokens", "top_logprobs", "reasoning", "tool_choice", "truncation"})
"""Keys of `responses_create_params` that are easily given one level too high."""
