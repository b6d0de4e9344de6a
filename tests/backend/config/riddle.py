"""The worked example of configurations: two environments of which one inherits from the other, a model and its copy, env.yaml."""

RIDDLE = {
    "riddle.yaml": """\
riddle_rs: {resources_servers: {riddle: {entrypoint: app.py, domain: games, grading: strict, tags: [a, b]}}}
riddle_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      max_steps: 3
      resources_server: {type: resources_servers, name: riddle_rs}
      model_server: {type: responses_api_models, name: policy_model}
      datasets: []
limit: 1
""",
    "hard.yaml": """\
config_paths: [riddle.yaml]
hard_rs: {_inherit_from: riddle_rs, resources_servers: {riddle: {grading: hard, tags: [z]}}}
hard_agent:
  _inherit_from: riddle_agent
  responses_api_agents:
    simple_agent:
      resources_server: {name: hard_rs}
      datasets: [{name: hard, type: example, jsonl_fpath: data/hard.jsonl}]
limit: 2
""",
    "endpoint.yaml": """\
policy_model:
  responses_api_models:
    openai_model: {entrypoint: app.py, openai_base_url: "${policy_base_url}", openai_api_key: "${policy_api_key}", openai_model: "${policy_model_name}", port: 18000}
judge_model: {_copy: policy_model, responses_api_models: {openai_model: {openai_model: judge-1, port: 18001}}}
limit: 3
""",
    "env.yaml": """\
policy_base_url: http://localhost:9/v1
policy_api_key: sk-local
policy_model_name: tiny
limit: 4
""",
}  # fmt: skip
OVERRIDES = (
    "++hard_rs.resources_servers.riddle.grading=cli",
    "++riddle_agent.responses_api_agents.simple_agent.max_steps=9",
    "++policy_model_name=big",
)
