"""A record in the user's own pager."""

from __future__ import annotations

import tempfile
from pathlib import Path

from textual.app import App

from backend.errors import GymError
from backend.rollouts.rollout_facts import Unreadable
from backend.rollouts.rollout_file import RolloutFile
from screens.viewer.conversation import json_text
from screens.widgets.background import Reporter
from screens.widgets.outside import opening, pager_command, run_outside
from screens.widgets.wrapping import clean_pieces


def write_record(file: RolloutFile, row: int, reporter: Reporter) -> Path:
    """A temporary file with a row as JSON of several lines; what cannot be laid out is written as it is. For threads."""
    record = file.record(row)
    text = file.raw(row).decode("utf-8", "replace") if isinstance(record, Unreadable) else json_text(file, row)
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="rollout-", suffix=".json", delete=False) as out:
            for piece in clean_pieces(text):  # a pager may be set up to pass control characters on
                if reporter.cancelled:
                    break
                out.write(piece)
    except OSError as error:
        raise GymError(f"cannot write a file for the pager: {error.strerror}") from error
    return Path(out.name)


def run_pager(app: App[object], path: Path) -> None:
    """Give the terminal to the pager until it ends, and remove the file. Raises `GymError` when that is not possible."""
    try:
        run_outside(app, "pager", opening(pager_command(), path))
    finally:
        path.unlink(missing_ok=True)
