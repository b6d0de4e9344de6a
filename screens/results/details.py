"""Reads what the detail pane says of one run beyond its row: all scores, failures with reasons, settings, files, remarks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.config.schema import MODELS
from backend.datasets.server_blocks import ServerBlock, server_blocks
from backend.errors import GymError
from backend.io.json_codec import loads
from backend.io.jsonl import read_jsonl
from backend.io.redact import Redactor
from backend.metrics.descriptive import as_number
from backend.metrics.headline import PERCENT, RAW, ScoreRow
from backend.metrics.intervals import Interval
from backend.rollouts.failures import FAILURE_CLASS, reason_of
from backend.rollouts.run_entry import RunEntry, events_backwards
from backend.rollouts.run_record import read_run_record

MOST_FAILURE_LINES = 5000
MOST_CLASSES = 50
MOST_REMARKS = 5
_MOST_FAILURE_BYTES = 32 << 20
_MOST_METRICS_BYTES = 4 << 20
_LONGEST_VALUE = 300
_RUN_KEYS = (
    "inputs", "split", "limit", "num_repeats", "num_repeats_add_seed", "num_samples_in_parallel", "responses_create_params",
    "prompt_config", "agent_name", "skills", "disable_aggregation",
)  # fmt: skip
_UNTOLD_FIELDS = frozenset({"entrypoint", "host", "port", "domain", "verified", "description", "value", "license", "datasets"})


@dataclass(frozen=True, slots=True)
class FailureFact:
    """A class of failures: how many, and the reason of the last one."""

    name: str
    count: int
    reason: str


@dataclass(frozen=True, slots=True)
class FileFact:
    """One of a run's files; `size` in bytes, None when it is not there."""

    path: Path
    size: int | None


@dataclass(frozen=True, slots=True)
class RunDetails:
    """What is in the files of a run."""

    scores: tuple[ScoreRow, ...] = ()
    failures: tuple[FailureFact, ...] = ()
    failures_are_attempts: bool = False
    """Counted are failed attempts, of which later ones may have succeeded; else rollouts without a score."""
    failures_cut: bool = False
    """Only the first part of a long failures file was read for the reasons."""
    settings: tuple[tuple[str, str], ...] = ()
    """Names and values; secrets are masked."""
    files: tuple[FileFact, ...] = ()
    remarks: tuple[str, ...] = ()
    """Warnings of the run, oldest first, and what of its files could not be read."""


def read_details(run: RunEntry, cancelled: Callable[[], bool]) -> RunDetails:
    """All details; what cannot be read is told in `remarks`. Ends early, with what there is, when cancelled."""
    problems: list[str] = []
    summary, warnings = _told_last(run)
    scores = _scores(summary) if summary else _aggregate_scores(run.paths.aggregate_metrics, problems)
    classes, reasons, cut = _failed_attempts(run.paths.failures, cancelled, problems)
    told = summary.get("failure_classes")
    final = {str(name): count for name, count in told.items() if type(count) is int} if isinstance(told, dict) else None
    counts = classes if final is None else Counter(final)
    return RunDetails(
        scores=tuple(scores),
        failures=tuple(FailureFact(name, count, reasons.get(name, "")) for name, count in counts.most_common(MOST_CLASSES)),
        failures_are_attempts=final is None,
        failures_cut=cut,
        settings=tuple(_settings(run, problems)),
        files=tuple(_files(run)),
        remarks=(*warnings, *problems),
    )


def _told_last(run: RunEntry) -> tuple[Mapping[str, Any], list[str]]:
    """The run's summary, if its session has come to one, and its last warnings."""
    summary: Mapping[str, Any] = {}
    warnings: list[str] = []
    for event in events_backwards(run.paths.events):
        kind = event.get("type")
        if kind == "run.summary" and not summary:
            summary = event
        elif kind == "notice" and event.get("level") == "warning" and len(warnings) < MOST_REMARKS:
            warnings.insert(0, str(event.get("text")))
        elif kind == "run.planned":
            break
    return summary, warnings


