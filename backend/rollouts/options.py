"""The settings of a run, read from the resolved configuration in which they live beside the servers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.datasets.server_blocks import server_blocks
from backend.errors import GymError, UsageError

SPLITS = ("train", "validation", "benchmark")
NOT_YET = {
    "rollout_collection_driver": "a custom collection driver",
    "reuse_existing_data_preparation": "reusing prepared data",
}
_LONGEST_NAME = 220
"""255 bytes is what file systems take; the files beside the output have longer names than it."""
_MISSING_HINTS = {"output_jsonl_fpath": "--output FILE", "input_jsonl_fpath": "--input FILE"}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What one collection run does. Keys that shape the rows themselves are `ExpansionOptions`."""

    output: Path
    serve: bool
    input: str | None = None
    split: str | None = None
    concurrency: int | None = None
    """Most rollouts in flight; None leaves it to the machine's limits."""
    disable_aggregation: bool = False
    count_failure_classes_as_zero: tuple[str, ...] = ()
    resume: bool = False
    """Go on with the run whose files are at `output`."""
    accept_changed_settings: bool = False
    """Go on also when the rollouts to come are made with other settings than those that are there."""


def run_options(config: Mapping[str, Any], *, serve: bool) -> RunOptions:
    """Read and check a run's settings.

    Raises `UsageError` for missing or malformed ones, `GymError` for those that do not fit the way of running.
    """
    if serve and config.get("input_jsonl_fpath"):
        raise GymError(
            "--input is for runs against servers that are up already",
            hint="start them with `gym env start …` and add --no-serve, or drop --input and choose a declared data set with --split",
        )
    required = ("output_jsonl_fpath", "split") if serve else ("output_jsonl_fpath", "input_jsonl_fpath")
    missing = [key for key in required if not config.get(key)]
    if missing:
        hints = " and ".join(_MISSING_HINTS.get(key) or f"--split {_a_declared_split(config)}" for key in missing)
        raise UsageError(f"missing required configuration: {', '.join(missing)}", hint=f"add {hints}")
    for key, what in NOT_YET.items():
        if config.get(key):
            raise GymError(f"{what} ({key}) is not supported by this version")
    split = config.get("split")
    if serve and split == "example":
        raise GymError(
            "`example` is not a split that can be run: example rows are for trying out",
            hint="run them with `gym env start …` and `gym eval run --no-serve --input <example.jsonl> …`",
        )
    if serve and split not in SPLITS:
        raise UsageError(f"invalid configuration: split (must be one of {', '.join(SPLITS)}, not {split!r})")
    return RunOptions(
        output=_output_path(config["output_jsonl_fpath"], serve=serve),
        serve=serve,
        input=_text(config, "input_jsonl_fpath"),
        split=_text(config, "split"),
        concurrency=_concurrency(config),
        disable_aggregation=bool(config.get("disable_aggregation")),
        count_failure_classes_as_zero=_classes(config.get("count_failure_classes_as_zero")),
        resume=bool(config.get("resume_from_cache")),
        accept_changed_settings=bool(config.get("accept_changed_settings")),
    )


def _a_declared_split(config: Mapping[str, Any]) -> str:
    declared = {
        entry.get("type")
        for server in server_blocks(config)
        for entry in server.fields.get("datasets") or ()
        if isinstance(entry, Mapping)
    }
    return next((split for split in SPLITS if split in declared), "benchmark")


def _output_path(value: Any, *, serve: bool) -> Path:
    path = Path(os.path.expanduser(str(value)))
    if len(path.name.encode()) > _LONGEST_NAME:
        raise UsageError(
            f"the name of --output is too long: {len(path.name.encode())} bytes, at most {_LONGEST_NAME} leave room for its files"
        )
    try:
        is_folder, is_other = path.is_dir() or not path.name, path.exists() and not path.is_file()
    except OSError as error:
        raise GymError(f"--output {value}: {error.strerror}", hint="choose another place") from error
    if is_folder:
        raise UsageError(f"--output {value} is a folder", hint=f"name a file in it, such as {path / 'rollouts.jsonl'}")
    if is_other:
        raise UsageError(f"--output {value} is not a regular file, and this run would replace it")
    if serve and not path.suffix:
        # The prepared data goes into a folder of the output's name without its suffix.
        raise UsageError(f"--output {value} has no suffix", hint=f"call it {path.name}.jsonl")
    return path


def _classes(value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else (value or ())
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) and item.strip() for item in items):
        raise UsageError(
            f"invalid configuration: count_failure_classes_as_zero (must be a list of failure classes, not {value!r})"
        )
    return tuple(item.strip() for item in items)


def _text(config: Mapping[str, Any], key: str) -> str | None:
    value = config.get(key)
    return None if value is None else str(value)


def _concurrency(config: Mapping[str, Any]) -> int | None:
    value = config.get("num_samples_in_parallel")
    if not value:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(f"invalid configuration: num_samples_in_parallel (must be a whole number of at least 1, not {value!r})")
    return value
