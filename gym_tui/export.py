"""Files that the workbench writes into the working directory: texts and pictures of a screen. Nothing is ever overwritten."""

from __future__ import annotations

import os
from pathlib import Path

from backend.errors import GymError, Place

_MOST_NUMBERS = 10_000


def write_new(text: str, stem: str, suffix: str, *, name: str = "", folder: Path | None = None) -> Path:
    """Write `text` to `name`, or without one to the first free `<stem>-<n><suffix>` of the folder. Returns the absolute path.

    Raises `GymError` for a name that is taken and for a place that cannot be written.
    """
    folder = Path.cwd() if folder is None else folder
    if name:
        named = folder / os.path.expanduser(name)
        named = named if named.suffix else named.with_suffix(suffix)
        if not _created(named, text):
            raise GymError(f"{named} exists, and nothing is overwritten", hint="choose another name", place=Place(str(named)))
        return named.absolute()
    for number in range(1, _MOST_NUMBERS):
        path = folder / f"{_file_stem(stem)}-{number}{suffix}"
        if _created(path, text):
            return path.absolute()
    raise GymError(f"there are too many files named {_file_stem(stem)}-…{suffix} in {folder}", place=Place(str(folder)))


def _created(path: Path, text: str) -> bool:
    """Whether a new file holds the text now; False when there is one of that name."""
    try:
        with open(path, "x", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.write(text)
    except FileExistsError:
        return False
    except OSError as error:
        raise GymError(f"cannot write {path}: {error.strerror}", place=Place(str(path))) from error
    return True


def _file_stem(stem: str) -> str:
    """A name without characters that file systems or shells mind."""
    kept = "".join(char if char.isalnum() or char in "-_." else "-" for char in os.path.basename(stem))
    return kept.strip(".-")[:100] or "screen"