def _scores(summary: Mapping[str, Any]) -> Iterator[ScoreRow]:
    rows = summary.get("scores")
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict):
            continue
        interval = row.get("interval")
        bounds: Mapping[str, Any] = interval if isinstance(interval, dict) else {}
        low, high = as_number(bounds.get("low")), as_number(bounds.get("high"))
        yield ScoreRow(
            agent=str(row.get("agent") or ""),
            name=str(row.get("name") or ""),
            value=as_number(row.get("value")),
            scale=str(row.get("scale")),
            scored=_whole(row.get("scored")),
            failed=_whole(row.get("failed")),
            missing=_whole(row.get("missing")),
            interval=None if low is None or high is None else Interval(low, high, str(bounds.get("method"))),
        )


def _aggregate_scores(path: Path, problems: list[str]) -> Iterator[ScoreRow]:
    """The key metrics of results that have no summary."""
    try:
        if path.stat().st_size > _MOST_METRICS_BYTES:
            problems.append(f"{path.name} is long: its scores are not shown")
            return
        entries = loads(path.read_bytes())
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        problems.append(f"{path.name} cannot be read: {error}")
        return
    for entry in entries if isinstance(entries, list) else ():
        metrics = entry.get("key_metrics") if isinstance(entry, dict) else None
        reference = entry.get("agent_ref") if isinstance(entry, dict) else None
        agent = str(reference.get("name")) if isinstance(reference, dict) else ""
        for name, value in metrics.items() if isinstance(metrics, dict) else ():
            number = as_number(value)
            if number is not None:
                yield ScoreRow(agent, str(name), number, PERCENT if "@" in str(name) else RAW, 0, 0, 0, None)


def _failed_attempts(path: Path, cancelled: Callable[[], bool], problems: list[str]) -> tuple[Counter[str], dict[str, str], bool]:
    classes: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    if not path.is_file():
        return classes, reasons, False
    try:
        for number, line in enumerate(read_jsonl(path, allow_torn_tail=True)):
            if cancelled():
                break
            if number >= MOST_FAILURE_LINES or line.offset > _MOST_FAILURE_BYTES:
                return classes, reasons, True
            name = str(line.value.get(FAILURE_CLASS) or "unknown")
            classes[name] += 1
            reasons[name] = reason_of(line.value) or reasons.get(name, "")
    except GymError as error:
        problems.append(str(error))
    return classes, reasons, False


def _settings(run: RunEntry, problems: list[str]) -> Iterator[tuple[str, str]]:
    if run.problem is not None or not run.paths.run_record.exists():
        return
    try:
        config = read_run_record(run.paths.run_record).config
    except GymError as error:
        problems.append(str(error))
        return
    # Masked when it was written; once more, because the folder may come from anywhere.
    masked = Redactor().tree(config)
    for block in server_blocks(masked):
        yield from _server_facts(block)
    for key in _RUN_KEYS:
        yield from _flat(key, masked.get(key))


def _server_facts(block: ServerBlock) -> Iterator[tuple[str, str]]:
    yield block.instance, block.implementation
    for key, value in block.fields.items():
        if key in _UNTOLD_FIELDS:
            continue
        if isinstance(value, Mapping) and isinstance(value.get("name"), str) and "type" in value:
            yield f"  {key}", value["name"]
        elif block.kind == MODELS or not isinstance(value, Mapping | list):
            yield from _flat(f"  {key}", value)


def _flat(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """A setting as lines of name and value; what is not set is left out."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _flat(f"{key}.{name}", item)
    elif value not in (None, "", []):
        yield key, str(value)[:_LONGEST_VALUE]


def _files(run: RunEntry) -> Iterator[FileFact]:
    paths = run.paths
    for path in (
        paths.rollouts,
        paths.failures,
        paths.materialized_inputs,
        paths.aggregate_metrics,
        paths.run_record,
        paths.events,
    ):
        try:
            yield FileFact(path, path.stat().st_size)
        except OSError:
            yield FileFact(path, None)


def _whole(value: Any) -> int:
    return value if type(value) is int else 0
