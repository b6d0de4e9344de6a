"""What to begin with: which screen shows a path, and whether names of screens and themes exist."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from backend.errors import GymError, Place, UsageError, did_you_mean
from gym_tui.screen_table import SCREENS, ScreenEntry, screen_named
from screens.widgets.workbench import Target


def first_view(path: Path) -> tuple[str, Target]:
    """The screen that shows `path`, and its target: a folder its runs, a run as it goes, a finished file of rollouts its rollouts.

    Raises `GymError` for a path that is nothing of that.
    """
    try:
        is_folder = path.is_dir()
        missing = not is_folder and not path.exists()
    except OSError as error:
        raise GymError(f"cannot read {path}: {error.strerror}", place=Place(str(path))) from error
    if is_folder and not _is_run_folder(path):
        return "results", Target(path)
    from backend.rollouts.run_list import locate_run  # 0.1 s, and not needed for a folder

    run = locate_run(path)
    if missing and not run.rollouts.exists() and not run.run_folder.is_dir():
        raise GymError(f"{path} does not exist", place=Place(str(path)))
    if path == run.rollouts and not _still_runs(run.run_record):
        return "viewer", Target(path)
    return "rollouts", Target(path)


def known_screen(name: str) -> ScreenEntry:
    """The screen with a name; raises `UsageError` with the nearest one when there is none."""
    entry = screen_named(name)
    if entry is None:
        names = [each.name for each in SCREENS]
        raise UsageError(f"there is no screen {name}", hint=did_you_mean(name, names) or f"there are: {', '.join(names)}")
    return entry


def known_theme(name: str, themes: Iterable[str]) -> str:
    """`name`, if there is such a theme; else raises `UsageError` with the nearest one."""
    names = list(themes)
    if name not in names:
        raise UsageError(f"there is no theme {name}", hint=did_you_mean(name, names) or f"there are: {', '.join(names)}")
    return name


def _is_run_folder(path: Path) -> bool:
    return any((path / name).is_file() for name in ("run.json", "events.ndjson"))


def _still_runs(record_file: Path) -> bool:
    from backend.rollouts.run_record import is_alive, read_run_record

    try:
        record = read_run_record(record_file)
    except GymError:
        return False
    return record.state == "running" and is_alive(record, record_file.with_name("lock")) is not False
