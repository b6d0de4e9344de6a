"""Where a server spends its time, measured with yappi; importable as `nemo_gym.profiling`.

yappi is no dependency: it is needed only where profiling is asked for, and so are `gprof2dot` and Graphviz for the picture.
"""

from __future__ import annotations

import importlib
import io
import logging
import shutil
import subprocess
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from backend.errors import GymError
from backend.io.files import make_folder, write_atomically

__all__ = ["Profiler"]

logger = logging.getLogger(__name__)

_COLUMNS = {0: ("name", 160), 1: ("ncall", 12), 2: ("tsub", 10), 3: ("ttot", 10), 4: ("tavg", 10)}
_PICTURE_SECONDS = 60


class Profiler(BaseModel):
    """CPU time by function, over all threads, from `start` on; `dump` writes what there is so far.

    Files `<name>.log`, `<name>.callgrind` and, where the tools for it are there, `<name>.dot` and `<name>.png`.
    """

    name: str
    base_profile_dir: Path
    required_str: str | None = None
    """Of the functions, which stand as `<file>:<line> <name>`, the log has only those with this in them; None keeps all."""

    def start(self) -> None:
        """Begin to measure. Raises `GymError` where yappi is missing."""
        yappi = _yappi()
        yappi.set_clock_type("CPU")
        yappi.start()

    def stop(self) -> None:
        """Stop measuring and write the files."""
        _yappi().stop()
        self.dump()

    def dump(self) -> Path:
        """Write the files of what was measured so far, and return their folder."""
        stats = _yappi().get_func_stats()
        folder = make_folder(self.base_profile_dir)
        table = io.StringIO()
        stats.print_all(out=table, columns=_COLUMNS)
        write_atomically(folder / f"{self.name}.log", self._wanted(table.getvalue()).encode())
        callgrind = folder / f"{self.name}.callgrind"
        stats.save(str(callgrind), type="CALLGRIND")
        self._draw(callgrind)
        return folder

    def _wanted(self, table: str) -> str:
        if not self.required_str:
            return table
        lines = table.splitlines(keepends=True)
        names = next((number for number, line in enumerate(lines, 1) if line.split()[:2] == ["name", "ncall"]), 0)
        return "".join([*lines[:names], *(line for line in lines[names:] if self.required_str in line)])

    def _draw(self, callgrind: Path) -> None:
        """The call graph as a picture, as far as the tools for it are there."""
        converter, painter = shutil.which("gprof2dot"), shutil.which("dot")
        if converter is None:
            return
        graph = callgrind.with_suffix(".dot")
        try:
            subprocess.run(
                [converter, "--format=callgrind", f"--output={graph}", str(callgrind)], check=True, timeout=_PICTURE_SECONDS
            )
            if painter is not None:
                picture = callgrind.with_suffix(".png")
                subprocess.run([painter, "-Tpng", str(graph), "-o", str(picture)], check=True, timeout=_PICTURE_SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            logger.warning("the call graph cannot be drawn: %s", error)


def _yappi() -> Any:
    try:
        return importlib.import_module("yappi")
    except ImportError:
        raise GymError("profiling needs yappi, which is not installed", hint="pip install yappi gprof2dot") from None
