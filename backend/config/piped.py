"""Configurations that come through a pipe: `--config /dev/stdin`, `--config <(command)`, a named pipe; and the empty one of `/dev/null`.

A pipe can be read once, and a command may resolve its configuration several times, so what was read is kept.
"""

from __future__ import annotations

import os
import re
import select
import stat
import tempfile
from dataclasses import replace
from pathlib import Path

from backend.config.errors import ConfigSyntaxError
from backend.config.schema import MOST_FILE_BYTES
from backend.config.yaml_source import Source, load_source
from backend.errors import Place

WRITER_SECONDS = 2.0
"""How long a named pipe may wait for somebody to write to it."""

_OWN = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
_STANDARD = {"/dev/stdin": 0}
_CHUNK = 1 << 16
_read: dict[tuple[str, int, int, int], bytes | None] = {}
"""By name, inode and time of the last write: what is written later is read anew."""


def load_piped(path: Path) -> Source | None:
    """What the pipe at `path` holds, or nothing for `/dev/null`; None for other devices, and for a pipe that nobody writes to.

    Raises ConfigSyntaxError as for a file, too for what is longer than a file may be.
    """
    name = str(path)
    try:
        status = os.stat(path)
        if not _is_readable(status):
            return None
        if _which(name) not in _read:
            data = _data_of(name, stat.S_ISFIFO(status.st_mode))
            _read[_which(name)] = data
        else:
            data = _read[_which(name)]
        return None if data is None else _parsed(data, path)
    except OSError as error:
        raise ConfigSyntaxError(f"cannot read the file: {error.strerror}", place=Place(name)) from error


def _which(name: str) -> tuple[str, int, int, int]:
    status = os.stat(name)
    return (name, status.st_dev, status.st_ino, status.st_mtime_ns)


def _is_readable(status: os.stat_result) -> bool:
    nothing = stat.S_ISCHR(status.st_mode) and status.st_rdev == os.stat(os.devnull).st_rdev
    return nothing or stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)


def _data_of(name: str, is_pipe: bool) -> bytes | None:
    """At most one byte more than a file may have; None where nobody writes."""
    own = _STANDARD.get(name)
    if match := _OWN.fullmatch(name):
        own = int(match[1])
    if own is not None:  # its other end is open, or was: the end will come
        descriptor = os.dup(own)
    else:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if own is None and is_pipe:
            if not select.select([descriptor], [], [], WRITER_SECONDS)[0]:
                return None
            os.set_blocking(descriptor, True)
        pieces: list[bytes] = []
        left = MOST_FILE_BYTES + 1
        while left > 0 and (piece := os.read(descriptor, min(left, _CHUNK))):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def _parsed(data: bytes, path: Path) -> Source:
    with tempfile.NamedTemporaryFile(suffix=".yaml") as file:
        file.write(data)
        file.flush()
        return replace(load_source(Path(file.name), shown=str(path)), path=path)
