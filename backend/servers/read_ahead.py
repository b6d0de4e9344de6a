"""Asks the disk for the files that a warm parent is going to read, while it still reads the first of them.

After a while in which nothing was started, the operating system has let go of what they hold. Importing reads several hundred small files one
after the other then, which takes a third of a second longer. A warm parent notes at its end which files those were, and the next
command has the system read them all at once beside its own work: a hint only, nothing depends on it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import zlib
from pathlib import Path

from backend.io.homes import cache_home, usable

_LONGEST = 4 << 20
"""Bytes of one file. What programs run of large libraries lies at their front, what is for debuggers behind it."""


def read_ahead() -> None:
    """Have the files of the last note read. Takes some milliseconds and raises nothing."""
    if not hasattr(os, "posix_fadvise"):
        return
    try:
        names = _note().read_bytes().split(b"\n")
    except OSError:
        return
    for name in names:
        with contextlib.suppress(OSError, ValueError):  # also what a power cut has left of a note
            descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
            try:
                os.posix_fadvise(descriptor, 0, _LONGEST, os.POSIX_FADV_WILLNEED)
            finally:
                os.close(descriptor)


def note_files() -> None:
    """Note the files of the modules that this process has imported, in that order, in place of an earlier note."""
    if not hasattr(os, "posix_fadvise"):
        return
    from backend.errors import GymError
    from backend.io.files import write_atomically

    note = _note()
    files = b"\n".join(os.fsencode(name) for name in _files_of_modules() if "\n" not in name)
    with contextlib.suppress(OSError, GymError):
        if usable(note.parent) is not None and not (note.exists() and note.read_bytes() == files):
            write_atomically(note, files, mode=0o600)


def _files_of_modules() -> list[str]:
    names = []
    for module in list(sys.modules.values()):
        specification = getattr(module, "__spec__", None)
        if specification is not None and specification.has_location and specification.origin:
            cached = specification.cached
            names.append(cached if cached and os.path.exists(cached) else specification.origin)
    return names


def _note() -> Path:
    """One for each installation: its interpreter and its packages."""
    key = zlib.crc32(os.fsencode(f"{sys.prefix}\n{__file__}"))
    return cache_home("read-ahead", f"{sys.implementation.cache_tag}-{key:08x}.txt")
