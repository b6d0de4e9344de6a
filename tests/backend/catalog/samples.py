"""Texts of configuration files that the tests of the catalogue share."""

from __future__ import annotations

QUIZ = """\
quiz_rs:
  resources_servers:
    quiz: {entrypoint: app.py, domain: knowledge, description: Questions with one answer, value: Know more}
quiz_simple_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: quiz_rs}
      datasets: [{name: quiz_example, type: example, jsonl_fpath: x.jsonl}]
"""
TRIVIA = """\
config_paths: [resources_servers/quiz/configs/quiz.yaml]
trivia_rs: {_inherit_from: quiz_rs}
trivia_agent:
  _inherit_from: quiz_simple_agent
  responses_api_agents:
    simple_agent:
      resources_server: {name: trivia_rs}
      datasets: [{name: trivia, type: benchmark, jsonl_fpath: t.jsonl, prepare_script: benchmarks/trivia/prepare.py}]
"""
WALK = """\
walk_rs:
  resources_servers:
    walk: {entrypoint: app.py, domain: games, description: Walks}
walk_agent:
  responses_api_agents:
    gym_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: walk_rs}
      model_server: {type: responses_api_models, name: policy_model}
      datasets: [{name: walk, type: train, jsonl_fpath: environments/walk/data/train.jsonl}]
"""
AGENT = """\
simple_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: '???'}
"""
MODEL = """\
policy_model:
  responses_api_models:
    openai_model: {entrypoint: app.py, base_url: "${policy_base_url}", api_key: sk-do-not-keep}
"""
DATASET = "{name: NAME, type: benchmark, jsonl_fpath: t.jsonl, prepare_script: p.py}"
MANIFEST = """\
name: trivia
version: 0.1.0
kind: benchmark
integration_profile: custom-gym-verifier
domain: games
description: Trivia, curated
modality: text
authors: [Ada]
reward: {range: [0, 1], higher_is_better: true}
resources_server: quiz
agent_server: simple_agent
model_server: policy_model
datasets: [{name: trivia, type: benchmark, jsonl_fpath: data/trivia.jsonl, prepare_script: prepare.py}]
canonical_split: test
standard_prompt_config: prompts/trivia.yaml
"""


def benchmark(name: str, domain: str = "math", datasets: int = 1) -> str:
    entries = ", ".join([DATASET.replace("NAME", name)] * datasets)
    return (
        f"{name}: {{resources_servers: {{{name}: {{entrypoint: app.py, domain: {domain}, description: About {name},"
        f" datasets: [{entries}]}}}}}}\n"
    )
