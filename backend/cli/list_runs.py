"""`gym list runs [PATH]`."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from backend.cli.console import print_json, say, warn
from backend.cli.parser import Parsed
from backend.cli.tables import table
from backend.errors import ExitCode, UsageError
from backend.io.text import cell_width, clean_line
from backend.metrics.headline import PERCENT
from backend.rollouts.run_entry import DIED, RUNNING, Headline, RunEntry, read_run
from backend.rollouts.run_list import find_runs, locate_run
from backend.rollouts.run_query import parse_run_query, sort_runs

_COLUMNS = ("State", "Begun", "Score", "Scored", "Failed", "Benchmark", "Model")
_WIDEST_NAME = 28
_NARROWEST_NAME = 12
_SHOWN_COMMANDS = 5


def run(parsed: Parsed) -> int:
    """List the runs below a folder, or one run."""
    if parsed.overrides:
        raise UsageError(f"this command takes no overrides: {parsed.overrides[0]}")
    query = parse_run_query(parsed.given("filter", ""))
    place = Path(parsed.name or ".")
    now = time.time()
    found = (read_run(locate_run(place), now=now),) if _is_one_run(place) else find_runs(place, now=now)
    runs = sort_runs((entry for entry in found if query.matches(entry, now)), parsed.given("sort", "age"))
    for entry in runs:
        if entry.problem:
            warn(f"{entry.name}: {entry.problem}")
    if parsed.json:
        print_json([plain(entry) for entry in runs])
    else:
        _show(runs, now)
    return ExitCode.OK


def plain(entry: RunEntry) -> dict[str, Any]:
    """A run as the JSON listing has it: times in seconds since the epoch, commands as lists of words."""
    fields = asdict(entry)
    del fields["paths"]
    headline = fields.pop("headline")
    return {
        "rollouts": str(entry.paths.rollouts),
        "run_folder": str(entry.paths.run_folder) if entry.paths.run_folder.is_dir() else None,
        **fields,
        "headline": headline,
        "resumable": entry.resumable,
    }


def _is_one_run(place: Path) -> bool:
    """Whether a path means one run: a file, one that is missing, or a run's folder."""
    if not place.is_dir():
        return True
    return (place / "run.json").exists() or (place / "events.ndjson").exists()


def _show(runs: Sequence[RunEntry], now: float) -> None:
    say(f"Runs: {len(runs)}")
    if not runs:
        return
    rows = [
        (
            _state(entry),
            "" if entry.when is None else _age(now - entry.when),
            _score(entry.headline),
            _of_planned(entry),
            "" if entry.failed is None else str(entry.failed),
            _end_of(entry.benchmark or "", _WIDEST_NAME),
            _end_of(Path(entry.model or "").name, _WIDEST_NAME),
        )
        for entry in runs
    ]
    names = [entry.name for entry in runs]
    if sys.stdout.isatty():
        others = max(map(cell_width, table(_COLUMNS, rows).splitlines()))
        room = max(_NARROWEST_NAME, shutil.get_terminal_size().columns - others - 2)
        names = [_end_of(name, room) for name in names]
    say(table((*_COLUMNS, "Run"), [(*row, name) for row, name in zip(rows, names, strict=True)]))
    died = [entry for entry in runs if entry.state == DIED and entry.resume_command]
    for entry in died[:_SHOWN_COMMANDS]:
        say()
        say(
            f"{entry.name} died and can be resumed"
            + (" (put the masked key in again)" if entry.resume_needs_secret else "")
            + ":"
        )
        say(f"  cd {shlex.quote(entry.cwd or '.')} && {shlex.join(entry.resume_command or ())}")


def _state(entry: RunEntry) -> str:
    if entry.state == RUNNING and entry.silent_for is not None:
        return f"running on {entry.host}, silent for {_age(entry.silent_for)}"
    return entry.state


def _score(headline: Headline | None) -> str:
    if headline is None:
        return ""
    digits = 1 if headline.scale == PERCENT else 3
    text = f"{headline.value:.{digits}f}"
    if headline.low is not None and headline.high is not None:
        text += f" ({headline.low:.{digits}f} … {headline.high:.{digits}f})"
    return text if headline.final else f"{text} so far"


def _end_of(text: str, width: int) -> str:
    """The end of `text` that fits into `width` columns: paths and model names differ there."""
    text = clean_line(text)
    if cell_width(text) <= width:
        return text
    while cell_width(text) > width - 1:
        text = text[1:]
    return "…" + text


def _of_planned(entry: RunEntry) -> str:
    if entry.scored is None:
        return ""
    return str(entry.scored) if entry.planned is None else f"{entry.scored}/{entry.planned}"


def _age(seconds: float) -> str:
    """A duration in its largest unit: `40s`, `12m`, `3h`, `5d`."""
    seconds = max(0.0, seconds)
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"
