"""Calls as existing code makes them, with the parameter names that NeMo Gym 0.6.0 has."""

from __future__ import annotations

import inspect
import json
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from omegaconf import OmegaConf

from backend.responses.converter import _usage_detail
from nemo_gym import global_config
from nemo_gym.base_responses_api_model import SimpleResponsesAPIModel, observability_enabled_from_config
from nemo_gym.benchmarks import BenchmarkConfig
from nemo_gym.decorators import experimental
from nemo_gym.global_config import (
    GlobalConfigDictParser,
    GlobalConfigDictParserConfig,
    get_global_config_dict,
    set_global_config_dict,
)
from nemo_gym.judge import JudgeError, judge_failsafe, reraise_judge_errors
from nemo_gym.openai_utils import (
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymResponseUsage,
    TokenIDLogProbMixin,
    accumulate_response_usage,
)
from nemo_gym.path_utils import failures_path_for
from nemo_gym.profiling import Profiler
from nemo_gym.responses_converter import ResponsesConverter, VLLMConverterResponsesToChatCompletionsState
from nemo_gym.reward_profile import add_avg_sample_std_dev, compute_perf_summary
from nemo_gym.rollout_collection import loads_jsonl_line
from nemo_gym.server_utils import SimpleServer, apply_rollout_prefix, is_nemo_gym_fastapi_entrypoint
from nemo_gym.skills import stage_skills

PARAMETERS: list[tuple[Callable[..., Any], str]] = [
    (SimpleServer.setup_profiling, "self app profiling_config"),
    (SimpleResponsesAPIModel.setup_profiling, "self app profiling_config"),
    (observability_enabled_from_config, "global_config_dict"),
    (BenchmarkConfig.from_config_path, "config_path strict"),
    (experimental, "fn"),
    (judge_failsafe, "verify_fn"),
    (reraise_judge_errors, "coro"),
    (accumulate_response_usage, "total additional"),
    (failures_path_for, "output_fpath"),
    (apply_rollout_prefix, "base_url rollout_id token_capture"),
    (is_nemo_gym_fastapi_entrypoint, "file"),
    (stage_skills, "path dest_skills_dir"),
    (loads_jsonl_line, "raw fpath line_no"),
    (ResponsesConverter.chat_completion_to_responses_create_params, "self chat_completion_create_params"),
    (compute_perf_summary, "ng_perf_records total_rollouts"),
    (add_avg_sample_std_dev, "metrics all_score_dicts score_names max_k"),
    (get_global_config_dict, "global_config_dict_parser_config global_config_dict_parser_cls"),
    (set_global_config_dict, "global_config_dict_parser_config global_config_dict_parser_cls"),
    (_usage_detail, "usage detail_group detail_name top_level_aliases"),
]


@pytest.mark.parametrize(("function", "names"), PARAMETERS, ids=lambda value: getattr(value, "__qualname__", ""))
def test_parameters_have_the_documented_names(function: Callable[..., Any], names: str) -> None:
    assert list(inspect.signature(function).parameters) == names.split()


def test_small_ones() -> None:
    assert observability_enabled_from_config(global_config_dict={"observability_enabled": True}) is True
    assert failures_path_for(output_fpath=Path("a/b.jsonl")) == Path("a/b_failures.jsonl")
    prefixed = apply_rollout_prefix(base_url="http://h:1/v1", rollout_id="0-1", token_capture=True)
    assert prefixed == "http://h:1/ng-rollout/0-1/training-token-capture/v1"
    assert is_nemo_gym_fastapi_entrypoint(file=__file__) is False
    assert loads_jsonl_line(raw='{"a": 1}', fpath=Path("x.jsonl"), line_no=3) == {"a": 1}
    assert compute_perf_summary(ng_perf_records=[], total_rollouts=1) is None
    metrics: dict[str, Any] = {}
    scores = [[{"accuracy": 1.0}, {"accuracy": 0.0}]]
    add_avg_sample_std_dev(metrics=metrics, all_score_dicts=scores, score_names=["accuracy"], max_k=2)
    assert metrics["pass@1[avg-of-2]/accuracy/avg_sample_std_dev"] == pytest.approx(0.5**0.5)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert experimental(fn=lambda: 3)() == 3
    assert told


async def test_judges() -> None:
    async def broken() -> None:
        raise OSError("no route")

    with pytest.raises(JudgeError, match="OSError: no route"):
        await reraise_judge_errors(coro=broken())

    async def verify() -> None:
        raise JudgeError("down")

    answer = await judge_failsafe(verify_fn=verify)()
    assert json.loads(answer.body)["_ng_failure_class"] == "judge_failed"


def test_usage_adds_up() -> None:
    def usage(n: int) -> NeMoGymResponseUsage:
        return NeMoGymResponseUsage.model_validate(
            {
                "input_tokens": n,
                "input_tokens_details": {"cached_tokens": None},
                "output_tokens": n,
                "output_tokens_details": {"reasoning_tokens": n},
                "total_tokens": 2 * n,
            }
        )

    total = accumulate_response_usage(total=usage(1), additional=usage(2))
    assert total is not None and (total.input_tokens, total.total_tokens) == (3, 6)
    assert total.input_tokens_details.cached_tokens is None


