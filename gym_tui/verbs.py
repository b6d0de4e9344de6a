"""What a line of the command line does: verbs of the workbench's own, a number, or a headless command."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from backend.cli.commands import COMMANDS, GROUPS
from backend.cli.parser import HelpShown, Parsed, ParserError, parse
from backend.errors import UsageError, did_you_mean
from gym_tui.completion import VERBS
from gym_tui.jobs import refuse_secrets
from gym_tui.start import first_view, known_screen, known_theme

if TYPE_CHECKING:
    from gym_tui.app import WorkbenchApp

_NAMES = [verb.name for verb in VERBS]
_SHORT = {"q": "quit", "q!": "quit", "w": "write", "e": "open"}
"""What people have in their fingers."""
_HEADLESS = [*GROUPS, *(command.path[0] for command in COMMANDS if len(command.path) == 1)]


Action = Callable[[], object]


def plan(app: WorkbenchApp, text: str, folder: Path | None = None) -> Action:
    """What a line asks for, to be done when the line has closed. Raises `GymError` with the message for the line when it is wrong.

    Headless commands run in `folder`, by default the working directory.
    """
    if text.strip().isdigit():
        return _go_to(app, text.strip())
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{error}".lower().replace("no closing quotation", "a quotation mark is missing")) from None
    if not words:
        return lambda: None
    verb = _SHORT.get(words[0], words[0])
    if verb == "gym" or verb in _HEADLESS or verb.startswith("-"):
        words = words[1:] if verb == "gym" else words
        checked(words)
        return partial(app.start_command, words, str(folder) if folder is not None else None)
    if verb not in _PLANS:
        raise UsageError(
            f"unknown command {verb}", hint=did_you_mean(verb, [*_NAMES, *_HEADLESS]) or "`help` lists what there is"
        )
    takes = next(each.takes for each in VERBS if each.name == verb)
    least, most = (0, 0) if not takes else (0, 1) if takes.startswith("[") else (1, 1)
    if not least <= len(words) - 1 <= most:
        raise UsageError(f"{verb} takes {takes or 'nothing'}")
    return _PLANS[verb](app, words[1] if len(words) > 1 else "")


def evaluation_output(parsed: Parsed, folder: Path) -> Path | None:
    """The rollouts file that an evaluation will write; None for other commands, and when it is not named in the words."""
    if parsed.command.path != ("eval", "run"):
        return None
    output = parsed.given("output")
    for override in parsed.overrides:
        key, _, value = override.lstrip("+").partition("=")
        if key == "output_jsonl_fpath":
            output = value
    return folder / os.path.expanduser(output) if isinstance(output, str) and output else None


def checked(words: Sequence[str]) -> Parsed | None:
    """The command that words ask for; None when they only ask for help or versions. Raises `UsageError` as the command line does."""
    refuse_secrets(words)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            parsed = parse(words)
    except HelpShown:
        return None
    except ParserError as error:
        raise UsageError(error.message, hint=error.hint) from None
    if isinstance(parsed, Parsed) and parsed.command.path == ("tui",):
        raise UsageError("the workbench is open already", hint="`open PATH` shows something else in it")
    return parsed if isinstance(parsed, Parsed) else None


def _go_to(app: WorkbenchApp, text: str) -> Action:
    go_to: Callable[[str], bool] | None = getattr(app.front, "go_to", None)
    if go_to is None or not go_to(text):
        raise UsageError(f"there is nothing with the number {text} here")
    return lambda: None


def _open(app: WorkbenchApp, name: str) -> Action:
    return partial(app.open_screen, *first_view(app.working_folder / os.path.expanduser(name)))


def _screen(app: WorkbenchApp, name: str) -> Action:
    return partial(app.open_screen, known_screen(name).name)


def _theme(app: WorkbenchApp, name: str) -> Action:
    return partial(app.choose_theme, known_theme(name, app.available_themes))


def _ascii(app: WorkbenchApp, value: str) -> Action:
    if value not in ("on", "off"):
        raise UsageError(f"ascii takes on or off, not {value}")
    return partial(app.draw_ascii, value == "on")


_PLANS: dict[str, Callable[[WorkbenchApp, str], Action]] = {
    "open": _open,
    "screen": _screen,
    "theme": _theme,
    "keys": lambda app, _word: app.show_help,
    "help": lambda app, word: partial(app.show_help, word),
    "write": lambda app, name: partial(app.write_screen, name),
    "picture": lambda app, name: partial(app.write_picture, name),
    "ascii": _ascii,
    "quit": lambda app, _word: app.exit,
}
