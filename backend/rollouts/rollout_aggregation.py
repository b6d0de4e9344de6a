"""Metrics over the rollouts of several files: shards of one evaluation that were collected apart."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from backend.config.errors import ConfigError
from backend.errors import Place, name_some
from backend.io.files import replacing
from backend.io.json_codec import dumps
from backend.io.jsonl import read_jsonl
from backend.io.result_paths import ResultPaths
from backend.io.row_keys import ROLLOUT, TASK
from backend.rollouts.failures import failures_as_zero


class RolloutAggregationConfig(BaseModel):
    """Which files are aggregated, and where the result goes; other keys are for the servers and ignored."""

    model_config = ConfigDict(extra="ignore")

    input_glob: str
    """One or several patterns, separated by commas."""
    output_jsonl_fpath: str
    merge_shards: bool = True
    """Write all rollouts, sorted, to the output."""
    count_failure_classes_as_zero: list[str] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shards:
    """The files of an aggregation and what they hold, sorted by task and rollout."""

    files: tuple[Path, ...]
    records: list[dict[str, Any]]


def read_shards(config: RolloutAggregationConfig) -> Shards:
    """The rollouts of all files that the patterns match; what belongs to a file (its failures, its rows) is no file of its own.

    Raises `ConfigError` when nothing matches, for a line that is no rollout, and for a rollout that is there twice.
    """
    files = _matching(config.input_glob)
    if not files:
        raise ConfigError(f"no file matches {config.input_glob}", hint="give the pattern of the rollouts files with --input-glob")
    places: dict[tuple[int, int], Place] = {}
    records: list[dict[str, Any]] = []
    twice: list[str] = []
    for file in files:
        for line in read_jsonl(file, allow_torn_tail=True):
            place = Place(str(file), line.number)
            task, rollout = line.value.get(TASK), line.value.get(ROLLOUT)
            if not isinstance(task, int) or not isinstance(rollout, int):
                raise ConfigError(f"this is no rollout: it needs {TASK} and {ROLLOUT}", place=place)
            key = (task, rollout)
            if key in places:
                twice.append(f"{task}:{rollout} in {places[key]} and {place}")
            places[key] = place
            records.append(line.value)
    if twice:
        raise ConfigError(
            f"{len(twice)} rollout(s) are there more than once: {name_some(twice, 3)}",
            hint=f"give each shard task indices of its own: stamp {TASK} into the rows before they are split",
        )
    return Shards(tuple(files), sorted(records, key=lambda record: (record[TASK], record[ROLLOUT])))


def write_merged(shards: Shards, output: Path) -> None:
    """Write all rollouts of the shards, in order, in place of what `output` is."""
    with replacing(output.absolute()) as file:
        for record in shards.records:
            file.write(dumps(record) + b"\n")


def counted_failures(shards: Shards, classes: Sequence[str]) -> list[dict[str, Any]]:
    """The failed rollouts of all shards that count as zero, each shard's own failures read."""
    if not classes:
        return []
    scored = {(record[TASK], record[ROLLOUT]) for record in shards.records}
    return failures_as_zero(_failures(shards.files), classes, scored)


def _failures(files: Sequence[Path]) -> Iterator[Mapping[str, Any]]:
    for file in files:
        sidecar = ResultPaths(file).failures
        if sidecar.exists():
            yield from (line.value for line in read_jsonl(sidecar, allow_torn_tail=True))


def _matching(patterns: str) -> list[Path]:
    """The matching files, pattern by pattern, each once."""
    names = [
        name for pattern in patterns.split(",") if pattern.strip() for name in sorted(glob.glob(pattern.strip(), recursive=True))
    ]
    found = [Path(name) for name in dict.fromkeys(names) if Path(name).is_file()]
    beside = {path for file in found for path in (ResultPaths(file).failures, ResultPaths(file).materialized_inputs)}
    return [file for file in found if file not in beside]
