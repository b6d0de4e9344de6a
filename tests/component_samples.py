"""Small trees of components for tests of the catalogue's screens: a dozen in all states, hundreds, and hostile ones."""

from __future__ import annotations

import json
from pathlib import Path

BROKEN_LINE = 14
SECRET = "sk-live-0123456789"

_RESOURCES_SERVER = """\
{name}:
  resources_servers:
    {name}: {{entrypoint: app.py, domain: {domain}, description: "{description}"}}
"""
_BENCHMARK = """\
config_paths: [resources_servers/math_with_judge/configs/math_with_judge.yaml]

{name}_rs:
  _inherit_from: math_with_judge
  resources_servers:
    math_with_judge: {{description: "{description}"}}

{name}_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {{type: resources_servers, name: {name}_rs}}
      model_server: {{type: responses_api_models, name: policy_model}}
      datasets:
        - name: {name}
          type: benchmark
          jsonl_fpath: benchmarks/{name}/data/benchmark.jsonl
          prepare_script: benchmarks/{name}/prepare.py
          num_repeats: 4
          license: CC-BY-4.0
"""
_AGENT = """\
{name}:
  responses_api_agents:
    {name}:
      entrypoint: app.py
      resources_server: {{type: resources_servers, name: "???"}}
      model_server: {{type: responses_api_models, name: policy_model}}
"""
_MODEL = """\
policy_model:
  responses_api_models:
    {name}:
      entrypoint: app.py
      base_url: ${{policy_base_url}}
      api_key: {key}
      model: ${{policy_model_name}}
"""
_README = """\
# {title}

Short-answer mathematics graded by a *symbolic* checker.

| part | tasks |
|------|-------|
| easy | 300 |
| hard | 200 |
"""


def write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_resources_server(root: Path, name: str, domain: str = "math", description: str = "Checks answers") -> None:
    text = _RESOURCES_SERVER.format(name=name, domain=domain, description=description)
    write_file(root / f"resources_servers/{name}/configs/{name}.yaml", text)


def write_benchmark(root: Path, name: str, description: str, *, rows: int = 3, readme: str = "") -> None:
    folder = root / "benchmarks" / name
    write_file(folder / "config.yaml", _BENCHMARK.format(name=name, description=description))
    if readme:
        write_file(folder / "README.md", readme)
    if rows:
        row = {"question": "What is 2 plus 3?", "answer": "5"}
        write_file(folder / "data/benchmark.jsonl", "".join(json.dumps({"id": number, **row}) + "\n" for number in range(rows)))


def write_agent(root: Path, name: str) -> None:
    write_file(root / f"responses_api_agents/{name}/configs/{name}.yaml", _AGENT.format(name=name))


def write_model(root: Path, name: str, key: str = "${policy_api_key}") -> None:
    write_file(root / f"responses_api_models/{name}/configs/{name}.yaml", _MODEL.format(name=name, key=key))


def write_catalog(root: Path) -> None:
    """Eleven components below `root`, one of them broken and one without its data."""
    write_benchmark(
        root, "math_verified", "Short answers, checked symbolically", rows=500, readme=_README.format(title="Math verified")
    )
    write_benchmark(root, "math_hard_verified", "Harder ones", rows=0)
    write_benchmark(root, "aime24_verified", "Thirty problems of a contest", rows=30)
    write_file(
        root / "environments/walk/config.yaml",
        "walk_rs:\n  resources_servers:\n    walk: {entrypoint: app.py, domain: games, description: Walks through a maze}\n"
        "walk_agent:\n  responses_api_agents:\n    tool_agent:\n      entrypoint: app.py\n"
        "      resources_server: {type: resources_servers, name: walk_rs}\n"
        "      model_server: {type: responses_api_models, name: policy_model}\n",
    )
    write_resources_server(root, "math_with_judge", description="Compares with a judge")
    write_resources_server(root, "multi_verify_math")
    lines = [f"# line {number}" for number in range(1, BROKEN_LINE)]
    write_file(
        root / "resources_servers/math_proof_verifier/configs/math_proof_verifier.yaml",
        "\n".join([*lines, "proofs: [a, b", "next: c"]) + "\n",
    )
    write_agent(root, "simple_agent")
    write_agent(root, "tool_agent")
    write_model(root, "openai_model", SECRET)
    write_model(root, "vllm_model")


def write_many(root: Path, count: int = 314) -> None:
    """So many components of all kinds."""
    write_resources_server(root, "math_with_judge")
    for number in range(1, count):
        name = f"component_{number:03}"
        if number % 10 == 0:
            write_agent(root, name)
        elif number % 30 == 1:
            write_model(root, name)
        elif number % 3:
            write_benchmark(root, name, f"Number {number} of many", rows=1)
        else:
            write_resources_server(root, name, ("math", "coding", "games")[number % 9 // 3], f"Server number {number}")


def write_hostile(root: Path) -> None:
    """Components whose names and texts would be markup, drive a terminal, or are wider than they look."""
    write_file(root / "benchmarks/[red]x[/config.yaml", _BENCHMARK.format(name="a", description="[/] [bold \\x1b]0;owned\\x07"))
    write_file(
        root / "benchmarks/[red]x[/README.md", "# [/red] \x1b[2J\x1b]52;c;cHduZWQ=\x07 <b>&#27;[31m</b>\n\n[link](javascript:x)\n"
    )
    write_resources_server(root, "日本語の問題集", "数学", "説明")
    write_resources_server(root, "esc\x1b[31mname", "[/dom]", "x")
    write_resources_server(root, "a" * 120, "d" * 300, "e" * 3000)
