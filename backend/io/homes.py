"""Where this program keeps things of its own: `$GYM_TUI_HOME`, else the XDG folders.

A home that cannot be written means no cache and no discovery, never a failure: callers get None.
"""

from __future__ import annotations

import os
from pathlib import Path

APPLICATION = "gym-tui"


def cache_home(*parts: str) -> Path:
    """Folder for what can be made again: catalogue scans, virtual environments, weights."""
    return _home("cache", "XDG_CACHE_HOME", ".cache").joinpath(*parts)


def config_home(*parts: str) -> Path:
    """Folder for what the user writes: keys and settings of the workbench."""
    return _home("config", "XDG_CONFIG_HOME", ".config").joinpath(*parts)


def state_home(*parts: str) -> Path:
    """Folder for what should outlive a process: jobs and their logs."""
    return _home("state", "XDG_STATE_HOME", os.path.join(".local", "state")).joinpath(*parts)


def usable(folder: Path) -> Path | None:
    """`folder`, created where it is missing; None when that is not possible or it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def _home(kind: str, variable: str, below_user: str) -> Path:
    own = os.environ.get("GYM_TUI_HOME")
    if own:
        return Path(os.path.expanduser(own)) / kind
    base = os.environ.get(variable)
    try:
        return (Path(base) if base else Path.home() / below_user) / APPLICATION
    except RuntimeError:  # no home folder is known for this user
        return Path(os.sep, "nonexistent", APPLICATION, kind)
