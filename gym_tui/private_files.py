"""Files that the workbench leaves for the user alone: copies, and reports of its own faults. The oldest make room for new ones."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from backend.errors import GymError, Place
from backend.io.homes import state_home, usable

_KEPT = 20


def keep_private(kind: str, stem: str, text: str) -> Path:
    """Write `text` to a new file below the state home (or, where that cannot be written, the temporary folder), readable by its owner only.

    At most the newest 20 files of a kind are kept. Raises `GymError` when there is no place at all.
    """
    folder = private_folder(kind)
    try:
        descriptor, name = tempfile.mkstemp(prefix=f"{stem}-", suffix=".txt", dir=folder)
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise GymError(f"cannot write below {folder}: {error.strerror}", place=Place(str(folder))) from error
    _make_room(folder, stem)
    return Path(name)


def private_folder(kind: str) -> Path:
    """The folder of a kind of files, made where it is missing."""
    own = usable(state_home(kind))
    if own is not None:
        return own
    fallback = Path(tempfile.gettempdir(), f"gym-tui-{os.getuid()}-{kind}")
    if usable(fallback) is None or fallback.is_symlink() or fallback.stat().st_uid != os.getuid():
        raise GymError(
            f"no folder for {kind} can be written", hint="set GYM_TUI_HOME to a folder that can", place=Place(str(fallback))
        )
    return fallback


def _make_room(folder: Path, stem: str) -> None:
    def age(path: Path) -> float:
        try:
            return path.stat().st_mtime
        except OSError:
            return 0.0

    for path in sorted(folder.glob(f"{stem}-*.txt"), key=age)[:-_KEPT]:
        path.unlink(missing_ok=True)


def home_relative(path: Path) -> str:
    """A path as people write it: with `~` for the home folder."""
    try:
        return f"~{os.sep}{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)
