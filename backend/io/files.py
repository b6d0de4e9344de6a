"""Whole files: written so that a reader sees the old content or the new, never half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from backend.errors import GymError, Place

_BUFFER_BYTES = 1 << 18


@contextlib.contextmanager
def replacing(path: Path, *, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A file to write into that becomes `path` when the block ends well; otherwise `path` stays what it was."""
    folder = make_folder(path.parent)
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=folder)
    except OSError as error:
        raise GymError(f"cannot write {path}: {error.strerror}", place=Place(str(path))) from error
    try:
        with open(descriptor, "wb", buffering=_BUFFER_BYTES) as file:
            os.fchmod(file.fileno(), mode)
            yield file
        os.replace(temporary, path)
    except OSError as error:
        raise GymError(f"cannot write {path}: {error.strerror}", place=Place(str(path))) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def write_atomically(path: str | Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace `path` by `data` in one step."""
    with replacing(Path(path), mode=mode) as file:
        file.write(data)


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
