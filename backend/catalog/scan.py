"""Facts of files, read once and remembered until a file changes.

The cache is one JSON file per search root in this program's cache home; a file in it is known by path, size, and times of the last change
of its content and of its status. A missing, broken or unwritable cache costs time and nothing else; it is written by replacing, after
taking in what other processes have written meanwhile.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Any

from backend.catalog.facts import Facts, benchmark_facts
from backend.config.schema import MOST_FILE_BYTES
from backend.errors import GymError
from backend.io import homes
from backend.io.files import write_atomically
from backend.io.json_codec import dumps, loads

FORMAT = 7
"""Raised whenever facts change their meaning, so that an old cache is not read."""

Stamp = list[int]
"""Size, time of change, time of status change, in nanoseconds: JSON values."""
Record = list[Any]
"""Stamp and facts of one file."""


class Scan:
    """Facts of the files below some roots. Use as a context manager, so that new facts are saved. For one thread."""

    def __init__(self, roots: Sequence[Path], *, cache: bool = True) -> None:
        self.roots = tuple(roots)
        folder = homes.usable(homes.cache_home("catalog")) if cache else None
        self._shards = [_Shard(str(root), folder) for root in roots]
        self._outside = _Shard("", None)
        self._paths: dict[str, str | None] = {}

    def __enter__(self) -> Scan:
        return self

    def __exit__(self, *_exception: object) -> None:
        for shard in self._shards:
            shard.save()

    def facts(self, path: str, read: Callable[[str, str], Facts]) -> Facts | None:
        """`read(path, text)` for the present content of the file; None when there is no such file."""
        return self._shard(path).facts(path, read)

    def stamp(self, path: str) -> Stamp | None:
        """What tells the present content of a file from an earlier one; None when there is no such regular file."""
        return self._shard(path).stamp(path)

    def derived(self, path: str, sources: Iterable[str], derive: Callable[[], Facts]) -> Facts:
        """What `derive()` makes of `sources`, remembered under `path` until one of them changes."""
        digest = hashlib.sha256(repr([(source, self.stamp(source)) for source in sources]).encode()).hexdigest()[:32]
        return self._shard(path).derived(path, digest, derive)

    def find(self, relative: str) -> str | None:
        """What is at a relative path in the first root that has it, an absolute path as it is; None where there is nothing."""
        if relative not in self._paths:
            candidates = (os.path.join(root, relative) for root in self.roots)
            self._paths[relative] = next((path for path in candidates if os.path.exists(path)), None)
        return self._paths[relative]

    def _shard(self, path: str) -> _Shard:
        return next((shard for shard in self._shards if path.startswith(shard.prefix)), self._outside)


class _Shard:
    """What is known of the files below one root."""

    def __init__(self, root: str, folder: Path | None) -> None:
        self.prefix = root.rstrip(os.sep) + os.sep
        name = f"{hashlib.sha256(self.prefix.encode(errors='surrogateescape')).hexdigest()[:24]}.json"
        self._file = folder / name if folder else None
        self._loaded = False
        self._files: dict[str, Record] = {}
        self._derived: dict[str, Record] = {}
        self._stamps: dict[str, Stamp | None] = {}
        self._changed: set[str] = set()

    def stamp(self, path: str) -> Stamp | None:
        if path not in self._stamps:
            try:
                status = os.stat(path)
                self._stamps[path] = [status.st_size, status.st_mtime_ns, status.st_ctime_ns] if S_ISREG(status.st_mode) else None
            except (OSError, ValueError):
                self._stamps[path] = None
        return self._stamps[path]

    def facts(self, path: str, read: Callable[[str, str], Facts]) -> Facts | None:
        stamp = self.stamp(path)
        if stamp is None:
            return None
        self._load()
        known = self._files.get(path)
        if known is None or known[0] != stamp or (known[1].get("unparsed") and read is not benchmark_facts):
            known = self._files[path] = [stamp, _read(path, read)]
            self._changed.add(path)
        facts: Facts = known[1]
        return facts

    def derived(self, path: str, digest: str, derive: Callable[[], Facts]) -> Facts:
        self._load()
        known = self._derived.get(path)
        if known is None or known[0] != digest:
            known = self._derived[path] = [digest, derive()]
            self._changed.add(path)
        facts: Facts = known[1]
        return facts

    def save(self) -> None:
        """Write the cache if anything in it changed: what others have written since it was read stays, files that are gone go."""
        if self._file is None or not self._changed:
            return
        files, derived = _content_of(self._file)
        for theirs, ours in ((files, self._files), (derived, self._derived)):
            theirs.update({path: ours[path] for path in self._changed if path in ours})
            for path in [path for path in theirs if self.stamp(path) is None]:
                del theirs[path]
        try:
            write_atomically(self._file, dumps({"format": FORMAT, "files": files, "derived": derived}), mode=0o600)
        except GymError:
            return
        self._changed.clear()

    def _load(self) -> None:
        if not self._loaded:
            self._loaded = True
            if self._file is not None:
                self._files, self._derived = _content_of(self._file)


def _content_of(file: Path) -> tuple[dict[str, Record], dict[str, Record]]:
    try:
        content = loads(file.read_bytes())
        if content["format"] != FORMAT:
            return {}, {}
        files, derived = content["files"], content["derived"]
        if all(_is_record(record) for record in (*files.values(), *derived.values())):
            return files, derived
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return {}, {}


def _is_record(record: Any) -> bool:
    return isinstance(record, list) and len(record) == 2 and isinstance(record[1], dict)


def _read(path: str, read: Callable[[str, str], Facts]) -> Facts:
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_FILE_BYTES + 1)
        if len(data) > MOST_FILE_BYTES:
            return _broken(f"the file is larger than {MOST_FILE_BYTES >> 20} MB")
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return _broken("the file is not UTF-8 text", line)
    except OSError as error:
        return _broken(f"cannot read the file: {error.strerror}")
    return read(path, text)


def _broken(message: str, line: int | None = None) -> Facts:
    return {"broken": {"message": message, "line": line, "column": None}}
