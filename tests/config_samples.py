"""A small configuration in a folder: an includer, what it includes, an env.yaml with a key; for tests of screens."""

from __future__ import annotations

from pathlib import Path

SHARED = """\
math_base:
  resources_servers:
    mcqa:
      entrypoint: app.py
      domain: math
      grading_mode: strict_single_letter_boxed
"""
MATH = """\
config_paths:
  - shared.yaml
math:
  _inherit_from: math_base
  resources_servers:
    mcqa:
      grading_mode: lenient_boxed
math_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: math}
      model_server: {type: responses_api_models, name: policy_model}
      datasets:
        - name: math
          type: example
          jsonl_fpath: data/example.jsonl
policy_model:
  responses_api_models:
    openai_model:
      entrypoint: app.py
      openai_base_url: ${policy_base_url}
      openai_api_key: ${policy_api_key}
      openai_model: ${policy_model_name}
"""
ENV = """\
policy_base_url: http://127.0.0.1:8000/v1
policy_api_key: sk-not-to-be-seen-1234
policy_model_name: small-7b
"""
SECRET = "sk-not-to-be-seen-1234"


def write_config(folder: Path, *, env: bool = True) -> tuple[str, ...]:
    """Write the files; gives the words of the configuration, to be resolved in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shared.yaml").write_text(SHARED)
    (folder / "math.yaml").write_text(MATH)
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "example.jsonl").write_text("{}\n")
    if env:
        (folder / "env.yaml").write_text(ENV)
    return ("--config", "math.yaml", "+num_repeats=4")
