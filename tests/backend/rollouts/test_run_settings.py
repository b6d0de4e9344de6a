"""Which settings decide rollouts, and how changes of them are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from backend.rollouts.expansion_options import expansion_options
from backend.rollouts.run_settings import changed_settings, run_settings

MODEL = {"entrypoint": "app.py", "openai_model": "m", "openai_base_url": "http://a/v1", "openai_api_key": "k1", "port": 1}


def settings_of(config: dict[str, Any], **model: Any) -> dict[str, Any]:
    servers = {"policy_model": {"responses_api_models": {"openai_model": {**MODEL, **model}}}}
    return run_settings(expansion_options(config, [Path.cwd()]), {**config, **servers}, "validation")


@pytest.mark.parametrize(
    "model",
    [
        {"openai_base_url": "http://b/v1"},
        {"openai_base_url": ["http://b/v1", "http://c/v1"]},
        {"openai_api_key": "k2"},
        {"host": "10.0.0.1", "port": 99, "num_workers": 4},
        {"description": "other words"},
        {"nested": {"port": 5}},
    ],
)
def test_what_may_differ(model: dict[str, Any]) -> None:
    assert (
        changed_settings(settings_of({}), settings_of({"num_samples_in_parallel": 9, "output_jsonl_fpath": "o"}, **model)) == []
    )


@pytest.mark.parametrize(
    ("config", "model", "told"),
    [
        ({"responses_create_params": {"temperature": 1.0}}, {}, "responses_create_params.temperature: (unset) -> 1.0"),
        ({"num_repeats": 2}, {}, "num_repeats: 1 -> 2"),
        ({"limit": 5}, {}, "limit: (unset) -> 5"),
        ({"agent_name": "b"}, {}, 'agent_map._default: (unset) -> "b"'),
        ({"num_repeats_add_seed": True}, {}, "num_repeats_add_seed: false -> true"),
        ({}, {"openai_model": "n"}, 'policy_model.responses_api_models.openai_model.openai_model: "m" -> "n"'),
        ({}, {"extra_body": {"top_k": 3}}, "policy_model.responses_api_models.openai_model.extra_body.top_k: (unset) -> 3"),
    ],
)
def test_what_may_not_differ(config: dict[str, Any], model: dict[str, Any], told: str) -> None:
    assert [str(change) for change in changed_settings(settings_of({}), settings_of(config, **model))] == [told]
    (back,) = changed_settings(settings_of(config, **model), settings_of({}))
    assert str(back).split(": ")[0] == told.split(": ")[0]


def test_a_prompt_counts_by_its_text(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("user: '{question}'")
    (tmp_path / "q.yaml").write_text("user: '{question}'\n")
    prompts = [settings_of({"prompt_config": str(tmp_path / name)}) for name in ("p.yaml", "q.yaml")]
    assert changed_settings(*prompts) == []
    assert prompts[0]["prompt_config.user"] == "{question}"
