from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from backend.config.errors import ConfigError
from backend.datasets.benchmarks import BenchmarkConfig


def dataset(name: str = "sums", **fields: object) -> dict[str, object]:
    entry = {"name": name, "type": "benchmark", "jsonl_fpath": f"data/{name}.jsonl", "prepare_script": f"{name}/prepare.py"}
    return {**entry, **fields}


def config(tmp_path: Path, *datasets: dict[str, object], **agent: object) -> Path:
    server = {"entrypoint": "app.py", "domain": "math"}
    reference = {"type": "resources_servers", "name": "sums_server"}
    model = {"type": "responses_api_models", "name": "policy_model"}
    block = {"entrypoint": "app.py", "resources_server": reference, "model_server": model, "datasets": list(datasets), **agent}
    tree = {
        "sums_server": {"resources_servers": {"sums": server}},
        "sums_agent": {"responses_api_agents": {"simple_agent": block}},
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(tree))
    return path


def test_a_configuration_with_one_benchmark(tmp_path: Path) -> None:
    path = config(tmp_path, dataset(num_repeats=3, prompt_config="p.yaml"), dataset("other") | {"type": "example"})
    benchmark = BenchmarkConfig.from_config_path(path)
    assert benchmark is not None
    assert (benchmark.name, benchmark.path, benchmark.agent_name, benchmark.num_repeats) == ("sums", path, "sums_agent", 3)
    assert benchmark.dataset.jsonl_fpath == Path("data/sums.jsonl")
    assert benchmark.dataset.prepare_script == Path("sums/prepare.py")
    assert benchmark.dataset.prompt_config == Path("p.yaml")


def test_none_and_several_benchmarks_give_none(tmp_path: Path) -> None:
    assert BenchmarkConfig.from_config_path(config(tmp_path)) is None
    assert BenchmarkConfig.from_config_path(config(tmp_path, dataset(), dataset("other"))) is None


def test_strictness_is_about_what_nobody_has_set(tmp_path: Path) -> None:
    path = config(tmp_path, dataset(), max_steps="???")
    with pytest.raises(ConfigError, match="max_steps"):
        BenchmarkConfig.from_config_path(path)
    benchmark = BenchmarkConfig.from_config_path(path, strict=False)
    assert benchmark is not None
    assert benchmark.name == "sums"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        BenchmarkConfig.from_config_path(tmp_path / "none.yaml")
    assert BenchmarkConfig.from_config_path(tmp_path / "none.yaml", strict=False) is None
