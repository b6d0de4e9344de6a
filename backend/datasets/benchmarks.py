"""What one benchmark is, read from its configuration; importable by existing code as `nemo_gym.benchmarks`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from backend.config.errors import ConfigError
from backend.config.findings import Findings
from backend.config.request import ConfigRequest
from backend.config.resolution import resolve_collecting
from backend.datasets.server_blocks import server_blocks
from backend.errors import Place
from backend.io.moved_names import moved

__all__ = ["BenchmarkConfig", "BenchmarkDatasetConfig"]

_BENCHMARK = "benchmark"


class BenchmarkDatasetConfig(BaseModel):
    """An entry of `datasets` with `type: benchmark`; other keys of the entry are ignored."""

    name: str
    type: Literal["benchmark"] = "benchmark"
    jsonl_fpath: Path
    prepare_script: Path
    prompt_config: Path | None = None
    num_repeats: Annotated[int, Field(ge=1)] = 1
    agent: str | None = None
    """The agent that runs the rows, where several could."""


class BenchmarkConfig(BaseModel):
    """A benchmark: its data set and the instance that declares it."""

    name: str
    path: Path
    agent_name: str
    num_repeats: int
    dataset: BenchmarkDatasetConfig

    @classmethod
    def from_config_path(cls, config_path: str | Path, strict: bool = True) -> BenchmarkConfig | None:
        """The benchmark of a configuration file with all it includes; None for a file that declares none, or several.

        Whatever model it wants, a stand-in takes its place. Without `strict`, values that nobody has set yet and other mistakes
        are passed over; with it they raise the `ConfigError` family.
        """
        request = ConfigRequest(
            config_paths=(str(Path(config_path).absolute()),), stand_in_model=True, read_env_file=False, check_components=False
        )
        findings = Findings()
        resolved = resolve_collecting(request, findings)
        if strict:
            findings.raise_first()
        found = [
            (server.instance, entry)
            for server in server_blocks(resolved.tree if resolved is not None else {})
            for entry in server.fields.get("datasets") or ()
            if isinstance(entry, Mapping) and entry.get("type") == _BENCHMARK
        ]
        if len(found) != 1:
            return None
        instance, entry = found[0]
        try:
            dataset = BenchmarkDatasetConfig.model_validate(entry)
        except ValidationError as error:
            details = [f"  {'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
            raise ConfigError(
                "the benchmark's dataset is declared wrongly", place=Place(str(config_path)), details=details
            ) from None
        return cls(
            name=dataset.name,
            path=Path(config_path),
            agent_name=dataset.agent or instance,
            num_repeats=dataset.num_repeats,
            dataset=dataset,
        )


def __getattr__(name: str) -> Any:
    if name == "list_benchmarks":
        return moved("nemo_gym.benchmarks", name, "nemo_gym.cli.general", "backend.cli.library.general")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
