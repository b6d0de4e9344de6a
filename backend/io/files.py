"""Whole files: written so that a reader sees the old content or the new, never half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from backend.errors import GymError, Place


def write_atomically(path: str | Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace `path` by `data` in one step (a temporary file in the same folder, then a rename)."""
    target = Path(path)
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name[:40]}.", dir=target.parent)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
        os.replace(temporary, target)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise GymError(f"cannot write {target}: {error.strerror}", place=Place(str(target))) from error


def make_folder(path: str | Path) -> Path:
    """Create `path` with its parents where they are missing, and make sure that files can be made in it."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GymError(f"cannot create the folder {folder}: {error.strerror}", place=Place(str(folder))) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise GymError(
            f"the folder {folder} is not writable",
            hint="choose another place with --output, or change the folder's permissions",
            place=Place(str(folder)),
        )
    return folder
