"""Reads `run.json`, a run's own record, and what it says about benchmark, model and process.

The record may be older, newer or damaged: a value of the wrong type counts as absent.
"""

from __future__ import annotations

import glob
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from backend.config.schema import AGENTS, MODELS
from backend.datasets.server_blocks import server_blocks
from backend.errors import GymError, Place
from backend.io.json_codec import loads
from backend.io.result_paths import RUN_FOLDER_SUFFIX, ResultPaths

_CLOCK_SLACK_SECONDS = 2.0
_SELECTORS = ("--benchmark", "--environment", "--resources-server")
_MODEL_FIELDS = ("model", "openai_model", "model_name", "model_path")


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What a run wrote about itself. Times are seconds since the epoch; None is what is not known."""

    path: Path
    state: str | None
    """As written: `running`, `done`, `stopped` or `failed`; a killed run keeps saying `running`."""
    command: tuple[str, ...]
    """As typed, secrets masked."""
    cwd: str | None
    host: str | None
    pid: int | None
    started_at: float | None
    ended_at: float | None
    error: str | None
    output: str | None
    """The rollouts file, as it was named then; the whole folder may have moved since."""
    planned: int | None
    agents: Mapping[str, int]
    """Planned rollouts per agent instance."""
    scored: int | None
    failed: int | None
    missing: int | None
    benchmark: str | None
    model: str | None
    sessions: int
    """How often the run was begun or resumed."""
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)


def read_run_record(path: str | Path) -> RunRecord:
    """The record in the file `path`. Raises `GymError` when it cannot be read or is not a JSON object."""
    path = Path(path)
    try:
        value = loads(path.read_bytes())
    except OSError as error:
        raise GymError(f"cannot read {path}: {error.strerror}", place=Place(str(path))) from error
    except ValueError as error:
        raise GymError(f"the run record {path} is not valid JSON: {error}", place=Place(str(path))) from None
    if not isinstance(value, dict):
        raise GymError(f"the run record {path} is not a JSON object", place=Place(str(path)))
    return _record(path, value)


def resumed(command: Sequence[str]) -> tuple[str, ...]:
    """The words of the command that goes on with the run that `command` began; none when there is no command."""
    words = [word for word in command if word != "--resume" and not word.lstrip("+").startswith("resume_from_cache=")]
    return (*words, "--resume") if words else ()


def paths_of_run_folder(folder: Path, record: RunRecord | None = None) -> ResultPaths:
    """The files of the run whose folder this is. Its place counts, and of the recorded output only the name: folders are moved.

    Without a readable record the rollouts file is the one of that stem which exists, by default `.jsonl`.
    """
    if record is None:
        try:
            record = read_run_record(folder / "run.json")
        except GymError:
            pass
    stem = folder.name.removesuffix(RUN_FOLDER_SUFFIX)
    if record is not None and record.output:
        recorded = ResultPaths(folder.with_name(Path(record.output).name))
        if recorded.run_folder == folder:
            return recorded
    usual = folder.with_name(f"{stem}.jsonl")
    if not usual.exists():
        others = [path for path in folder.parent.glob(f"{glob.escape(stem)}.*") if path.stem == stem and path.is_file()]
        usual = min(others, default=usual)
    return ResultPaths(usual)


def is_alive(record: RunRecord, lock: Path) -> bool | None:
    """Whether the process that wrote `record` still runs; None when it is on another host, or the record names none.

    A zombie is dead, and so is a number that belongs to another process by now: one that began after the run did. Because a step
    of the system's clock looks the same, such a process is asked whether it holds the run's `lock` file.
    """
    if record.host is None or record.pid is None or record.host != socket.gethostname():
        return None
    import psutil  # 15 ms, and only needed when a record says `running`

    if record.pid == os.getpid():
        return True
    try:
        process = psutil.Process(record.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        if record.started_at is None or process.create_time() <= record.started_at + _CLOCK_SLACK_SECONDS:
            return True
        return any(os.path.samefile(file.path, lock) for file in process.open_files())
    except (psutil.Error, OSError, ValueError, OverflowError):
        return False


def _record(path: Path, value: Mapping[str, Any]) -> RunRecord:
    config = value.get("config")
    config = config if isinstance(config, dict) else {}
    command = value.get("command")
    words = tuple(word for word in command if isinstance(word, str)) if isinstance(command, list) else ()
    agents = value.get("agents")
    counts = {name: count for name, count in agents.items() if type(count) is int} if isinstance(agents, dict) else {}
    return RunRecord(
        path=path,
        state=_text(value, "state"),
        command=words,
        cwd=_text(value, "cwd"),
        host=_text(value, "host"),
        pid=_whole(value, "pid"),
        started_at=_number(value, "started_at"),
        ended_at=_number(value, "ended_at"),
        error=_text(value, "error"),
        output=_text(value, "output") or _text(config, "output_jsonl_fpath"),
        planned=_whole(value, "rollouts"),
        agents=counts,
        scored=_whole(value, "scored"),
        failed=_whole(value, "failed"),
        missing=_whole(value, "missing"),
        benchmark=_benchmark(words, config, counts, _text(value, "inputs")),
        model=_model(config),
        sessions=1 + (len(value["earlier"]) if isinstance(value.get("earlier"), list) else 0),
        config=config,
    )


def _benchmark(command: tuple[str, ...], config: Mapping[str, Any], agents: Mapping[str, int], inputs: str | None) -> str | None:
    """What was evaluated: the selected components, else the data sets of the servers, else the name of the input file."""
    names = list(dict.fromkeys(_selected(command)))
    if not names:
        names = list(dict.fromkeys(_dataset_names(config, agents)))
    if not names and inputs:
        names = [Path(inputs).stem]
    return ", ".join(names) or None


def _selected(command: tuple[str, ...]) -> Iterator[str]:
    for flag in _SELECTORS:
        found = False
        for word, following in zip_longest(command, command[1:], fillvalue=""):
            if word == flag and following:
                found = True
                yield following
            elif word.startswith(f"{flag}=") and word != f"{flag}=":
                found = True
                yield word.partition("=")[2]
        if found:
            return


def _dataset_names(config: Mapping[str, Any], agents: Mapping[str, int]) -> Iterator[str]:
    split = config.get("split")
    for server in server_blocks(config):
        datasets = server.fields.get("datasets")
        if not isinstance(datasets, list) or (server.kind == AGENTS and agents and server.instance not in agents):
            continue
        entries = [entry for entry in datasets if isinstance(entry, dict)]
        of_split = [entry for entry in entries if entry.get("type") == split]
        for entry in of_split or entries:
            name = _text(entry, "name") or Path(_text(entry, "jsonl_fpath") or "").stem
            if name:
                yield name


def _model(config: Mapping[str, Any]) -> str | None:
    """The policy model's name, else what the first model server says of its model, else that server's implementation."""
    name = _text(config, "policy_model_name")
    if name:
        return name
    for server in server_blocks(config):
        if server.kind == MODELS:
            return next((text for key in _MODEL_FIELDS if (text := _text(server.fields, key))), server.implementation)
    return None


def _text(value: Mapping[str, Any], key: str) -> str | None:
    item = value.get(key)
    return item if isinstance(item, str) and item else None


def _whole(value: Mapping[str, Any], key: str) -> int | None:
    item = value.get(key)
    return item if type(item) is int else None


def _number(value: Mapping[str, Any], key: str) -> float | None:
    item = value.get(key)
    return float(item) if isinstance(item, float) or type(item) is int else None
