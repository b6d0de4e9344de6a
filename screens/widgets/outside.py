"""Programs of the user's own that get the terminal for a while: pager and editor."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from textual.app import App, SuspendNotSupported

from backend.errors import GymError

_PAGERS = ("less", "more")
_EDITORS = ("nano", "vi")
_TAKE_A_LINE = frozenset(("less", "more", "nano", "vi", "vim", "nvim", "view", "emacs", "micro", "kak"))
"""Programs that begin at a line when they are given `+LINE`."""


def pager_command() -> list[str]:
    """The words of the pager to run; raises `GymError` when there is none."""
    return _chosen("pager", ("PAGER",), _PAGERS)


def editor_command() -> list[str]:
    """The words of the editor to run; raises `GymError` when there is none."""
    return _chosen("editor", ("VISUAL", "EDITOR"), _EDITORS)


def opening(command: Sequence[str], path: Path, line: int | None = None) -> list[str]:
    """The words that open a file with a program, at a line where the program is known to take one."""
    at = [f"+{line}"] if line is not None and Path(command[0]).name in _TAKE_A_LINE else []
    return [*command, *at, str(path)]


def run_outside(app: App[object], what: str, words: Sequence[str]) -> None:
    """Give the terminal to a program until it ends; `what` is what to call it. Raises `GymError` when that is not possible."""
    try:
        with app.suspend():
            subprocess.run(words, check=False)
    except SuspendNotSupported:
        raise GymError(f"this terminal cannot be handed to {_article(what)} {what}") from None
    except OSError as error:
        raise GymError(f"the {what} {words[0]} cannot be started: {error.strerror}", hint=f"set ${what.upper()}") from error


def _chosen(what: str, variables: Sequence[str], usual: Sequence[str]) -> list[str]:
    for variable in variables:
        try:
            words = shlex.split(os.environ.get(variable, ""))
        except ValueError as error:
            raise GymError(f"${variable} cannot be understood: {error}") from None
        if words:
            return words
    for name in usual:
        if shutil.which(name):
            return [name]
    raise GymError(f"there is no {what}", hint=f"set ${what.upper()}")


def _article(what: str) -> str:
    return "an" if what[0] in "aeiou" else "a"
