"""The names that environments import: each module is one of backend's, and importing the package has its documented effects."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import nemo_gym

ROOT = Path(nemo_gym.__file__).parents[1]

DOCUMENTED = {
    "base_resources_server": """AggregateMetrics AggregateMetricsRequest BaseMultiRewardVerifyResponse BaseResourcesServerConfig BaseRunRequest
        BaseSeedSessionRequest BaseSeedSessionResponse BaseVerifyRequest BaseVerifyResponse NEMO_GYM_MCP_METADATA_KEY NeMoGymResponse
        ReverifyMode SimpleResourcesServer""",
    "base_responses_api_agent": """AggregateMetrics AggregateMetricsRequest BaseResponsesAPIAgentConfig Body SimpleResponsesAPIAgent""",
    "base_responses_api_model": """BaseResponsesAPIModelConfig Body CaptureStore ModelCallCaptureConfig ModelCallRecord
        SimpleResponsesAPIModel aggregate_model_call_metrics merge_model_call_capture_into_record observability_enabled_from_config
        read_model_call_records""",
    "benchmarks": "BenchmarkConfig",
    "cli": "",
    "cli.env": """PipListConfig RunConfig RunHelper TestAllConfig TestConfig dump_config list_environments pip_list prefetch run show_schema
        status test test_all validate""",
    "cli.setup_command": "get_venv_path run_command setup_env_command",
    "cli.utils": "did_you_mean exit_cleanly_on_config_error fuzzy_matches print_rich_table",
    "cli_setup_command": "",
    "config_types": """AgentServerRef AggregateMetrics AggregateMetricsRequest BaseRunServerConfig BaseRunServerInstanceConfig
        BaseServerConfig ConfigError Domain ModelServerRef ROLLOUT_PATH_PREFIX ResourcesServerRef TOKEN_CAPTURE_PATH_SEGMENT""",
    "decorators": "experimental",
    "global_config": """AGENT_REF_KEY_NAME ATTEMPT_INDEX_KEY_NAME CACHE_DIR_KEY_NAME DISALLOWED_PORTS_KEY_NAME DictConfig
        GlobalConfigDictParser GlobalConfigDictParserConfig HF_TOKEN_KEY_NAME OBSERVABILITY_ENABLED_KEY_NAME OmegaConf
        RESULTS_DIR_KEY_NAME ROLLOUT_ID_KEY_NAME ROLLOUT_INDEX_KEY_NAME SKILLS_REF_KEY_NAME TASK_INDEX_KEY_NAME TOKEN_ID_CAPTURE_BLOCK
        find_open_port get_first_server_config_dict get_global_config_dict get_hf_token maybe_get_global_config_dict""",
    "judge": "JudgeError call_judge judge_failsafe reraise_judge_errors",
    "mcp_auto_exposure": "MCPTool install_auto_exposure maybe_auto_expose",
    "openai_utils": """NeMoGymAsyncOpenAI NeMoGymChatCompletion NeMoGymChatCompletionCreateParamsNonStreaming NeMoGymChatCompletionMessage
        NeMoGymChatCompletionMessageForTraining NeMoGymChatCompletionMessageParam NeMoGymChoice NeMoGymEasyInputMessage
        NeMoGymFunctionCallOutput NeMoGymMessage NeMoGymResponse NeMoGymResponseCreateParamsNonStreaming
        NeMoGymResponseFunctionToolCall NeMoGymResponseInput NeMoGymResponseInputItem NeMoGymResponseInputTokensDetails
        NeMoGymResponseOutputItem NeMoGymResponseOutputMessage NeMoGymResponseOutputMessageForTraining NeMoGymResponseOutputText
        NeMoGymResponseOutputTokensDetails NeMoGymResponseReasoningItem NeMoGymResponseUsage NeMoGymSummary RATE_LIMIT_ERROR_CODES
        REQUIRED_TOKEN_METADATA_FIELDS RETRY_ERROR_CODES TOKEN_METADATA_FIELDS TokenIDLogProbMixin accumulate_response_usage""",
    "package_info": "MAJOR MINOR PATCH PRE_RELEASE VERSION __package_name__ __shortversion__ __version__",
    "path_utils": "failures_path_for",
    "profiling": "Profiler",
    "prompt": """PromptConfig apply_prompt_to_row fill_prompt load_prompt_config materialize_prompts validate_prompt_compatibility""",
    "responses_converter": """ResponsesConverter VLLMConverter VLLMConverterResponsesToChatCompletionsState _usage_detail
        split_responses_input_output_items uuid4""",
    "responses_streaming": """sanitize_streaming_responses_body synthesize_responses_failure_sse synthesize_responses_sse
        validate_streaming_responses_params""",
    "reward_profile": """AggregateMetricsMixin RewardProfiler add_avg_sample_std_dev compute_aggregate_metrics
        compute_pass_majority_metrics compute_perf_summary compute_subset_metrics highest_k_metrics""",
    "rollout_collection": """E2ERolloutCollectionConfig RolloutAggregationConfig RolloutAggregationHelper NG_FAILURE_CLASS_KEY NG_NO_PERSIST_KEY NG_TERMINAL_KEY RolloutCollectionConfig
        RolloutCollectionHelper _attach_ng_perf _attach_trajectory_record _get_max_rollout_attempts loads_jsonl_line""",
    "rollout_correlation": "RolloutContextMiddleware current_rollout_id maybe_rollout_id_from_run_body rollout_context",
    "rollout_observability": """AgentEpisode AgentInvocation AgentObservationBundle ContextCompactionObservation ModelCallRef ObservationGap
        SandboxObservation ToolCallObservation TrajectoryRecord TrajectoryToolCall TrajectoryTurn join_model_call_observations""",
    "sandbox": """AsyncSandbox ConnectableProvider ExecResult Sandbox SandboxCreateError SandboxEndpoint SandboxExecResult SandboxHandle
        SandboxPty SandboxPtyError SandboxPtySession SandboxPtySpec SandboxResources SandboxSpec SandboxStatus SupportsSandboxEndpoint
        SupportsSandboxPty SupportsSandboxPtyAttach create_provider get_provider_class list_providers register_provider
        resolve_provider_config resolve_provider_metadata rewrite_image""",
    "sandbox.api": "AsyncSandbox Sandbox SandboxPty",
    "server_metadata": "ServerMetadata visit_agent_server visit_resources_server",
    "server_status": "StatusCommand",
    "server_utils": """BaseServer BaseServerConfig ClientResponse DEFAULT_HEAD_SERVER_PORT GlobalAIOHTTPAsyncClientConfig
        HEAD_SERVER_KEY_NAME HeadServer MAX_NUM_TRIES ProfilingMiddlewareConfig SESSION_ID_KEY ServerClient ServerInstanceDisplayConfig
        SimpleServer UvicornLoggingConfig apply_rollout_prefix get_first_server_config_dict get_global_aiohttp_client
        get_nemo_gym_fastapi_num_workers get_response_json get_server_url global_aiohttp_client_exit initialize_ray
        is_global_aiohttp_client_request_debug_enabled is_global_aiohttp_client_setup is_nemo_gym_fastapi_entrypoint
        is_nemo_gym_fastapi_worker raise_for_status request rollout_path_prefix set_global_aiohttp_client setup_server_client""",
    "skills": "stage_skills",
    "token_id_capture": """CaptureContext FileLineageStore InMemoryLineageStore LineageStore ParentResolutionStatus TokenCaptureSnapshot
        TokenCaptureStore TokenEntry TokenSink TokenSource current_capture_context reset_token_sink resolve_parent set_token_sink
        trajectories_from_source""",
}
METHODS = {
    "base_resources_server.SimpleResourcesServer": """aggregate_metrics compute_metrics get_key_metrics mcp_allowed_tools_for_session mcp_tools
        normalize_tool_name seed_session setup_webserver verify""",
    "base_responses_api_agent.SimpleResponsesAPIAgent": """aggregate_metrics base_url_for_run compute_metrics get_key_metrics
        resolve_model_base_url responses rollout_id_from_run run setup_webserver url_path_for_request url_path_for_run""",
    "base_responses_api_model.CaptureStore": "is_incomplete mark_incomplete path_for read read_available record",
    "base_responses_api_model.SimpleResponsesAPIModel": "chat_completions responses setup_webserver",
    "benchmarks.BenchmarkConfig": "from_config_path",
    "cli.env.RunHelper": """check_http_server_statuses display_server_instance_info poll run_forever shutdown start
        wait_for_model_endpoints wait_for_spinup""",
    "global_config.GlobalConfigDictParser": "_recursively_swap_keys parse parse_no_environment",
    "openai_utils.NeMoGymAsyncOpenAI": "create_chat_completion create_completion create_models create_response create_tokenize",
    "openai_utils.NeMoGymResponseUsage": "sum_from_list",
    "profiling.Profiler": "dump start stop",
    "rollout_collection.RolloutCollectionConfig": "materialized_jsonl_fpath",
    "rollout_collection.RolloutCollectionHelper": """_call_aggregate_metrics _preprocess_rows_from_config _run_examples_with_metadata
        preprocess_examples run_examples run_from_config setup_server_client""",
    "server_status.StatusCommand": "check_health discover_servers display_status",
    "server_utils.ServerClient": """_build_server_base_url _resolve_base_url get load_from_global_config poll_for_status post request""",
    "server_utils.SimpleServer": """get_session_middleware_key load_config_from_global_config prefix_server_logs run_webserver
        set_ulimit setup_exception_middleware setup_liveness setup_profiling setup_session_middleware setup_webserver""",
}


@pytest.mark.parametrize(("name", "target"), sorted(nemo_gym._MODULES.items()))
def test_each_module_is_the_backend_module(name: str, target: str) -> None:
    alias = importlib.import_module(f"nemo_gym.{name}")
    module = importlib.import_module(target)
    assert alias is module
    assert getattr(nemo_gym, name) is module
    assert module.__spec__ is not None
    assert module.__spec__.name == target
    stub = ROOT / "nemo_gym" / name
    stub = stub / "__init__.pyi" if stub.is_dir() else stub.with_suffix(".pyi")
    assert stub.read_text() == f"from {target} import *\n"


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in DOCUMENTED.items() for name in names.split()])
def test_documented_names_are_there(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(f"nemo_gym.{module}"), name)


@pytest.mark.parametrize("path", METHODS)
def test_documented_methods_are_there(path: str) -> None:
    module, _, name = path.rpartition(".")
    owner = getattr(importlib.import_module(f"nemo_gym.{module}"), name)
    assert [method for method in METHODS[path].split() if not hasattr(owner, method)] == []


def test_every_documented_module_is_listed() -> None:
    assert nemo_gym._MODULES.keys() == {module for module in DOCUMENTED if "." not in module}


def test_modules_of_packages_are_the_backends_too() -> None:
    import nemo_gym.sandbox.config
    from backend.servers.sandbox import config

    assert nemo_gym.sandbox.config is config
    assert config.__spec__ is not None
    assert config.__spec__.name == "backend.servers.sandbox.config"
    for missing in ("nemo_gym.sandbox.no_such", "nemo_gym.no_such", "nemo_gym.judge.no_such"):
        with pytest.raises(ModuleNotFoundError, match=missing.rpartition(".")[0]):
            importlib.import_module(missing)


MOVED = {
    "cli": """GlobalConfigDictParserConfig PipListConfig RunConfig RunHelper TestAllConfig TestConfig VersionConfig dump_config
        e2e_rollout_collection pip_list run status test test_all version""",
    "benchmarks": "list_benchmarks",
    "cli_setup_command": "run_command setup_env_command",
    "rollout_collection": "collect_rollouts",
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in MOVED.items() for name in names.split()])
def test_names_that_have_moved_are_found_with_a_warning(module: str, name: str) -> None:
    old = importlib.import_module(f"nemo_gym.{module}")
    with pytest.warns(DeprecationWarning, match=rf"nemo_gym\.{module}\.{name} has moved to nemo_gym\.") as caught:
        found = getattr(old, name)
    assert caught[0].filename == __file__
    new, _, new_name = str(caught[0].message).rpartition(" ")[2].rpartition(".")
    assert getattr(importlib.import_module(new), new_name) is found
    with pytest.raises(AttributeError):
        _ = old.no_such_name


def test_paths_are_looked_for_in_the_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", str(tmp_path))
    (tmp_path / "there.yaml").write_text("")
    assert nemo_gym.component_search_roots()[0] == tmp_path
    assert nemo_gym._resolve_under_cwd_or_install("there.yaml") == tmp_path / "there.yaml"


def test_replacing_a_name_in_one_replaces_it_in_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    import nemo_gym.server_utils
    from backend.servers import server_utils

    marker = object()
    monkeypatch.setattr(nemo_gym.server_utils, "request", marker)
    assert server_utils.request is marker


def test_the_public_names_are_sorted_and_all_there() -> None:
    assert nemo_gym.__all__ == sorted(nemo_gym.__all__)
    for name in nemo_gym.__all__:
        assert getattr(nemo_gym, name) is not None
    assert nemo_gym.__version__ == "0.6.0"
    with pytest.raises(AttributeError):
        _ = nemo_gym.no_such_name  # type: ignore[attr-defined]


def test_importing_arranges_the_path_and_the_environment(tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    code = "import nemo_gym, json, os, sys; print(json.dumps([sys.path, os.environ['HF_HOME'], os.environ['TOKENIZERS_PARALLELISM']]))"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    environment |= {"NEMO_GYM_EXTRA_ROOTS": str(extra), "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    path, hf_home, parallelism = json.loads(result.stdout)
    assert path[0] == str(extra)
    assert path[-2:] == [str(tmp_path), str(ROOT)]
    assert hf_home.endswith("cache/huggingface")
    assert parallelism == "false"
