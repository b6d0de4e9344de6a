"""Writes files row by row, so that a reader sees the whole new file or the old one, whatever its size."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from backend.errors import GymError, Place
from backend.io.files import make_folder

_BUFFER_BYTES = 1 << 18


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write into that becomes `path` when the block ends well; otherwise `path` stays what it was."""
    folder = make_folder(path.parent)
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=folder)
    except OSError as error:
        raise GymError(f"cannot write {path}: {error.strerror}", place=Place(str(path))) from error
    try:
        with open(descriptor, "wb", buffering=_BUFFER_BYTES) as file:
            os.fchmod(file.fileno(), 0o644)
            yield file
        os.replace(temporary, path)
    except OSError as error:
        raise GymError(f"cannot write {path}: {error.strerror}", place=Place(str(path))) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def row_line(row: Any) -> bytes:
    """One line of a prepared file: ASCII-escaped JSON with `", "` and `": "`, keys in their order, and the line's LF."""
    return json.dumps(row).encode("ascii") + b"\n"