def test_skills_and_benchmarks(tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "one"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: one\ndescription: d\n---\n")
    stage_skills(path=str(tmp_path / "skills"), dest_skills_dir=tmp_path / "staged")
    assert (tmp_path / "staged" / "one" / "SKILL.md").exists()
    config = tmp_path / "config.yaml"
    config.write_text("{}\n")
    assert BenchmarkConfig.from_config_path(config_path=config, strict=False) is None


def test_chat_request() -> None:
    request = NeMoGymChatCompletionCreateParamsNonStreaming.model_validate({"messages": [{"role": "user", "content": "hi"}]})
    made = ResponsesConverter(return_token_id_information=False).chat_completion_to_responses_create_params(
        chat_completion_create_params=request
    )
    assert len(made.input) == 1


def test_a_conversion_step_by_step() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    tokens = TokenIDLogProbMixin(prompt_token_ids=[1], generation_token_ids=[2], generation_log_probs=[0.5])
    state = VLLMConverterResponsesToChatCompletionsState(return_token_id_information=True)
    state.flush_assistant()
    assert state.messages == []
    state.content_buffer = "hi"
    state.flush_assistant()
    state.assistant_item_buffered = True
    state.flush_assistant()
    state.tool_calls_buffer, state.token_information = [call], tokens
    state.flush_assistant()
    assert state.messages == [
        {"role": "assistant", "content": "hi"},
        {"role": "assistant", "content": None},
        {
            "role": "assistant", "content": None, "tool_calls": [call],
            "prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [0.5],
        },
    ]  # fmt: skip
    assert (state.content_buffer, state.tool_calls_buffer, state.assistant_item_buffered) == ("", [], False)
    without = VLLMConverterResponsesToChatCompletionsState(
        return_token_id_information=False, content_buffer="x", token_information=tokens
    )
    without.flush_assistant()
    assert without.messages == [{"role": "assistant", "content": "x"}]


TABLE = """
Clock type: CPU

name                 ncall  tsub  ttot  tavg
/a/t.py:5 alpha_fn   3      0.1   0.2   0.1
/a/t.py:7 beta_fn    1      0.1   0.2   0.1
"""


def test_a_profile_of_some_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stats = types.SimpleNamespace(
        print_all=lambda out, columns: out.write(TABLE), save=lambda path, type: Path(path).write_text(type)
    )
    monkeypatch.setitem(sys.modules, "yappi", types.SimpleNamespace(get_func_stats=lambda: stats))
    monkeypatch.setenv("PATH", "")
    profiler = Profiler(name="n", base_profile_dir=str(tmp_path / "p"), required_str="alpha")  # type: ignore[arg-type]
    assert (profiler.base_profile_dir, profiler.required_str) == (tmp_path / "p", "alpha")
    profiler.dump()
    log = (tmp_path / "p" / "n.log").read_text()
    assert "alpha_fn" in log and "beta_fn" not in log and "ncall" in log
    Profiler(name="all", base_profile_dir=tmp_path).dump()
    assert (tmp_path / "all.log").read_text() == TABLE
    assert Profiler(name="n", base_profile_dir=tmp_path).required_str is None


@pytest.fixture
def no_config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in ("NEMO_GYM_CONFIG_DICT", "NEMO_GYM_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["program"])
    set_global_config_dict()
    yield
    set_global_config_dict()


def settings(**fields: Any) -> GlobalConfigDictParserConfig:
    return GlobalConfigDictParserConfig(
        dotenv_path=None,
        initial_global_config_dict=OmegaConf.create(fields),
        skip_load_from_cli=True,
        skip_load_from_dotenv=True,
        hide_secrets=False,
        offline=True,
    )


def test_the_parsers_settings_make_the_configuration(no_config: None) -> None:
    set_global_config_dict(global_config_dict_parser_config=settings(a=1))
    assert get_global_config_dict().a == 1
    assert get_global_config_dict(global_config_dict_parser_config=settings(a=2)).a == 1, "there is one already"
    set_global_config_dict()
    assert get_global_config_dict(global_config_dict_parser_config=settings(a=2)).a == 2


def test_another_parser_is_used(no_config: None) -> None:
    class Own(GlobalConfigDictParser):
        def parse(self, parse_config: GlobalConfigDictParserConfig | None = None) -> Any:
            return OmegaConf.create({"own": parse_config is None})

    assert get_global_config_dict(global_config_dict_parser_cls=Own).own is True
    set_global_config_dict(global_config_dict_parser_config=settings(a=1), global_config_dict_parser_cls=Own)
    assert get_global_config_dict().own is False
    set_global_config_dict(global_config_dict_parser_cls=Own)
    assert get_global_config_dict().own is True


def test_the_file_of_the_environment_may_be_elsewhere(no_config: None, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("a: 5\npolicy_api_key: sk-1234567890\n")
    wanted = global_config.GlobalConfigDictParserConfig(
        dotenv_path=tmp_path / "other.yaml", skip_load_from_cli=True, hide_secrets=True
    )
    parsed = GlobalConfigDictParser().parse(wanted)
    assert (parsed.a, parsed.policy_api_key) == (5, "****")
    named = GlobalConfigDictParserConfig(dotenv_path=str(tmp_path / "other.yaml"), skip_load_from_cli=True)
    assert GlobalConfigDictParser().parse(named).a == 5


def test_profiling_is_set_up_by_name(tmp_path: Path) -> None:
    from nemo_gym.server_utils import ProfilingMiddlewareConfig

    with pytest.raises(Exception, match="profiling_results_dirpath"):
        SimpleServer.setup_profiling(None, app=FastAPI(), profiling_config=ProfilingMiddlewareConfig())  # type: ignore[arg-type]
