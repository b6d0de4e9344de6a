"""The one path resolver: an ordered list of folders in which components, configs and data files are looked for.

Order, the first hit wins: `--search-dir` values, `NEMO_GYM_EXTRA_ROOTS` entries, the working directory, the install root.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

EXTRA_ROOTS_VARIABLE = "NEMO_GYM_EXTRA_ROOTS"
COMPONENT_FOLDERS = ("resources_servers", "responses_api_agents", "responses_api_models", "benchmarks", "environments")
INSTALL_ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds the installed packages and the bundled component folders."""


def search_roots(search_dirs: Iterable[str | Path] = (), cwd: Path | None = None) -> tuple[Path, ...]:
    """All roots in order, absolute, without duplicates (by resolved path, the earliest wins)."""
    here = cwd or Path.cwd()
    extra = [piece for piece in os.environ.get(EXTRA_ROOTS_VARIABLE, "").split(os.pathsep) if piece]
    roots: dict[Path, Path] = {}
    for candidate in (*search_dirs, *extra, here, INSTALL_ROOT):
        absolute = here / candidate
        roots.setdefault(absolute.resolve(), absolute)
    return tuple(roots.values())


def importable_roots() -> Iterator[Path]:
    """The folders from which this process could import components.

    A component that is imported from elsewhere than the search roots, as its own tests do, finds its data files there too.
    """
    for entry in sys.path:
        root = Path(entry or os.curdir).absolute()
        if any((root / kind).is_dir() for kind in COMPONENT_FOLDERS):
            yield root


def resolve_path(path: str | Path, roots: Iterable[Path]) -> Path:
    """Where `path` is read from: itself when absolute, else below the first root that has it.

    When no root has it, the path below the first root, so that an error points at the user's own place.
    """
    relative = Path(path)
    if relative.is_absolute():
        return relative
    first: Path | None = None
    for root in roots:
        candidate = root / relative
        if os.path.exists(candidate):  # unlike `Path.exists`, no error for a name that is too long or a folder that is closed
            return candidate
        first = first or candidate
    return first or relative
