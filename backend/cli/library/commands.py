"""Commands as functions without parameters: they take the words of the process' own command line, and leave when they fail."""

from __future__ import annotations

import sys
from collections.abc import Callable

from backend.cli.main import main


def command_function(*path: str) -> Callable[[], None]:
    """A function that runs the command `path` with the words of `sys.argv`; raises SystemExit unless the command ends with 0."""

    def run() -> None:
        if code := main([*path, *sys.argv[1:]]):
            raise SystemExit(code)

    run.__name__ = run.__qualname__ = "_".join(path).replace("-", "_")
    run.__doc__ = f"`gym {' '.join(path)}` with the words of this process' command line; SystemExit unless it ends with 0."
    return run
